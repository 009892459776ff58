"""Topics that are deleted and created again under running clients, on three brokers.

All partitions get other leaders, which a single broker cannot show. A client that keeps anything of
the old topic (a route, a position, the number of partitions) then waits for a broker that answers
NOT_LEADER_OR_FOLLOWER forever.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from kafka_fast import Consumer, DeliveryError, Producer, RecordMetadata
from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.testing._kafka.broker_jars import RealKafkaError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.consuming import (
    PROTOCOLS,
    MakeConsumer,
    makers,
    partitions_of,
    poll_until,
    read,
    write,
)
from tests.integration.producing import TIMEOUT, read_values
from tests.integration.spark.spark_local import SPARK_MARKS
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.needs_kafka("3.1", "topic ids, in Metadata and Fetch (KIP-516)"),
]

NODES = 3
BEFORE = 6
"""Partitions of each topic before it is deleted."""

SOON = 15.0
"""Seconds; it takes about one, and for a member of the protocol `consumer` two heartbeats, of five
each, at most. A client that kept a leader stood still for 25."""

REPLICAS = pytest.mark.parametrize("replicas", [1, 3])

SHAPES = pytest.mark.parametrize(("replicas", "count"), [(1, 6), (3, 6), (1, 3), (3, 8)])
"""Copies of each partition, and how many partitions there are afterwards."""


def layout(count: int, replicas: int, shift: int = 0) -> list[list[int]]:
    """Return the nodes of each partition; with another shift each has another leader."""
    return [
        [1 + (partition + shift + replica) % NODES for replica in range(replicas)]
        for partition in range(count)
    ]


def create(kafka: RealKafka, replicas: int, count: int = BEFORE) -> str:
    topic = f"again-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, replicas=layout(count, replicas))
    return topic


def create_again(kafka: RealKafka, topic: str, replicas: int, count: int) -> None:
    """Delete the topic, and create it with other leaders."""

    def created() -> bool:
        try:
            kafka.create_topic(topic, replicas=layout(count, replicas, shift=1))
        except RealKafkaError as error:
            if "TOPIC_ALREADY_EXISTS" not in str(error):
                raise
            return False
        return True

    kafka.delete_topic(topic)
    eventually(created, f"the name {topic} to be free")


class Sender:
    """A thread that sends records with keys, and what it was told of them."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.acked: list[tuple[bytes, RecordMetadata]] = []
        self.failed: list[DeliveryError] = []
        self._producer = producer
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.001):
            self._send(b"%d" % number)
            number += 1

    def _send(self, value: bytes) -> None:
        def take(error: DeliveryError | None, metadata: RecordMetadata) -> None:
            if error is None:
                self.acked.append((value, metadata))
            else:
                self.failed.append(error)

        self._producer.send(self._topic, value, b"key-" + value, on_delivery=take)

    def await_all(self, count: int) -> None:
        """Wait until each of the partitions has acknowledged a record from now on."""
        first = len(self.acked)

        def missing() -> set[int]:
            return set(range(count)) - {metadata.partition for _, metadata in self.acked[first:]}

        eventually(lambda: not missing(), "acknowledgements of all partitions", timeout=SOON)

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(TIMEOUT)


@contextmanager
def sender(producer: Producer, topic: str) -> Iterator[Sender]:
    one = Sender(producer, topic)
    try:
        yield one
    finally:
        one.stop()


@SHAPES
def test_a_producer_goes_on_in_all_partitions(
    real_kafka_cluster: RealKafka, replicas: int, count: int
) -> None:
    kafka = real_kafka_cluster
    topic = create(kafka, replicas)
    with Producer(bootstrap_servers=kafka.bootstrap, linger_ms=5) as producer:
        with sender(producer, topic) as sent:
            sent.await_all(BEFORE)
            create_again(kafka, topic, replicas, count)
            eventually(lambda: len(producer.partitions_for(topic)) == count, "the new topic")
            sent.await_all(count)
        lost_before = len(sent.failed)
        futures = [producer.send(topic, b"last", partition=number) for number in range(count)]
        assert [future.result(TIMEOUT).partition for future in futures] == list(range(count))
        assert producer.flush(TIMEOUT) == 0
    logs = read_values(kafka.bootstrap, topic, count)
    there = {(partition, value) for partition, log in enumerate(logs) for _, _, value in log}
    last = sent.acked[-count:]
    assert {(metadata.partition, value) for value, metadata in last} <= there
    if count >= BEFORE:
        assert lost_before == 0
    for error in sent.failed:
        assert isinstance(error.first, UnknownTopicOrPartition)
        assert f"topic {topic!r} has {count} partitions now" in str(error)
        assert error.partition is not None
        assert error.partition >= count


