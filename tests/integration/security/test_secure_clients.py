"""Our clients at real Kafka's secure listeners: who comes in, who does not, and what they hear."""

from __future__ import annotations

import itertools
import os
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import AuthenticationError, Consumer, Producer, TlsError
from kafka_fast.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from kafka_fast.testing._kafka.secure_kafka import (
    LISTENERS,
    MECHANISMS,
    SASL_LISTENERS,
    USERS,
    SecureKafka,
)
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(60)

TIMEOUT = 20.0
RENEWALS = 4
DOORS: list[tuple[str, str | None]] = [
    *((listener, None) for listener in LISTENERS if listener not in SASL_LISTENERS),
    *itertools.product(SASL_LISTENERS, MECHANISMS),
]
_numbers = itertools.count()


@pytest.fixture
def topic(secure_kafka: SecureKafka) -> str:
    name = f"secure-client-{next(_numbers)}"
    secure_kafka.create_topic(name)
    return name


def properties_of(
    kafka: SecureKafka, listener: str, mechanism: str | None = None, user: str = "alice"
) -> dict[str, Any]:
    """Return what a client needs; a mechanism that shows secrets is allowed without TLS."""
    if mechanism is not None and mechanism not in kafka.mechanisms:
        pytest.skip(f"Kafka 3.1: {mechanism} with signed tokens")
    config: dict[str, Any] = dict(kafka.client_properties(listener, mechanism, user=user))
    if listener == "SASL_PLAINTEXT":
        config["allow.insecure.sasl"] = True
    return config


def read(properties: dict[str, Any], topic: str, count: int, group: str) -> list[bytes]:
    """Read so many values through a group."""
    values: list[bytes] = []
    config = {**properties, "group.id": group, "auto.offset.reset": "earliest"}
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + TIMEOUT
        while len(values) < count and time.monotonic() < deadline:
            values += consumer.poll(1.0).values()
    return values


def check_write_and_read(properties: dict[str, Any], topic: str) -> None:
    """Write and read through one door, with a group of its own."""
    values = [b"%d" % number for number in range(1000)]
    with Producer(properties) as producer:
        producer.send_many(topic, values).result(TIMEOUT)
    assert sorted(read(properties, topic, 1000, f"group-of-{topic}")) == sorted(values)


@pytest.mark.parametrize(("listener", "mechanism"), DOORS)
def test_each_door(
    secure_kafka: SecureKafka, topic: str, listener: str, mechanism: str | None
) -> None:
    check_write_and_read(properties_of(secure_kafka, listener, mechanism), topic)


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_a_context_of_the_users(secure_kafka: SecureKafka, topic: str, listener: str) -> None:
    properties = properties_of(secure_kafka, listener)
    context = ssl.create_default_context(cafile=properties.pop("ssl.truststore.location"))
    del properties["ssl.truststore.type"]
    if listener == "MTLS":
        context.load_cert_chain(properties.pop("ssl.keystore.location"))
        del properties["ssl.keystore.type"]
    check_write_and_read({**properties, "ssl_context": context}, topic)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_ends_each_call_that_waits(
    secure_kafka: SecureKafka, mechanism: str
) -> None:
    properties = properties_of(secure_kafka, "SASL_SSL", mechanism)
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("-secret", "-guess")
    broker = secure_kafka.bootstrap_of("SASL_SSL")
    with Producer(properties) as producer:
        with pytest.raises(AuthenticationError) as of_send:
            producer.send("any", b"x")
        with pytest.raises(AuthenticationError):
            producer.partitions_for("any")
    with Consumer({**properties, "group.id": "g"}) as consumer:
        consumer.subscribe(["any"])
        with pytest.raises(AuthenticationError) as of_poll:
            consumer.poll(TIMEOUT)
    for raised in (of_send, of_poll):
        text = str(raised.value)
        assert mechanism in text
        assert broker in text
        assert "-guess" not in text


def test_a_password_that_is_corrected_at_the_broker_heals_the_client(
    secure_kafka: SecureKafka, topic: str
) -> None:
    secure_kafka.allow("bob", "WRITE", "DESCRIBE", topic=topic)
    properties = properties_of(secure_kafka, "SASL_SSL", "SCRAM-SHA-512", user="bob")
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("bob-secret", "new")
    with Producer(properties) as producer:
        with pytest.raises(AuthenticationError):
            producer.send(topic, b"x")
        secure_kafka.set_password("bob", "new")
        try:

            def is_in() -> bool:
                try:
                    return producer.send(topic, b"x").result(TIMEOUT).offset == 0
                except AuthenticationError:
                    return False

            eventually(is_in, "the new password is good")
        finally:
            secure_kafka.set_password("bob", "bob-secret")


def test_who_has_no_certificate_is_told(secure_kafka: SecureKafka, topic: str) -> None:
    properties = properties_of(secure_kafka, "MTLS")
    del properties["ssl.keystore.location"], properties["ssl.keystore.type"]
    with Producer(properties) as producer, pytest.raises(TlsError, match="client certificate"):
        producer.send(topic, b"x")


def test_a_broker_whose_authority_is_not_trusted(secure_kafka: SecureKafka, topic: str) -> None:
    properties = properties_of(secure_kafka, "SSL")
    del properties["ssl.truststore.location"], properties["ssl.truststore.type"]
    with Producer(properties) as producer, pytest.raises(TlsError, match="not trusted"):
        producer.send(topic, b"x")


