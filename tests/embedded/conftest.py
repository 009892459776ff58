"""Fixtures of the tests over real sockets: an embedded cluster, a topic, and clients on it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast import Consumer, Producer, logs
from kafka_fast.consumer import idle_log
from kafka_fast.control.diagnosis import troubles
from kafka_fast.control.producer import producer_control
from kafka_fast.producer import failure_explainer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.drivers import (
    consumer_class,
    driver,
    loop,
    open_range,
    producer_class,
    pytest_generate_tests,
)
from tests.embedded.consuming import MakeConsumer
from tests.embedded.producing import MakeProducer, new_topic

__all__ = [
    "consumer_class",
    "driver",
    "loop",
    "open_range",
    "producer_class",
    "pytest_generate_tests",
]


class LinesOfNobody(logging.Handler):
    """Keeps the log lines that do not say which client they are about."""

    NO_CLIENTS = ("kafka_fast.testing", "kafka_fast.spark")
    """Loggers of brokers, and of programs that have many clients."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record on whichever thread it is logged."""
        if record.name.startswith(self.NO_CLIENTS) or getattr(record, "client_id", ""):
            return
        self.lines.append(f"{record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def _each_line_names_its_client() -> Iterator[None]:
    """Fail a test if something that it lets through to the log lacks the client's id."""
    handler, logger = LinesOfNobody(), logging.getLogger("kafka_fast")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    assert handler.lines == []


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=3, replication_factor=3) as kafka:
        yield kafka


@pytest.fixture(name="kafka")
def healed_cluster(cluster: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    """Three brokers; faults end with the test."""
    yield cluster
    cluster.heal()


@pytest.fixture
def topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    """A new topic with one partition, led by broker 1."""
    return new_topic(kafka, request.node.name)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> float:
    """What is waited for is told after so many seconds."""
    long = 0.15
    for module in (logs, failure_explainer, idle_log, producer_control):
        monkeypatch.setattr(module, "LONG", long)
    monkeypatch.setattr(logs, "AGAIN", long / 5)
    monkeypatch.setattr(troubles, "GATHERING", 2 * long)
    monkeypatch.setattr(troubles, "LOADING", 5 * long)
    return long


@pytest.fixture
def producer_on(kafka: EmbeddedKafka, producer_class: Any) -> Iterator[MakeProducer]:
    """Producers that are closed in the end; short waits between tries."""
    made: list[Producer] = []

    def make(**config: object) -> Producer:
        quick = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 100, "reconnect.backoff.ms": 20}
        made.append(producer_class({"bootstrap.servers": kafka.bootstrap, **quick}, **config))
        return made[-1]

    yield make
    for one in made:
        one.close(0)


@pytest.fixture
def producer(producer_on: MakeProducer, topic: str) -> Producer:
    """One that need not wait for metadata; whoever awaits makes its batches leave."""
    one = producer_on(linger_ms=10_000)
    one.partitions_for(topic)
    return one


@pytest.fixture
def consumer_on(kafka: EmbeddedKafka, consumer_class: Any) -> Iterator[MakeConsumer]:
    """Consumers that begin with the first record and are closed in the end; short waits."""
    made: list[Consumer] = []

    def make(**config: object) -> Consumer:
        quick = {
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "reconnect.backoff.ms": 20,
        }
        start = {"auto_offset_reset": "earliest", **config}
        made.append(consumer_class({"bootstrap.servers": kafka.bootstrap, **quick}, **start))
        return made[-1]

    yield make
    for one in made:
        one.close(0)
