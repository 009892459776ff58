"""What the consumer's tests on real brokers share: consumers, writers, polls with an end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.producing import TIMEOUT

MakeConsumer = Callable[..., Consumer]

FIRST_TIMESTAMP_MS = 1_700_000_000_000
"""Of what `write` appends."""

COMPACTED = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0.01",
    "segment_ms": "500",
    "max_compaction_lag_ms": "1000",
}
"""Of a topic that `tidy_kafka` compacts soon, but for its newest segment: write on until it is."""

WITH_CONSUMER_PROTOCOL = pytest.mark.needs_kafka("4.0", "the consumer protocol (KIP-848)")

PROTOCOLS = ("classic", pytest.param("consumer", marks=WITH_CONSUMER_PROTOCOL))
"""Of groups."""


def makers(kafka: RealKafka, consumer_class: Any = Consumer) -> Iterator[MakeConsumer]:
    """Yield what makes consumers that begin with the first record; close them in the end."""
    made: list[Consumer] = []

    def make(**config: Any) -> Consumer:
        start = {"auto_offset_reset": "earliest", **config}
        made.append(consumer_class(bootstrap_servers=kafka.bootstrap, **start))
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            one.close(10)


consumers_on = contextmanager(makers)
"""The same for a `with` block."""


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def poll_until(
    members: Iterable[Consumer],
    done: Callable[[], object],
    found: list[ConsumerRecord],
    timeout: float = TIMEOUT,
) -> None:
    """Poll all these in turn until `done`; what comes is added to `found`."""
    deadline = time.monotonic() + timeout
    members = list(members)
    while not done():
        assert time.monotonic() < deadline, f"{len(found)} records"
        for member in members:
            found += member.poll(0.05)


def read(consumer: Consumer, count: int, timeout: float = TIMEOUT) -> list[ConsumerRecord]:
    """Poll until there were `count` records; there must not be more."""
    records: list[ConsumerRecord] = []
    poll_until([consumer], lambda: len(records) >= count, records, timeout)
    assert len(records) == count, f"{len(records)}, from {records[0]} to {records[-1]}"
    return records


def write(
    kafka: RealKafka, topic: str, count: int, partition: int = 0, *, first: int = 0, **config: Any
) -> list[bytes]:
    """Append values with our own producer, a millisecond apart; `first` is the first's number."""
    numbers = range(first, first + count)
    values = [b"%d:%d" % (partition, number) for number in numbers]
    with Producer(bootstrap_servers=kafka.bootstrap, **config) as producer:
        for number, value in zip(numbers, values, strict=True):
            at = FIRST_TIMESTAMP_MS + number
            producer.send(topic, value, partition=partition, timestamp_ms=at)
    return values


def write_transactions(
    kafka: RealKafka, topic: str, count: int, records: int, *, is_kept: Callable[[int], bool]
) -> list[bytes]:
    """Write transactions of so many records with librdkafka; return what was committed."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": uuid.uuid4().hex}
    )
    producer.init_transactions(TIMEOUT)
    kept: list[bytes] = []
    for number in range(count):
        producer.begin_transaction()
        values = [b"%d:%d" % (number, record) for record in range(records)]
        for value in values:
            producer.produce(topic, value)
        producer.flush(TIMEOUT)
        if is_kept(number):
            producer.commit_transaction(TIMEOUT)
            kept += values
        else:
            producer.abort_transaction(TIMEOUT)
    return kept


def delete_records(kafka: RealKafka, topic: str, before: int) -> None:
    """Let the log of partition 0 begin at this offset."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    place = confluent_kafka.TopicPartition(topic, 0, before)
    for future in admin.delete_records([place]).values():
        future.result(TIMEOUT)
