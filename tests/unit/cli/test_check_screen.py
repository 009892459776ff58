"""The screen of `kafka-fast check`: every line of it for findings that no test broker can make."""

from __future__ import annotations

import calendar
import re
import time
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.cli.check.screen import screen
from kafka_fast.cli.check.verdict import is_loopback, is_well
from kafka_fast.config import Address, ConsumerSettings, consumer_settings
from kafka_fast.errors import KafkaConnectionError, TlsError
from kafka_fast.net.probe import CertificateFacts, ClusterProbe, Probed, Release, Step, TlsFacts
from kafka_fast.net.tls.causes import Failure
from kafka_fast.net.tls.connector import told
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse, MetadataResponseBroker
from kafka_fast.values import replace

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"

YEAR = 365 * 86_400


def settings(protocol: str = "PLAINTEXT", **more: Any) -> ConsumerSettings:
    return consumer_settings({"bootstrap.servers": "x", "security.protocol": protocol, **more})


def metadata(cluster_id: str | None = "c-1") -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=1, host="broker1", port=9093)]
    return MetadataResponse(brokers=brokers, cluster_id=cluster_id)


def well(host: str = "broker1", **more: Any) -> Probed:
    """Return an address where everything is well."""
    facts = {
        "node_id": None,
        "address": Address(host, 9093),
        "reached": Step.METADATA,
        "ips": ("10.0.0.7",),
        "ip": "10.0.0.7",
        "connect_seconds": 0.0004,
        "api_count": 60,
        "release": Release("4.4", is_told=True),
        "metadata": metadata(),
    }
    return Probed(**{**facts, **more})


def failed(step: Step, error: str, **more: Any) -> Probed:
    return well(reached=step, error=KafkaConnectionError(error), metadata=None, **more)


def shown(*servers: Probed, brokers: tuple[Probed, ...] = (), **more: Any) -> list[str]:
    ids = tuple(more.pop("cluster_ids", ("c-1",)))
    probe = ClusterProbe(servers=servers, brokers=brokers, cluster_ids=ids)
    return list(screen(probe, settings(**more)))


def broker(**more: Any) -> Probed:
    return well(node_id=1, **more)


def certificate(**more: Any) -> CertificateFacts:
    facts = {
        "subject": "CN=broker1",
        "issuer": "CN=Example CA",
        "names": ("broker1",),
        "not_before": 0,
        "not_after": int(time.time()) + YEAR + 60,
    }
    return CertificateFacts(**{**facts, **more})


def test_the_pages_example() -> None:
    """Of docs/command-line.md."""
    found_here = re.search(r"(?ms)^broker1:9093 by.*?^not well.*?$", PAGE.read_text())
    assert found_here is not None
    example = found_here[0]
    ended = calendar.timegm((2026, 3, 1, 0, 0, 0))
    text = "broker1:9093 [10.0.0.7]: its certificate (CN=broker1) expired on 2026-03-01 00:00 UTC"
    probed = failed(Step.TLS, "", tls=TlsFacts(chain=(certificate(not_before=0, not_after=ended),)))
    probed.error = TlsError(text)
    protocol: dict[str, Any] = {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
    }
    lines = shown(probed, protocol="SASL_SSL", **protocol)
    words = [re.sub(r"\s+", " ", block) for block in ("\n".join(lines), example)]
    pattern = re.escape(words[1]).replace(re.escape("(...)"), r"\([^()]*\)")
    assert re.fullmatch(pattern, words[0])
    assert lines[:4] == example.splitlines()[:4]


def test_what_a_broker_sends_stays_in_its_place() -> None:
    evil = "\x1b[2J\nnode 1: ok\u202e" + "long " * 40
    facts = TlsFacts(version="TLSv1.3", chain=(certificate(subject=evil, names=(evil,)),))
    lines = shown(well(tls=facts, metadata=metadata(evil)), protocol="SSL")
    assert all(len(line) <= 100 and line.isprintable() for line in lines)
    assert not any(line.startswith("node 1") for line in lines)


def test_long_lists_are_cut() -> None:
    chain = tuple(certificate(names=[f"host{n}" for n in range(100)]) for _ in range(9))
    ips = tuple(f"10.0.0.{n}" for n in range(40))
    lines = shown(well(tls=TlsFacts(version="TLSv1.3", chain=chain), ips=ips), protocol="SSL")
    text = "\n".join(lines)
    assert "10.0.0.5 and 34 more" in text
    assert "host5 and 94 more" in text
    assert "and 6 more certificates" in text
    assert len(lines) <= 24


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, "trusted, and is for broker1"),
        ({"ssl.endpoint.identification.algorithm": ""}, "trusted, but its names are not checked"),
        ({"enable.ssl.certificate.verification": False}, "the certificate is not checked at all"),
    ],
)
def test_what_was_checked(properties: dict[str, Any], text: str) -> None:
    facts = TlsFacts(version="TLSv1.3", cipher="X", chain=(certificate(),))
    lines = shown(well(tls=facts), protocol="SSL", **properties)
    assert f"TLSv1.3, X; {text}" in "\n".join(lines)
    assert "365 days" in "\n".join(lines)


