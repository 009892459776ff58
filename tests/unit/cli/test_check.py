"""`kafka-fast check` on the embedded broker and on worse peers: what is named, and what is advised.

Every case is run as a user does, with a properties file; as docs/troubleshooting.md says, with
`kafka-fast check --config client.properties`.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing._client_properties import write_properties_file
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.certificates import CertificateAuthority
from kafka_fast.testing.secure_broker import SecureBroker
from tests.waiting import TIMEOUT

LINES, COLUMNS = 24, 100
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)

Check = Callable[..., tuple[int, str]]
Properties = dict[str, str]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Run the command; return its status, and what it printed, with single spaces."""

    def run(properties: Mapping[str, str], *options: str) -> tuple[int, str]:
        file = write_properties_file(tmp_path / "client.properties", properties)
        status = main(["check", "--config", str(file), *options])
        shown = capsys.readouterr()
        lines = shown.out.splitlines()
        if "json" not in options:
            assert len(lines) <= LINES, "one screen for one broker"
            assert all(len(line) <= COLUMNS for line in lines)
        return status, re.sub(r"\s+", " ", shown.out or shown.err)

    return run


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def kafka(authority: CertificateAuthority) -> Iterator[SecureBroker]:
    with SecureBroker(authority, reauth_ms=9_000) as broker:
        yield broker


@pytest.fixture
def healed(kafka: SecureBroker) -> Iterator[SecureBroker]:
    yield kafka
    kafka.heal()


@pytest.fixture(scope="module")
def plaintext() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


def without(properties: Properties, *prefixes: str) -> Properties:
    return {name: value for name, value in properties.items() if not name.startswith(prefixes)}


def assert_failed(checked: tuple[int, str], step: str, *texts: str) -> None:
    """See that a check names the step at which it has ended, and says these things."""
    status, shown = checked
    assert status == 1
    assert f"FAIL {step} " in shown
    assert "to do" in shown
    for text in texts:
        assert text in shown
    assert re.search(r"not well: \d of \d \w+ cannot be used from here", shown)


# ---- what is well ----


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_all_is_well(check: Check, kafka: SecureBroker, mechanism: str) -> None:
    status, shown = check(kafka.client_properties(mechanism))
    assert status == 0
    for text in (
        f"{kafka.bootstrap} by SASL_SSL",
        "ok TCP 127.0.0.1, in ",
        "ok TLS TLSv1.3, TLS_AES_256_GCM_SHA384; trusted, and is for 127.0.0.1",
        " for localhost, 127.0.0.1, until 3000-01-01, ",
        "issued by OU=Testing CA",
        "asks for no client certificate",
        " APIs, like those of Kafka 3.9 or newer ",
        f"ok SASL {mechanism} as alice, for 9 s, then again; the broker also offers ",
        "ok Metadata cluster embedded-",
        f"node 1, advertised as {kafka.bootstrap}: see above",
        "all is well: 1 server, 1 broker",
    ):
        assert text in shown
    assert "alice-secret" not in shown


def test_plaintext(check: Check, plaintext: EmbeddedKafka) -> None:
    status, shown = check({"bootstrap.servers": plaintext.bootstrap})
    assert status == 0
    assert "TLS" not in shown
    assert "SASL" not in shown


def test_a_name(check: Check, plaintext: EmbeddedKafka) -> None:
    port = plaintext.bootstrap.rpartition(":")[2]
    status, shown = check({"bootstrap.servers": f"localhost:{port}"})
    assert status == 0
    assert "ok DNS 127.0.0.1" in shown or "ok DNS ::1, 127.0.0.1" in shown
    assert f"node 1, advertised as {plaintext.bootstrap}: ok, from DNS to Metadata" in shown


def test_tls_1_2_and_a_client_certificate(check: Check, authority: CertificateAuthority) -> None:
    with SecureBroker(authority, asks_certificates=True) as kafka:
        properties = kafka.client_properties("PLAIN")
        status, shown = check({**properties, "ssl.enabled.protocols": "TLSv1.2"})
    assert status == 0
    assert "ok TLS TLSv1.2" in shown
    assert "the broker asks for a client certificate" in shown


