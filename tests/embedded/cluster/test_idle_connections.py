"""Connections that the other side ends because nothing is asked: no trouble, and no news."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast import Consumer, Producer
from kafka_fast.control.connections import connections
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, poll_until, read
from tests.embedded.producing import MakeProducer, send_and_check
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.fixture(autouse=True)
def young_connections_may_be_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_AT_LEAST", 0.0)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="kafka_fast")
    return caplog


def close_idle(kafka: EmbeddedKafka, client: Producer | Consumer) -> None:
    """Have the brokers close idle connections, until the client has noticed one."""
    closed: Callable[[], Any] = lambda: client.metrics()["links_closed"].get("eof", 0)  # noqa: E731
    before = closed()
    kafka.on_cluster(Cluster.close_idle_connections)
    eventually(lambda: closed() > before)


def troubles(log: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in log.records
        if record.levelno > logging.DEBUG
        and not record.name.startswith("kafka_fast.testing")
        and "connection" in record.getMessage()
    ]


def said_quietly(log: pytest.LogCaptureFixture) -> bool:
    return any("the connection was idle" in record.getMessage() for record in log.records)


def test_a_producer_connects_again(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, log: pytest.LogCaptureFixture
) -> None:
    """Regression: ten WARNINGs in fifteen seconds, from a broker that closes what is idle."""
    producer = producer_on()
    for _ in range(3):
        send_and_check(kafka, producer, topic)
        close_idle(kafka, producer)
    send_and_check(kafka, producer, topic)
    assert troubles(log) == []
    assert said_quietly(log)
    assert producer.metrics()["link_failures"] == 0


def test_a_reader_connects_again(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer, log: pytest.LogCaptureFixture
) -> None:
    """The second connection to a leader, which is not the one that carries its fetches, is idle."""
    consumer = consumer_on()
    consumer.assign(partitions_of(topic, 1))
    for count in (10, 20, 30):
        fill(kafka, topic, 10)
        read(consumer, 10)
        assert consumer.end_offsets(partitions_of(topic, 1)) == {(topic, 0): count}
        close_idle(kafka, consumer)
    assert troubles(log) == []
    assert consumer.metrics()["link_failures"] == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_goes_on_with_its_coordinator(
    kafka: EmbeddedKafka,
    topic: str,
    consumer_on: MakeConsumer,
    log: pytest.LogCaptureFixture,
    protocol: str,
) -> None:
    """Regression: between two heartbeats, the member took its coordinator for lost."""
    consumer = consumer_on(group_id=f"idle-{protocol}", group_protocol=protocol)
    consumer.subscribe(topic)
    poll_until([consumer], lambda: bool(consumer.assignment()))
    log.clear()
    generation = consumer.group_metadata().generation
    for _ in range(3):
        fill(kafka, topic, 10)
        read(consumer, 10)
        consumer.commit(timeout=TIMEOUT)
        close_idle(kafka, consumer)
    consumer.poll(0.1)
    assert consumer.group_metadata().generation == generation
    assert troubles(log) == []
    assert not [record for record in log.records if "coordinator" in record.name]


def test_an_end_in_the_middle_of_a_request_is_told(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, log: pytest.LogCaptureFixture
) -> None:
    producer = producer_on()
    send_and_check(kafka, producer, topic)
    kafka.faults.drop(api=0, close=True, count=1)
    producer.send(topic, b"again").result(TIMEOUT)
    (told,) = troubles(log)
    assert "closed the connection instead of an answer to Produce" in told


@pytest.fixture
def no_link_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each link ends as those do that are younger than IDLE_AT_LEAST."""
    monkeypatch.setattr(connections, "IDLE_AT_LEAST", float("inf"))


@pytest.mark.usefixtures("no_link_is_idle")
def test_nobody_misses_the_bootstrap_link_while_there_is_another(
    kafka: EmbeddedKafka, topic: str, producer_class: Any, log: pytest.LogCaptureFixture
) -> None:
    """Regression: a WARNING of which nobody ever said that it was over."""
    server = kafka.bootstrap.split(",")[1]  # broker 1 leads
    with producer_class({"bootstrap.servers": server}) as producer:
        send_and_check(kafka, producer, topic)
        kafka.kill(2)
        eventually(lambda: producer.metrics()["link_failures"] == 1)
        send_and_check(kafka, producer, topic)
    assert troubles(log) == []
    assert [text for text in log.messages if f"{server} closed the connection" in text]
