"""Whole clients over TLS: a producer and a consumer, with a broker behind a TLS proxy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from kafka_fast import TopicPartition
from kafka_fast.config import CommonSettings
from kafka_fast.config._security_settings import Store, TlsSettings
from kafka_fast.control.messages import OpenLink
from kafka_fast.errors import ConfigError, KafkaTimeoutError
from kafka_fast.net import threaded_host
from kafka_fast.net.sockets import Connecting, begin_connect
from kafka_fast.net.tls.connector import TlsConnector, make_connector
from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.testing.certificates import Certificate
from kafka_fast.values import replace
from tests.net.producing import MakeProducer, send_and_check
from tests.net.consuming import MakeConsumer
from tests.net.tls.harness import server_context
from tests.net.tls.servers import Server, terminating
from tests.waiting import TIMEOUT, eventually

SetUp = Callable[[TlsSettings], None]


@pytest.fixture
def proxies(kafka: EmbeddedKafka, certificate: Certificate) -> Iterator[dict[int, Server]]:
    """A proxy with TLS in front of each broker, by the broker's port."""
    ports = [int(address.rpartition(":")[2]) for address in kafka.bootstrap.split(",")]
    made = {port: Server(terminating(server_context(certificate), port)) for port in ports}
    yield made
    for one in made.values():
        one.__exit__()


@pytest.fixture
def speak(
    proxies: dict[int, Server], way: str, monkeypatch: pytest.MonkeyPatch
) -> SetUp:
    """Have the clients of this test speak TLS, and connect to the proxies instead."""
    monkeypatch.setenv("KAFKA_FAST_TLS", way)

    def set_up(tls: TlsSettings) -> None:
        def connector(settings: CommonSettings) -> TlsConnector | None:
            return make_connector(replace(settings, tls=tls))

        def connect(command: OpenLink, settings: CommonSettings) -> Connecting:
            return begin_connect(replace(command, port=proxies[command.port].port), settings)

        monkeypatch.setattr(threaded_host, "make_connector", connector)
        monkeypatch.setattr(threaded_host, "begin_connect", connect)

    return set_up


def test_records_go_out_and_come_back(
    speak: SetUp,
    settings: TlsSettings,
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
    consumer_on: MakeConsumer,
) -> None:
    speak(settings)
    send_and_check(kafka, producer_on(), topic)
    large = producer_on(compression_type="none", batch_size=1_000_000)
    for number in range(40):
        large.send(topic, bytes([number]) * 100_000)
    large.flush(TIMEOUT)
    consumer = consumer_on()
    consumer.assign([TopicPartition(topic, 0)])
    values: list[bytes] = []
    eventually(
        lambda: values.extend(r.value for r in consumer.poll(0.2)) or len(values) == 140
    )
    assert values[100:] == [bytes([number]) * 100_000 for number in range(40)]


def test_lost_connections_lose_no_record(
    speak: SetUp,
    settings: TlsSettings,
    proxies: dict[int, Server],
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
) -> None:
    speak(settings)
    producer = producer_on(linger_ms=1)
    futures = []
    for number in range(300):
        futures.append(producer.send(topic, b"%d" % number))
        if number % 50 == 49:
            producer.flush(TIMEOUT)
            for proxy in proxies.values():
                proxy.cut()
    assert [future.result(TIMEOUT).offset for future in futures] == list(range(300))


def test_the_cause_is_in_the_error_of_a_call(
    speak: SetUp, topic: str, producer_on: MakeProducer, certificate: Certificate
) -> None:
    speak(TlsSettings())
    producer = producer_on(max_block_ms=500)
    with pytest.raises(KafkaTimeoutError, match="not trusted"):
        producer.partitions_for(topic)


def test_a_key_that_does_not_fit_is_an_error_of_the_constructor(
    speak: SetUp, producer_on: MakeProducer, certificate: Certificate
) -> None:
    speak(TlsSettings(keystore=Store(location=str(certificate.key))))
    with pytest.raises(ConfigError, match="certificate"):
        producer_on()


def test_a_child_process_leaves_the_connections_alone(
    speak: SetUp, settings: TlsSettings, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    speak(settings)
    producer = producer_on()
    send_and_check(kafka, producer, topic)
    child = os.fork()
    if child == 0:
        del producer
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    send_and_check(kafka, producer, topic)
