"""The embedded broker with TLS and users: other people's clients get in, nobody else does."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator

import aiokafka
import aiokafka.abc
import confluent_kafka
import pytest

from kafka_fast.testing.broker.security import MECHANISMS, Security
from kafka_fast.testing.broker.versions import SASL_AUTHENTICATE
from kafka_fast.testing.certificates import CertificateAuthority
from kafka_fast.testing.secure_broker import SecureBroker
from tests.integration.scenarios.sasl import authenticate, handshake, log_in, plain
from tests.integration.scenarios.wire import ClosedError, WireClient, batch
from tests.integration.security.secure_peers import for_librdkafka, for_python_clients

pytestmark = pytest.mark.filterwarnings("ignore")  # the other clients' own warnings are theirs

TIMEOUT = 15.0
ALICE = ("alice", "alice-secret")


@pytest.fixture
def trust(secure_broker: SecureBroker) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(secure_broker.authority.certificate))


@pytest.fixture
def client(secure_broker: SecureBroker, trust: ssl.SSLContext) -> Iterator[WireClient]:
    made = WireClient(secure_broker.bootstrap, trust)
    yield made
    made.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_confluent_writes(secure_broker: SecureBroker, mechanism: str) -> None:
    properties = secure_broker.client_properties(mechanism)
    producer = confluent_kafka.Producer(for_librdkafka(properties))
    for _ in range(500):
        producer.produce("t", b"x" * 1000)
    assert producer.flush(TIMEOUT) == 0
    assert len(secure_broker.records("t")) == 500


class Token(aiokafka.abc.AbstractTokenProvider):
    def __init__(self, text: str) -> None:
        self._text = text

    async def token(self) -> str:
        return self._text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_writes(secure_broker: SecureBroker, mechanism: str) -> None:
    arguments = for_python_clients(secure_broker.client_properties(mechanism))
    if mechanism == "OAUTHBEARER":
        arguments["sasl_oauth_token_provider"] = Token(secure_broker.token("alice"))

    async def write() -> None:
        async with aiokafka.AIOKafkaProducer(**arguments) as producer:
            await producer.send_and_wait("t", b"x" * 100_000)

    asyncio.run(asyncio.wait_for(write(), TIMEOUT))
    assert secure_broker.records("t")[0].value == b"x" * 100_000


def test_a_certificate_says_who_it_is(certificate_authority: CertificateAuthority) -> None:
    with SecureBroker(certificate_authority, mechanisms=(), asks_certificates=True) as kafka:
        kafka.create_topic("t")
        assert kafka.security_protocol == "SSL"
        alice = confluent_kafka.Producer(for_librdkafka(kafka.client_properties(None)))
        alice.produce("t", b"x")
        assert alice.flush(TIMEOUT) == 0
        assert len(kafka.records("t")) == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_without_a_certificate_there_is_no_answer(
    certificate_authority: CertificateAuthority, version: ssl.TLSVersion
) -> None:
    trust = ssl.create_default_context(cafile=str(certificate_authority.certificate))
    trust.maximum_version = version
    with SecureBroker(certificate_authority, mechanisms=(), asks_certificates=True) as kafka:
        host, port = kafka.bootstrap.split(":")
        with (
            pytest.raises(ssl.SSLError, match=r"(?i)alert"),
            socket.create_connection((host, int(port)), TIMEOUT) as raw,
            trust.wrap_socket(raw, server_hostname=host) as secured,
        ):
            secured.recv(1)  # TLS 1.3 tells only now


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"]
)
def test_who_speaks_no_tls_is_refused(secure_broker: SecureBroker, data: bytes) -> None:
    host, port = secure_broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as raw:
        raw.sendall(data)
        while raw.recv(1000):
            pass  # an alert, then the end


def test_the_handshake_may_come_in_single_bytes(
    secure_broker: SecureBroker, trust: ssl.SSLContext
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = trust.wrap_bio(incoming, outgoing, server_hostname="localhost")
    host, port = secure_broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    raw.sendall(bytes([byte]))
                incoming.write(raw.recv(100_000))
        assert session.version() == "TLSv1.3"


def test_the_end_is_told(secure_broker: SecureBroker, trust: ssl.SSLContext) -> None:
    client = WireClient(secure_broker.bootstrap, trust)
    with pytest.raises(ClosedError):
        client.metadata()
    client.close()


def test_a_client_may_say_that_it_ends(secure_broker: SecureBroker, trust: ssl.SSLContext) -> None:
    host, port = secure_broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as raw:
        trust.wrap_socket(raw, server_hostname=host).unwrap().close()  # waits for the answer


def test_large_answers_come_whole(secure_broker: SecureBroker, client: WireClient) -> None:
    log_in(client, "PLAIN", *ALICE)
    secure_broker.create_topic("t")
    secure_broker.produce("t", ["x" * 1_000_000] * 3)
    data = client.fetch("t", 0, max_bytes=1 << 23, partition_max_bytes=1 << 23)
    assert data.records is not None
    assert len(data.records) > 3_000_000
    assert client.produce("t", batch()).error_code == 0


def test_sessions_can_be_ended(secure_broker: SecureBroker, client: WireClient) -> None:
    log_in(client, "PLAIN", *ALICE)
    assert client.metadata().brokers
    secure_broker.expire_sessions()
    with pytest.raises(ClosedError):
        client.metadata()


def test_an_ended_session_can_go_on(secure_broker: SecureBroker, client: WireClient) -> None:
    log_in(client, "PLAIN", *ALICE)
    secure_broker.expire_sessions()
    assert log_in(client, "PLAIN", *ALICE).error_code == 0
    assert client.metadata().brokers


def test_faults_strike_authentication(secure_broker: SecureBroker, client: WireClient) -> None:
    secure_broker.faults.error(SASL_AUTHENTICATE, 58, count=1)
    handshake(client, "PLAIN")
    answer = authenticate(client, plain(*ALICE))
    assert (answer.error_code, answer.error_message) == (58, "refused on purpose")
    assert client.is_closed()


def test_a_password_can_be_changed(
    secure_broker: SecureBroker, trust: ssl.SSLContext, client: WireClient
) -> None:
    assert log_in(client, "SCRAM-SHA-256", *ALICE).error_code == 0
    secure_broker.set_password("alice", "new")
    assert client.metadata().brokers  # the session goes on
    for password, code in (("new", 0), ("alice-secret", 58)):
        other = WireClient(secure_broker.bootstrap, trust)
        assert log_in(other, "SCRAM-SHA-256", "alice", password).error_code == code
        other.close()


def test_many_iterations(certificate_authority: CertificateAuthority) -> None:
    trust = ssl.create_default_context(cafile=str(certificate_authority.certificate))
    with SecureBroker(certificate_authority, scram_iterations=100_000) as kafka:
        client = WireClient(kafka.bootstrap, trust)
        assert log_in(client, "SCRAM-SHA-512", *ALICE).error_code == 0
        client.close()


def test_clients_are_told_when_to_authenticate_again(
    certificate_authority: CertificateAuthority,
) -> None:
    trust = ssl.create_default_context(cafile=str(certificate_authority.certificate))
    with SecureBroker(certificate_authority, reauth_ms=5000) as kafka:
        client = WireClient(kafka.bootstrap, trust)
        assert log_in(client, "PLAIN", *ALICE).session_lifetime_ms == 5000
        handshake(client, "PLAIN")
        assert authenticate(client, plain(*ALICE), version=0).error_code == 0
        client.close()


@pytest.mark.parametrize("wrong", [{"mechanisms": ["GSSAPI"]}, {"scram_iterations": 1000}])
def test_what_kafka_has_not_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"GSSAPI|1000 iterations"):
        Security(**wrong)  # type: ignore[arg-type]


def test_a_client_without_tls_ends_with_a_reason(
    secure_broker: SecureBroker, caplog: pytest.LogCaptureFixture
) -> None:
    plaintext = WireClient(secure_broker.bootstrap)
    plaintext.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ClosedError):
        plaintext.receive()  # an alert, which is no frame
    plaintext.close()
    (record,) = [line for line in caplog.records if line.name.startswith("kafka_fast.testing")]
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("node 1 ends a TLS session: ")