def test_json(check: Check, kafka: SecureBroker) -> None:
    status, shown = check(kafka.client_properties("PLAIN"), "--output", "json")
    facts: dict[str, Any] = json.loads(shown)
    assert (status, facts["ok"], facts["security_protocol"]) == (0, True, "SASL_SSL")
    (server,), (broker,) = facts["servers"], facts["brokers"]
    assert (server["address"], server["node_id"]) == (kafka.bootstrap, None)
    assert (broker["address"], broker["node_id"]) == (kafka.bootstrap, 1)
    assert server["tls"]["chain"][0]["names"] == ["localhost", "127.0.0.1"]
    assert server["sasl"]["user"] == "alice"
    assert server["sasl"]["session_seconds"] == 9.0
    assert "SCRAM-SHA-512" in server["sasl"]["offered"]


def test_a_certificate_that_ends_soon(check: Check, authority: CertificateAuthority) -> None:
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=3, hours=1)
    certificate = authority.issue("127.0.0.1", not_after=soon)
    with SecureBroker(authority, mechanisms=(), certificate=certificate) as kafka:
        status, shown = check(kafka.client_properties(None))
    assert status == 0
    assert "warn a certificate ends in 3 days: OU=Testing cert" in shown


# ---- DNS and TCP ----


def test_no_such_host(check: Check) -> None:
    checked = check({"bootstrap.servers": "no.such.host.invalid:9092"})
    assert_failed(checked, "DNS", "'no.such.host.invalid' does not resolve", "correct the name")


