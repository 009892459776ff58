"""The harness's secure listeners, with other people's clients: each must let in whom it should."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiokafka
import aiokafka.abc
import confluent_kafka
import confluent_kafka.admin
import pytest

from kafka_fast.errors import SaslAuthenticationFailed
from kafka_fast.protocol.apis.security.sasl_authenticate import SaslAuthenticateRequest
from kafka_fast.protocol.apis.security.sasl_handshake import SaslHandshakeRequest
from kafka_fast.testing._kafka.secure_kafka import (
    LISTENERS,
    MECHANISMS,
    SASL_LISTENERS,
    SecureKafka,
)
from tests.integration.scenarios.sasl import log_in
from tests.integration.scenarios.wire import connected
from tests.integration.security.secure_peers import context, for_librdkafka, for_python_clients
from tests.waiting import eventually, killed

pytestmark = pytest.mark.filterwarnings("ignore")  # the other clients' own warnings are theirs

TIMEOUT = 15.0
DOORS = [
    *((listener, None) for listener in LISTENERS if listener not in SASL_LISTENERS),
    *itertools.product(SASL_LISTENERS, MECHANISMS),
]
_numbers = itertools.count()


@pytest.fixture
def topic(secure_kafka: SecureKafka) -> str:
    name = f"secure-{next(_numbers)}"
    secure_kafka.create_topic(name)
    return name


def check_offered(kafka: SecureKafka, mechanism: str | None) -> None:
    if mechanism is not None and mechanism not in kafka.mechanisms:
        pytest.skip(f"Kafka 3.1: {mechanism} with signed tokens")


def confluent_error(properties: dict[str, str], topic: str, timeout_ms: int = 10_000) -> str | None:
    """Send one record; return the name of what happened to it, None: it is in the log."""
    producer = confluent_kafka.Producer(
        {**for_librdkafka(properties), "message.timeout.ms": timeout_ms, "log_level": 0}
    )
    told: list[confluent_kafka.KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, record: told.append(error))
    assert producer.flush(TIMEOUT) == 0
    return None if told[0] is None else str(told[0].name())


@pytest.mark.parametrize(("listener", "mechanism"), DOORS)
def test_confluent_writes_through_each_door(
    secure_kafka: SecureKafka, topic: str, listener: str, mechanism: str | None
) -> None:
    check_offered(secure_kafka, mechanism)
    assert confluent_error(secure_kafka.client_properties(listener, mechanism), topic) is None


class AioToken(aiokafka.abc.AbstractTokenProvider):
    """Says one token, as aiokafka asks for it."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def token(self) -> str:
        return self._text


ONE_DOOR_EACH = [("MTLS", None), *(("SASL_SSL", mechanism) for mechanism in MECHANISMS)]


@pytest.mark.parametrize(("listener", "mechanism"), ONE_DOOR_EACH)
def test_aiokafka_writes(
    secure_kafka: SecureKafka, topic: str, listener: str, mechanism: str | None
) -> None:
    check_offered(secure_kafka, mechanism)
    arguments = for_python_clients(secure_kafka.client_properties(listener, mechanism))
    if mechanism == "OAUTHBEARER":
        arguments["sasl_oauth_token_provider"] = AioToken(secure_kafka.provider.token("alice"))

    async def write() -> int:
        async with aiokafka.AIOKafkaProducer(**arguments) as producer:
            sent = await producer.send_and_wait(topic, b"x")
            return int(sent.offset)

    assert asyncio.run(asyncio.wait_for(write(), TIMEOUT)) == 0