def test_an_address_that_does_not_answer_beside_one_that_does() -> None:
    slow = {"::1": "no answer within 10 s", "10.0.0.9": "Connection refused"}
    text = "\n".join(shown(well(unreachable=slow), brokers=(broker(),)))
    assert "(::1: no answer within 10 s; 10.0.0.9: Connection refused)" in text
    assert "  warn               ::1: no answer within 10 s; a client" in text
    assert "warn               10.0.0.9" not in text
    assert "all is well: 1 server, 1 broker" in text


def test_servers_of_different_clusters() -> None:
    text = "\n".join(shown(well(), well("other"), brokers=(broker(),), cluster_ids=("a", "b")))
    assert "warn  cluster      the servers are of several: a, b" in text


def test_a_broker_elsewhere_that_advertises_localhost_and_something_answers_here() -> None:
    """It may be another broker, on this very machine: nothing has failed, and all is wrong."""
    text = " ".join(" ".join(shown(well(), brokers=(broker(host="localhost"),))).split())
    assert "warn advertised a broker elsewhere advertises localhost" in text
    here = " ".join(shown(well(ip="127.0.0.1"), brokers=(broker(host="localhost"),)))
    assert "warn" not in here


@pytest.mark.parametrize(
    ("step", "error", "text"),
    [
        (Step.TCP, "did not accept the connection within 10 s", "look for a firewall"),
        (Step.METADATA, "REBOOTSTRAP_REQUIRED (129)", "correct the broker's advertised.listeners"),
        (Step.API_VERSIONS, "talks like an HTTP server", "see whether a Kafka broker listens"),
    ],
)
def test_advice(step: Step, error: str, text: str) -> None:
    protocol: dict[str, Any] = {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"}
    lines = shown(failed(step, error), protocol="SASL_PLAINTEXT", **protocol)
    assert text in " ".join(" ".join(lines).split())


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(verify=9, not_before=1), "look at this machine's clock"),
        (Failure(verify=10, not_after=1), "renew the broker's certificate"),
        (Failure(verify=18), "get the CA's certificate"),
        (Failure(verify=20), "get the CA's certificate"),
        (Failure(verify=23), "have another certificate issued to the broker"),
        (Failure(verify=62, names="b"), "have one issued for broker1"),
        (Failure(verify=67), "ask the owner of the broker"),
        (Failure(reason="tlsv1 alert protocol version"), "allow TLS 1.2 or 1.3"),
        (Failure(reason="sslv3 alert handshake failure"), "compare ssl.cipher.suites"),
        (Failure(reason="sslv3 alert bad certificate"), "which authority must issue"),
        (Failure(reason="sslv3 alert bad certificate", was_asked=True), "--cert and --key"),
        (Failure(reason="wrong version number"), "use security.protocol=PLAINTEXT here"),
        (Failure(is_closed=True), "use security.protocol=PLAINTEXT here"),
        (Failure(is_late=True, head=b"\x16"), "look at the broker's log; is the port"),
    ],
)
def test_advice_on_tls(failure: Failure, text: str) -> None:
    """For the client's own words: whoever changes these changes the advice, too."""
    error = str(told(failure, "broker1", "SSL"))
    lines = shown(failed(Step.TLS, error), protocol="SSL")
    assert text in " ".join(" ".join(lines).split())


def test_an_advertised_address_that_nothing_answers() -> None:
    probed = replace(failed(Step.TCP, "did not accept"), node_id=1, address=Address("10.1.1.1", 9))
    text = " ".join(" ".join(shown(well(), brokers=(probed,))).split())
    assert "nothing is reached at 10.1.1.1:9 from here" in text
    assert "not well: 1 of 1 broker cannot be used from here" in text
    assert not is_well(ClusterProbe(servers=(well(),), brokers=(probed,), cluster_ids=()))


@pytest.mark.parametrize(
    ("host", "loops"),
    [
        ("localhost", True),
        ("LocalHost.", True),
        ("127.3.2.1", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("10.0.0.1", False),
        ("broker", False),
    ],
)
def test_what_means_ones_own_machine(host: str, loops: bool) -> None:
    assert is_loopback(host) is loops


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (Release("4.4", is_told=True), "60 APIs; the broker is Kafka 4.4"),
        (Release("2.8", is_told=False), "60 APIs, like those of Kafka 2.8"),
        (None, "60 APIs"),
    ],
)
def test_what_is_known_of_the_release(release: Release | None, text: str) -> None:
    assert f"  ok    ApiVersions  {text}" in shown(well(release=release))