@pytest.fixture
def consumer_on(real_kafka_cluster: RealKafka) -> Iterator[MakeConsumer]:
    yield from makers(real_kafka_cluster)


def by_partition(
    consumer: Consumer, count: int, timeout: float = TIMEOUT
) -> dict[int, list[bytes | None]]:
    """Read so many records; return their values."""
    values_read: dict[int, list[bytes | None]] = {}
    for record in read(consumer, count, timeout):
        values_read.setdefault(record.partition, []).append(record.value)
    return values_read


def fill(kafka: RealKafka, topic: str, count: int, first: int) -> dict[int, list[bytes | None]]:
    """Write 50 records to each partition."""
    return {
        partition: [*write(kafka, topic, 50, partition, first=first)] for partition in range(count)
    }


@SHAPES
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_reads_the_new_topic_from_its_beginning(
    real_kafka_cluster: RealKafka,
    consumer_on: MakeConsumer,
    protocol: str,
    replicas: int,
    count: int,
) -> None:
    kafka = real_kafka_cluster
    topic = create(kafka, replicas)
    consumer = consumer_on(group_id=uuid.uuid4().hex, group_protocol=protocol)
    consumer.subscribe([topic])
    old = fill(kafka, topic, BEFORE, 0)
    assert by_partition(consumer, 50 * BEFORE) == old
    create_again(kafka, topic, replicas, count)
    new = fill(kafka, topic, count, 1_000)
    assert by_partition(consumer, 50 * count, SOON) == new
    every = set(partitions_of(topic, count))
    poll_until([consumer], lambda: consumer.assignment() == every, [])


@REPLICAS
def test_assigned_partitions_are_read_and_those_that_are_gone_are_told(
    real_kafka_cluster: RealKafka, consumer_on: MakeConsumer, replicas: int
) -> None:
    kafka = real_kafka_cluster
    topic = create(kafka, replicas)
    consumer = consumer_on()
    consumer.assign(partitions_of(topic, BEFORE))
    old = fill(kafka, topic, BEFORE, 0)
    assert by_partition(consumer, 50 * BEFORE) == old
    create_again(kafka, topic, replicas, 3)
    new = fill(kafka, topic, 3, 1_000)
    assert by_partition(consumer, 150, SOON) == new

    def told() -> str:
        try:
            consumer.poll(0.05)
        except UnknownTopicOrPartition as error:
            return str(error)
        return ""

    assert f"topic '{topic}' has 3 partitions" in eventually(told, "the error of a lost partition")


def values(spark: SparkSession, kafka: RealKafka, topic: str) -> Sequence[tuple[int, bytes]]:
    reader = spark.read.format("kafka_fast").option("kafka.bootstrap.servers", kafka.bootstrap)
    rows = reader.option("subscribe", topic).load().select("partition", "value").collect()
    return sorted((row.partition, bytes(row.value)) for row in rows)


class TestSpark:
    """Workers keep their consumers, with all that these know of topics."""

    pytestmark = SPARK_MARKS

    @SHAPES
    def test_the_next_query_reads_the_new_topic(
        self, spark: SparkSession, real_kafka_cluster: RealKafka, replicas: int, count: int
    ) -> None:
        kafka = real_kafka_cluster
        topic = create(kafka, replicas)
        for partitions, first in ((BEFORE, 0), (count, 1_000)):
            if first:
                create_again(kafka, topic, replicas, count)
            written = fill(kafka, topic, partitions, first)
            expected = sorted(
                (number, value) for number in written for value in written[number] if value
            )
            assert values(spark, kafka, topic) == expected