def test_nothing_listens(check: Check) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    checked = check({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert_failed(checked, "TCP", "Connection refused", "see whether the broker runs")


def test_one_server_of_two(check: Check, plaintext: EmbeddedKafka) -> None:
    status, shown = check({"bootstrap.servers": f"127.0.0.1:1,{plaintext.bootstrap}"})
    assert status == 1
    assert "not well: 1 of 2 servers cannot be used from here" in shown


@pytest.mark.parametrize(
    ("options", "step"), [((), "ApiVersions"), (("--tls",), "TLS")], ids=["plaintext", "TLS"]
)
def test_a_server_that_says_nothing(check: Check, options: tuple[str, ...], step: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = "{}:{}".format(*server.getsockname())
        checked = check({"bootstrap.servers": address}, "--timeout", "0.2", *options)
    assert_failed(checked, step, "accepted the connection and did not ")


# ---- TLS ----


def test_a_wrong_authority(check: Check, kafka: SecureBroker, tmp_path: Path) -> None:
    other = CertificateAuthority(tmp_path)
    properties = kafka.client_properties("PLAIN")
    properties["ssl.truststore.location"] = str(other.certificate)
    words = ("by an authority that is not trusted", "issued by OU=Testing CA", "--ca")
    assert_failed(check(properties), "TLS", *words)


def test_a_wrong_host(check: Check, authority: CertificateAuthority) -> None:
    with SecureBroker(authority, certificate=authority.issue("elsewhere.test")) as kafka:
        checked = check(kafka.client_properties("PLAIN"))
    said = "is not for 127.0.0.1: it is for elsewhere.test"
    assert_failed(checked, "TLS", said, "or have one issued for 127.0.0.1")


def test_an_expired_certificate(check: Check, authority: CertificateAuthority) -> None:
    ended = authority.issue(
        "127.0.0.1", not_before=LONG_AGO, not_after=LONG_AGO + dt.timedelta(days=3)
    )
    with SecureBroker(authority, certificate=ended) as kafka:
        checked = check(kafka.client_properties("PLAIN"))
    said = ("expired on 2020-01-04", "ended on 2020-01-04", "renew the broker's certificate")
    assert_failed(checked, "TLS", *said)


def test_no_client_certificate(check: Check, authority: CertificateAuthority) -> None:
    with SecureBroker(authority, asks_certificates=True) as kafka:
        properties = without(kafka.client_properties("PLAIN"), "ssl.keystore")
        checked = check(properties)
    assert_failed(checked, "TLS", "this client has none", "--cert and --key")


def test_tls_to_a_plaintext_port(check: Check, plaintext: EmbeddedKafka) -> None:
    checked = check({"bootstrap.servers": plaintext.bootstrap}, "--tls")
    assert_failed(checked, "TLS", "a plaintext listener?", "use security.protocol=PLAINTEXT here")


def test_plaintext_to_a_tls_port(check: Check, kafka: SecureBroker) -> None:
    checked = check({"bootstrap.servers": kafka.bootstrap})
    assert_failed(checked, "ApiVersions", "a TLS listener?", "use security.protocol=SSL (--tls)")


# ---- SASL ----


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password(check: Check, kafka: SecureBroker, mechanism: str) -> None:
    properties = kafka.client_properties(mechanism)
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("-secret", "-guess")
    checked = check(properties)
    said = f"refuses the login by {mechanism}: Authentication failed"
    assert_failed(checked, "SASL", said, "check the credentials of alice")
    assert "-guess" not in checked[1]


def test_a_mechanism_that_is_not_offered(check: Check, authority: CertificateAuthority) -> None:
    with SecureBroker(authority, mechanisms=("PLAIN", "SCRAM-SHA-256")) as kafka:
        checked = check(kafka.client_properties("SCRAM-SHA-512"))
    said = "does not offer the SASL mechanism SCRAM-SHA-512, but PLAIN, SCRAM-SHA-256"
    assert_failed(checked, "SASL", said, "sasl.mechanism: PLAIN, SCRAM-SHA-256")


def test_no_login_where_one_is_wanted(check: Check, kafka: SecureBroker) -> None:
    properties = {**kafka.client_properties(None), "security.protocol": "SSL"}
    said = "the listener may want SASL: security.protocol=SASL_SSL"
    assert_failed(check(properties), "Metadata", "closed the connection", said)


def test_a_login_where_none_is_wanted(check: Check, authority: CertificateAuthority) -> None:
    with SecureBroker(authority, mechanisms=()) as kafka:
        properties = kafka.client_properties("PLAIN") | {"security.protocol": "SASL_SSL"}
        checked = check(properties)
    assert_failed(checked, "SASL", "use security.protocol=SSL here")


def test_a_secret_without_tls_is_refused_before_anything_is_sent(check: Check) -> None:
    options = ("-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=a", "-X", "sasl.password=b")
    protocol = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT"}
    status, said = check(protocol, *options)
    assert status == 2
    assert "set security.protocol=SASL_SSL" in said


def test_a_provider_that_takes_too_long(check: Check, kafka: SecureBroker) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as provider:
        properties = kafka.client_properties("OAUTHBEARER") | {
            "sasl.oauthbearer.token.endpoint.url": "https://{}:{}".format(*provider.getsockname()),
            "sasl.oauthbearer.client.credentials.client.id": "reports",
            "sasl.oauthbearer.client.credentials.client.secret": "canary",
        }
        checked = check(properties, "--timeout", "0.5")
    assert_failed(checked, "SASL", "waits for a login: ", "give it more time: --timeout")
    assert "canary" not in checked[1]


# ---- advertised listeners ----


def advertise(kafka: EmbeddedKafka, host: str, port: int) -> None:
    """Let the broker advertise another address than the one where it listens."""

    def script(answer: Any, node_id: int) -> None:
        for broker in answer.brokers:
            broker.host, broker.port = host, port

    kafka.faults.script_metadata(script)


def test_an_advertised_name_that_is_not_known_here(check: Check, healed: SecureBroker) -> None:
    advertise(healed, "kafka.invalid", 29092)
    checked = check(healed.client_properties("PLAIN"))
    said = "node 1, advertised as kafka.invalid:29092 FAIL DNS node 1 at kafka.invalid:29092: "
    assert_failed(checked, "DNS", said, "advertised.listeners", "If it is a container")
    assert "not well: 1 of 1 broker cannot" in checked[1]


def test_an_advertised_localhost(check: Check, healed: SecureBroker) -> None:
    advertise(healed, "localhost", 1)
    checked = check(healed.client_properties("PLAIN"))
    said = "localhost:1 means each client's own machine. Let the broker advertise"
    assert_failed(checked, "TCP", "Connection refused", said, "If it is a container")


def test_no_broker_at_all(check: Check, healed: SecureBroker) -> None:
    healed.faults.script_metadata(lambda answer, node_id: answer.brokers.clear())
    status, shown = check(healed.client_properties("PLAIN"))
    assert status == 1
    assert "not well: the servers name no broker" in shown


# ---- arguments ----


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "soon"])
def test_a_timeout_that_is_none(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["check", "--timeout", seconds])
    assert caught.value.code == 2
    assert "expected seconds above 0" in capsys.readouterr().err


def test_ctrl_c_does_not_wait_for_a_step() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = "{}:{}".format(*server.getsockname())
        command = [sys.executable, "-m", "kafka_fast", "check", "-b", address, "--timeout", "600"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            silent, _ = server.accept()
            with silent:
                assert silent.recv(1), "the first request"
                process.send_signal(signal.SIGINT)
                assert process.wait(TIMEOUT) == 130
