"""`kafka-fast check` at the doors of real Kafka."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing._client_properties import write_properties_file
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing._kafka.secure_kafka import (
    LISTENERS,
    MECHANISMS,
    SASL_LISTENERS,
    SecureKafka,
)

pytestmark = pytest.mark.timeout(60)

DOORS: list[tuple[str, str | None]] = [
    ("PLAINTEXT", None),
    *((listener, None) for listener in LISTENERS if listener not in SASL_LISTENERS),
    *itertools.product(SASL_LISTENERS, MECHANISMS),
]


def check(
    properties: dict[str, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    """Run the command; return its status and what it found."""
    file = write_properties_file(
        folder / "client.properties", {**properties, "allow.insecure.sasl": "true"}
    )
    status = main(["check", "--config", str(file), "--output", "json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("listener", "mechanism"), DOORS)
def test_each_door(
    secure_kafka: SecureKafka,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    listener: str,
    mechanism: str | None,
) -> None:
    if mechanism is not None and mechanism not in secure_kafka.mechanisms:
        pytest.skip(f"Kafka 3.1: {mechanism} with signed tokens")
    properties = secure_kafka.client_properties(listener, mechanism)
    status, facts = check(properties, tmp_path, capsys)
    assert status == 0, facts
    server = facts["servers"][0]
    assert server["api_count"] > 30
    release = ".".join(secure_kafka.release.version.split(".")[:2])
    assert server["kafka_release"] == release
    assert server["kafka_release_is_told"] is secure_kafka.release.kraft
    assert (server["tls"] is not None) == properties["security.protocol"].endswith("SSL")
    if server["tls"] is not None:
        assert server["tls"]["asks_client_certificate"] is (listener == "MTLS")
        assert "localhost" in server["tls"]["chain"][0]["names"]
    if mechanism is not None:
        assert set(server["sasl"]["offered"]) == set(secure_kafka.mechanisms)
        lasts = server["sasl"]["session_seconds"]
        assert (lasts is not None) == (listener == "REAUTH" or mechanism == "OAUTHBEARER")


@pytest.mark.parametrize(
    ("listener", "mechanism", "change", "step", "text"),
    [
        ("SASL_SSL", "PLAIN", {"alice-secret": "guess"}, "SASL", "Invalid username or password"),
        ("SASL_SSL", "SCRAM-SHA-512", {"alice-secret": "guess"}, "SASL", "invalid credentials"),
        ("SASL_SSL", "PLAIN", {"SASL_SSL": "SASL_PLAINTEXT"}, "ApiVersions", "a TLS listener"),
        ("SASL_PLAINTEXT", "PLAIN", {"SASL_PLAINTEXT": "SASL_SSL"}, "TLS", "plaintext listener"),
        ("SSL", None, {"SSL": "PLAINTEXT"}, "ApiVersions", "a TLS listener"),
        ("PLAINTEXT", None, {"PLAINTEXT": "SSL"}, "TLS", "plaintext listener"),
        ("SASL_SSL", None, {"SASL_SSL": "SSL"}, "Metadata", "closed the connection"),
    ],
)
def test_what_is_wrong(
    secure_kafka: SecureKafka,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    listener: str,
    mechanism: str | None,
    change: dict[str, str],
    step: str,
    text: str,
) -> None:
    properties = secure_kafka.client_properties(listener, mechanism)
    for old, new in change.items():
        properties = {
            name: value.replace(old, new) if "store" not in name else value
            for name, value in properties.items()
        }
    status, facts = check(properties, tmp_path, capsys)
    (server,) = facts["servers"]
    assert (status, server["failed_step"]) == (1, step)
    assert text in server["error"]
    assert server["advice"]


def test_no_client_certificate(
    secure_kafka: SecureKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = secure_kafka.client_properties("MTLS")
    del properties["ssl.keystore.location"], properties["ssl.keystore.type"]
    status, facts = check(properties, tmp_path, capsys)
    (server,) = facts["servers"]
    assert status == 1
    assert server["tls"]["asks_client_certificate"]
    assert server["failed_step"] == "TLS"
    assert "client certificate" in server["error"]


@pytest.mark.broker
def test_the_port_of_a_controller(
    real_kafka: RealKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: it was taken for a listener that wants a login."""
    if not real_kafka.release.kraft:
        pytest.skip("this Kafka has ZooKeeper, and no listener of a controller")
    properties = real_kafka.node(1).data_dir.with_suffix(".properties").read_text()
    address = properties.split("listeners=CONTROLLER://")[1].split(",")[0]
    status = main(["check", "-b", address, "--output", "json"])
    (server,) = json.loads(capsys.readouterr().out)["servers"]
    assert (status, server["failed_step"]) == (1, "Metadata")
    assert "this is the port of a controller, where brokers register" in server["error"]
    assert "controller.listener.names" in server["advice"]
