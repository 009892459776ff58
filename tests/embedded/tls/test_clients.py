"""Whole clients over TLS: a producer and a consumer, with a broker behind a TLS proxy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast import TopicPartition
from kafka_fast.config import CommonSettings
from kafka_fast.control.messages import OpenLink
from kafka_fast.errors import ConfigError, TlsError
from kafka_fast.net import threaded_host
from kafka_fast.net.sockets import Connecting, begin_connect
from kafka_fast.secret import Secret
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.values import replace
from tests.embedded.consuming import MakeConsumer
from tests.embedded.producing import MakeProducer, send_and_check
from tests.embedded.tls.harness import server_context
from tests.embedded.tls.making import as_pkcs12
from tests.embedded.tls.servers import Server, terminating
from tests.unit.canary import CANARY, traces
from tests.waiting import TIMEOUT, eventually

Secure = dict[str, object]
"""Properties of a client that speaks TLS."""


@pytest.fixture
def proxies(kafka: EmbeddedKafka, certificate: Certificate) -> Iterator[dict[int, Server]]:
    """A proxy with TLS in front of each broker, by the broker's port."""
    ports = [int(address.rpartition(":")[2]) for address in kafka.bootstrap.split(",")]
    made = {port: Server(terminating(server_context(certificate), port)) for port in ports}
    yield made
    for one in made.values():
        one.__exit__()


@pytest.fixture
def secure(
    proxies: dict[int, Server],
    way: str,
    authority: CertificateAuthority,
    monkeypatch: pytest.MonkeyPatch,
) -> Secure:
    """Have the clients of this test connect to the proxies, and return what they need for it."""
    monkeypatch.setenv("KAFKA_FAST_TLS", way)

    def connect(command: OpenLink, settings: CommonSettings) -> Connecting:
        return begin_connect(replace(command, port=proxies[command.port].port), settings)

    monkeypatch.setattr(threaded_host, "begin_connect", connect)
    return {"security_protocol": "SSL", "ssl_ca_location": str(authority.certificate)}


def test_records_go_out_and_come_back(
    secure: Secure,
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
    consumer_on: MakeConsumer,
) -> None:
    send_and_check(kafka, producer_on(**secure), topic)
    large = producer_on(batch_size=1_000_000, **secure)
    for number in range(40):
        large.send(topic, bytes([number]) * 100_000)
    large.flush(TIMEOUT)
    consumer = consumer_on(**secure)
    consumer.assign([TopicPartition(topic, 0)])
    values: list[bytes] = []
    eventually(lambda: values.extend(r.value for r in consumer.poll(0.2)) or len(values) == 140)
    assert values[100:] == [bytes([number]) * 100_000 for number in range(40)]


def test_lost_connections_lose_no_record(
    secure: Secure,
    proxies: dict[int, Server],
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
) -> None:
    producer = producer_on(linger_ms=1, **secure)
    futures = []
    for number in range(300):
        futures.append(producer.send(topic, b"%d" % number))
        if number % 50 == 49:
            producer.flush(TIMEOUT)
            for proxy in proxies.values():
                proxy.cut()
    assert [future.result(TIMEOUT).offset for future in futures] == list(range(300))


def test_the_cause_is_in_the_error_of_a_call(
    secure: Secure, topic: str, producer_on: MakeProducer
) -> None:
    del secure["ssl_ca_location"]
    producer = producer_on(max_block_ms=5_000, **secure)
    with pytest.raises(TlsError, match="not trusted"):
        producer.partitions_for(topic)


def test_a_key_that_is_no_certificate_is_an_error_of_the_constructor(
    secure: Secure, producer_on: MakeProducer, certificate: Certificate
) -> None:
    location = str(certificate.key)
    with pytest.raises(ConfigError, match="certificate"):
        producer_on(ssl_keystore_location=location, **secure)


def test_errors_of_the_constructor_hold_no_password(
    secure: Secure, producer_on: MakeProducer, certificate: Certificate, tmp_path: Path
) -> None:
    """Not in a frame either: those who report errors report their variables, too."""
    store = as_pkcs12(certificate, tmp_path / "store", b"another")
    with pytest.raises(ConfigError, match="password is wrong") as caught:
        producer_on(
            ssl_keystore_location=str(store), ssl_keystore_password=Secret(CANARY), **secure
        )
    assert traces(caught.value) == []
    with pytest.raises(ConfigError, match="cannot be written in UTF-8") as caught:
        producer_on(
            ssl_keystore_location=str(store),
            ssl_keystore_password=Secret(CANARY + "\udcff"),
            **secure,
        )
    assert traces(caught.value) == []


# The clients' threads are what Python means, and what this test is about.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_process_leaves_the_connections_alone(
    secure: Secure, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(**secure)
    send_and_check(kafka, producer, topic)
    child = os.fork()
    if child == 0:
        del producer
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    send_and_check(kafka, producer, topic)
