"""What the log says while brokers do what they are meant to do: close idle connections, restart."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafka_fast import Consumer, Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.integration.consuming import PROTOCOLS
from tests.integration.producing import TIMEOUT, new_topic
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

IDLE_MS = 500


@pytest.fixture(scope="module")
def impatient_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A broker that closes a connection on which nothing was asked for half a second."""
    overrides = {"connections.max.idle.ms": IDLE_MS, "group.initial.rebalance.delay.ms": 0}
    with started(1, request.config.getoption("--kafka-version"), overrides) as kafka:
        yield kafka


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="kafka_fast")
    return caplog


@pytest.fixture(scope="module")
def three_nodes(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A cluster of this module's own: one node after the other is stopped in good order."""
    with started(3, request.config.getoption("--kafka-version")) as kafka:
        yield kafka


def links_closed(client: Producer | Consumer) -> int:
    """Return how many links have ended. The broker resets one if a request is on its way."""
    return sum(client.metrics()["links_closed"].values())


def problems(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno >= logging.WARNING]


def test_a_broker_that_closes_idle_connections_is_no_news(
    impatient_kafka: RealKafka, log: pytest.LogCaptureFixture
) -> None:
    """Regression: ten WARNINGs in fifteen seconds."""
    kafka = impatient_kafka
    topic = new_topic(kafka)
    properties = {"bootstrap.servers": kafka.bootstrap}
    member = {"group.id": topic, "auto.offset.reset": "earliest", "fetch.max.wait.ms": 100}
    with Producer(properties) as producer, Consumer(properties, **member) as consumer:
        consumer.subscribe([topic])
        count = 0
        for number in range(1, 6):
            ended = links_closed(producer)
            producer.send(topic, b"%d" % number).result(TIMEOUT)
            while count < number:
                count += len(consumer.poll(1.0))
            consumer.commit(timeout=TIMEOUT)
            if number == 1:
                joined = len(log.records)  # a coordinator that has just begun may hand groups on
            eventually(lambda ended=ended: links_closed(producer) > ended)
        eventually(lambda: links_closed(consumer) >= 3)
        generation = consumer.group_metadata().generation
    assert problems(log) == []
    lost = [text for text in log.messages[joined:] if "coordinator is lost" in text]
    # A commit that meets the broker's close on its way is asked again, and the log says so.
    assert [text for text in lost if "did not answer" not in text] == []
    assert generation == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.timeout(600)
def test_an_orderly_restart_is_at_most_two_warnings_and_its_end_is_told(
    three_nodes: RealKafka, log: pytest.LogCaptureFixture, protocol: str
) -> None:
    """Regression: each connection to the node told how it ended, and each new cause after that."""
    kafka = three_nodes
    topic = new_topic(kafka, partitions=6)
    kafka.wait_isr(topic)
    properties = {"bootstrap.servers": kafka.bootstrap}
    with ExitStack() as stack:
        producer = stack.enter_context(Producer(properties))
        member = {"group.id": topic, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = stack.enter_context(Consumer(properties, **member))
        consumer.subscribe([topic])
        busy = stack.enter_context(Traffic(producer, consumer, topic))
        eventually(lambda: busy.read > 100)
        for node in kafka.nodes:
            log.clear()
            node.stop()
            node.start()
            kafka.wait_isr(topic)
            kafka._wait_offsets_isr()
            before = busy.read
            eventually(lambda before=before: busy.read > before + 100)
            told = problems(log)
            assert len(told) <= 2, told
            for client in {line.partition("]")[0] for line in told}:
                back = f"{client}] node {node.node_id} is back, "
                eventually(lambda back=back: any(text.startswith(back) for text in log.messages))
        busy.stop()
    assert busy.lost == []
    assert busy.read == busy.sent


class Traffic:
    """A producer and a group's member at work, each in a thread of its own."""

    def __init__(self, producer: Producer, consumer: Consumer, topic: str) -> None:
        self._producer, self._consumer, self._topic = producer, consumer, topic
        self._is_over = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self._reader = threading.Thread(target=self._read)
        self.sent = self.read = 0
        self.lost: list[object] = []

    def __enter__(self) -> Traffic:
        self._writer.start()
        self._reader.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more, and read what was sent."""
        self._is_over.set()
        self._writer.join()
        self._reader.join()

    def _write(self) -> None:
        def hear(error: object, metadata: object) -> None:
            if error is not None:
                self.lost.append(error)

        while not self._is_over.wait(0.005):
            self._producer.send(self._topic, b"%d" % self.sent, on_delivery=hear)
            self.sent += 1
        self._producer.flush()

    def _read(self) -> None:
        deadline = 0.0
        while not self._is_over.is_set() or self._writer.is_alive() or self.read < self.sent:
            self.read += len(self._consumer.poll(0.1))
            if self._is_over.is_set():
                deadline = deadline or time.monotonic() + TIMEOUT
                assert time.monotonic() < deadline, (self.read, self.sent)