def test_what_is_forbidden_ends_what_it_concerns(secure_kafka: SecureKafka, topic: str) -> None:
    forbidden = f"{topic}-forbidden"
    secure_kafka.create_topic(forbidden)
    secure_kafka.allow("bob", "WRITE", "READ", "DESCRIBE", topic=topic)
    properties = properties_of(secure_kafka, "SASL_SSL", "PLAIN", user="bob")
    with Producer(properties) as producer:
        with pytest.raises(TopicAuthorizationFailed, match=f"{forbidden}.*needs DESCRIBE"):
            producer.send(forbidden, b"x").result(TIMEOUT)
        assert producer.send(topic, b"x").result(TIMEOUT).offset == 0
    with Consumer({**properties, "group.id": f"forbidden-{topic}"}) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(
            GroupAuthorizationFailed, match=f"forbidden-{topic}.*READ to be a member"
        ):
            consumer.poll(TIMEOUT)


class Pair:
    """A producer and a consumer of one mechanism, on the listener whose sessions are short."""

    def __init__(self, kafka: SecureKafka, mechanism: str, topic: str, stack: ExitStack) -> None:
        properties = properties_of(kafka, "REAUTH", mechanism)
        config = {
            **properties,
            "group.id": f"sessions-of-{topic}",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 300,
            "auto.commit.interval.ms": 100,
        }
        self.topic = topic
        self.producer = stack.enter_context(Producer({**properties, "linger.ms": 0}))
        self.consumer = stack.enter_context(Consumer(config))
        self.consumer.subscribe([topic])
        self.sent: list[bytes] = []
        self.got: list[bytes] = []

    def send(self) -> None:
        """Send the next number, always to the same partition."""
        value = b"%d" % len(self.sent)
        self.producer.send(self.topic, value, partition=0)
        self.sent.append(value)

    def read(self) -> bool:
        """Take what is there; return whether everything that was sent is."""
        self.got += self.consumer.poll(0.01).values()
        return len(self.got) >= len(self.sent)

    def has_renewed(self) -> bool:
        """Tell whether both clients have logged in again a few times."""
        clients = (self.producer, self.consumer)
        return all(client.metrics()["logins"].get("renewed", 0) >= RENEWALS for client in clients)

    def check(self) -> None:
        """See that everything is there once and in order, and that links were kept."""
        assert self.got == self.sent
        for client in (self.producer, self.consumer):
            metrics = client.metrics()
            assert metrics["failed_logins"] == {}
            # On a busy machine a request may come to the broker after the session's end.
            assert 2 * sum(metrics["links_closed"].values()) <= metrics["logins"]["renewed"]


def test_sessions_end_and_nothing_is_lost(secure_kafka: SecureKafka, topic: str) -> None:
    """Sessions of two seconds: every link logs in again and again, under way and idle."""
    with ExitStack() as stack:
        pairs = []
        for number, mechanism in enumerate(secure_kafka.mechanisms):
            own = f"{topic}-{number}"
            secure_kafka.create_topic(own)
            pairs.append(Pair(secure_kafka, mechanism, own, stack))

        def go_on() -> bool:
            for pair in pairs:
                pair.send()
                pair.read()
            return all(pair.has_renewed() for pair in pairs)

        eventually(go_on, "logins that are renewed")
        for pair in pairs:
            assert pair.producer.flush(TIMEOUT) == 0
            eventually(pair.read, "what was sent")
            pair.check()


def test_a_properties_file_of_confluent_cloud(
    secure_kafka: SecureKafka, topic: str, tmp_path: Path
) -> None:
    """The file as the console offers it, but for host and secrets; the CA is the system's."""
    file = tmp_path / "client.properties"
    file.write_text(
        f"""\
# Required connection configs for Kafka producer, consumer, and admin
bootstrap.servers={secure_kafka.bootstrap_of("SASL_SSL")}
security.protocol=SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username='alice' password='{USERS["alice"]}';
sasl.mechanism=PLAIN
# Required for correctness in Apache Kafka clients prior to 2.6
client.dns.lookup=use_all_dns_ips

# Best practice for higher availability in Apache Kafka clients prior to 3.0
session.timeout.ms=45000

# Best practice for Kafka producer to prevent data loss
acks=all

# Required connection configs for Confluent Cloud Schema Registry
schema.registry.url=https://psrc-00000.eu-central-1.aws.confluent.cloud
basic.auth.credentials.source=USER_INFO
basic.auth.user.info=KEY:SECRET
"""
    )
    environment = {**os.environ, "SSL_CERT_FILE": str(secure_kafka.authority.certificate)}

    def command(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "kafka_fast", *arguments, "--config", str(file)],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("produce", topic, stdin="hello\n")
    assert "hello" in command("consume", topic, "--from", "beginning", "--until", "end")


def test_a_refused_client_does_not_storm_the_broker(secure_kafka: SecureKafka) -> None:
    properties = properties_of(secure_kafka, "SASL_SSL", "PLAIN")
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("-secret", "-guess")
    properties |= {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000}
    with Producer(properties) as producer:
        began = time.monotonic()

        def has_failed_often() -> bool:
            with pytest.raises(AuthenticationError):
                producer.send("any", b"x")
            return producer.metrics()["failed_logins"]["AuthenticationError"] >= 5

        eventually(has_failed_often, "five refusals")
        # Four pauses, of 50 to 400 ms, each up to a fifth shorter by chance.
        assert time.monotonic() - began > 0.8 * 0.75
