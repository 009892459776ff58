"""What the tests over real sockets do with a consumer and the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from kafka_fast import Consumer, TopicPartition
from kafka_fast.errors import KafkaError
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import TIMEOUT

MakeConsumer = Callable[..., Consumer]

FIRST_TIMESTAMP_MS = 1_700_000_000_000


def fill(
    kafka: EmbeddedKafka, topic: str, count: int, partition: int = 0, *, batch: int = 10
) -> list[bytes]:
    """Append records `b"<partition>:<offset>"`, a second apart, without a producer."""
    start = kafka.end_offset(topic, partition)
    values = [b"%d:%d" % (partition, start + number) for number in range(count)]
    for first in range(0, count, batch):
        builder = RecordBatchBuilder()
        for number, value in enumerate(values[first : first + batch], start + first):
            builder.append(b"k%d" % number, value, FIRST_TIMESTAMP_MS + number * 1000)
        data = builder.build()
        kafka.on_cluster(lambda cluster, data=data: cluster.plant(topic, partition, data))
    return values


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def read(
    consumer: Consumer,
    count: int,
    *,
    timeout: float = TIMEOUT,
    max_records: int | None = None,
    passing: tuple[type[KafkaError], ...] = (),
) -> list[ConsumerRecord]:
    """Poll until there were `count` records, past these errors; there must not be more."""
    deadline = time.monotonic() + timeout
    records: list[ConsumerRecord] = []
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records in {timeout:.0f} s"
        with suppress(*passing):
            records += consumer.poll(0.1, max_records)
    assert len(records) == count, f"{len(records)} records, not {count}"
    return records


def values_by_partition(records: Iterable[ConsumerRecord]) -> dict[int, list[bytes]]:
    values: dict[int, list[bytes]] = {}
    for record in records:
        values.setdefault(record.partition, []).append(record.value)
    return values


def poll_until(
    members: Sequence[Consumer],
    done: Callable[[], bool],
    found: list[ConsumerRecord] | None = None,
) -> None:
    """Poll all these in turn until `done`; what comes is added to `found`."""
    deadline = time.monotonic() + TIMEOUT
    found = [] if found is None else found
    while not done():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in members]
        for consumer in members:
            found += consumer.poll(0.02)


def committed(kafka: EmbeddedKafka, group: str) -> Mapping[tuple[str, int], int]:
    return kafka.on_cluster(lambda cluster: cluster.committed(group))