@pytest.mark.parametrize(("listener", "mechanism"), ONE_DOOR_EACH)
def test_kafka_python_writes(
    secure_kafka: SecureKafka, topic: str, listener: str, mechanism: str | None
) -> None:
    check_offered(secure_kafka, mechanism)
    import kafka  # warns when it is imported
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Token(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return secure_kafka.provider.token("alice")

    arguments = for_python_clients(secure_kafka.client_properties(listener, mechanism))
    if mechanism == "OAUTHBEARER":
        arguments["sasl_oauth_token_provider"] = Token()
    producer = kafka.KafkaProducer(**arguments)
    try:
        assert producer.send(topic, b"x").get(TIMEOUT).offset == 0
    finally:
        producer.close()


def test_who_has_no_certificate_or_a_wrong_password_stays_outside(
    secure_kafka: SecureKafka, topic: str
) -> None:
    without = secure_kafka.client_properties("MTLS")
    del without["ssl.keystore.type"], without["ssl.keystore.location"]
    assert confluent_error(without, topic, 1_000) == "_MSG_TIMED_OUT"
    wrong = secure_kafka.client_properties("SASL_SSL", "SCRAM-SHA-512")
    wrong["sasl.jaas.config"] = wrong["sasl.jaas.config"].replace("alice-secret", "guess")
    assert confluent_error(wrong, topic, 1_000) == "_MSG_TIMED_OUT"


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [("MTLS", None), ("SASL_SSL", "PLAIN"), ("SASL_SSL", "OAUTHBEARER")],
)
def test_bob_may_do_what_he_is_allowed(
    secure_kafka: SecureKafka, topic: str, listener: str, mechanism: str | None
) -> None:
    check_offered(secure_kafka, mechanism)
    bob = secure_kafka.client_properties(listener, mechanism, user="bob")
    assert confluent_error(bob, topic) == "TOPIC_AUTHORIZATION_FAILED"
    secure_kafka.allow("bob", "WRITE", topic=topic)
    assert confluent_error(bob, topic) is None
    secure_kafka.deny("bob", "WRITE", topic=topic)
    assert confluent_error(bob, topic) == "TOPIC_AUTHORIZATION_FAILED"


def test_a_password_can_be_changed(secure_kafka: SecureKafka, topic: str) -> None:
    secure_kafka.allow("bob", "WRITE", topic=topic)
    old = secure_kafka.client_properties("SASL_SSL", "SCRAM-SHA-256", user="bob")
    new = {**old, "sasl.jaas.config": old["sasl.jaas.config"].replace("bob-secret", "another")}
    secure_kafka.set_password("bob", "another")
    try:
        assert confluent_error(new, topic) is None
        assert confluent_error(old, topic, 1_000) == "_MSG_TIMED_OUT"
    finally:
        secure_kafka.set_password("bob", "bob-secret")


@pytest.mark.parametrize("token", ["expired", "audience", "issuer", "signature"])
def test_a_token_that_is_not_good_is_refused(
    secure_kafka: SecureKafka, topic: str, token: str
) -> None:
    check_offered(secure_kafka, "OAUTHBEARER")
    provider = secure_kafka.provider
    head, _, signature = provider.token("alice").rpartition(".")
    bad = {
        "expired": provider.token("alice", lifetime=-3600.0),
        "audience": provider.token("alice", aud="other"),
        "issuer": provider.token("alice", iss="https://other.test"),
        "signature": f"{head}.{signature[::-1]}",
    }[token]

    with connected(secure_kafka.bootstrap_of("SASL_PLAINTEXT")) as client:
        handshake = client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        assert handshake.error_code == 0
        first = SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {bad}\x01\x01".encode())
        challenge = client.ask(first, 2)
        assert json.loads(challenge.auth_bytes)["status"] == "invalid_token"
        end = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        assert end.error_code == SaslAuthenticationFailed.code
        assert client.is_closed()


def test_sessions_of_one_listener_end(secure_kafka: SecureKafka) -> None:
    properties = secure_kafka.client_properties("REAUTH", "SCRAM-SHA-512")
    with connected(properties["bootstrap.servers"], context(properties)) as client:
        for _ in range(2):
            answer = log_in(client, "SCRAM-SHA-512", "alice", "alice-secret")
            assert (answer.error_code, answer.session_lifetime_ms) == (0, 2000)
        assert client.metadata(version=7).brokers


@pytest.mark.long  # starts a broker of its own
def test_the_command_writes_properties_for_each_door(secure_kafka: SecureKafka) -> None:
    command = [sys.executable, "-m", "kafka_fast.testing.real_kafka", "start", "--secure"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process,
        killed(process),
    ):
        assert process.stdout is not None
        lines = list(itertools.takewhile(lambda line: "users:" not in line, process.stdout))
        paths = [Path(line.strip()) for line in lines[1:]]
        text = next(path for path in paths if path.name == "sasl_ssl-plain.properties").read_text()
        properties = dict(line.split("=", 1) for line in text.splitlines())
        assert len(paths) == 1 + len(DOORS)
        admin = confluent_kafka.admin.AdminClient(for_librdkafka(properties))
        assert set(admin.list_topics(timeout=TIMEOUT).brokers) == {1}
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    eventually(lambda: not paths[0].parent.exists(), "the end of the properties")
