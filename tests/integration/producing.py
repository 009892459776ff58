"""What the producer's tests on real brokers share: topics, and logs read by other people's clients.

`read_log` reads with librdkafka, which checks CRCs; `fetch_log` with plain Fetch requests and
`kafka_fast.record`. `Tally` keeps what a producer was told of each record and compares it with
the log.
"""

from __future__ import annotations

import itertools
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import confluent_kafka
from aiokafka.partitioner import murmur2

from kafka_fast.errors import DeliveryError
from kafka_fast.record import Record, read_batches
from kafka_fast.testing._kafka.broker_jars import RealKafkaError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.types import RecordMetadata
from tests.integration.scenarios.wire import connected
from tests.waiting import eventually

TIMEOUT = 60.0
CONSUME_COUNT = 10_000
CONSUME_TIMEOUT = 0.2
FETCH_SIZE = 8 << 20
FETCH_VERSION = 10  # the highest that all brokers from 2.1 on know, the lowest that carries zstd

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Logged:
    """One record as an independent client has read it."""

    offset: int
    timestamp: tuple[int, int]
    """Type (1: of the record, 2: of the append) and Unix ms."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def new_topic(
    kafka: RealKafka, partitions: int = 1, *, replication: int | None = None, **configs: str
) -> str:
    """Create a topic with a name of its own; return when it has leaders.

    Args:
        kafka: where.
        partitions: how many.
        replication: copies; by default one on each node.
        configs: of the topic, with underscores for dots.
    """
    name = f"producer-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    kafka.create_topic(name, partitions, replication=replication, configs=dotted)
    return name


def create_again(kafka: RealKafka, topic: str, partitions: int = 1) -> None:
    """Create a topic that was deleted; with a ZooKeeper its name is free a moment later only."""

    def created() -> bool:
        try:
            kafka.create_topic(topic, partitions)
        except RealKafkaError as error:
            if "TOPIC_ALREADY_EXISTS" not in str(error):
                raise
            return False
        return True

    eventually(created, f"the name {topic} to be free")


def say(text: str) -> None:
    """Tell whoever runs the tests with `-s`, or reads about a failed one."""
    sys.stdout.write(f"{text}\n")


def read_log(bootstrap: str, topic: str, partition: int) -> list[Logged]:
    """Read a partition to its end with librdkafka, which checks every CRC."""
    return [
        Logged(
            message.offset(),
            message.timestamp(),
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
        )
        for message in _messages(bootstrap, topic, [partition])
    ]


def read_values(
    bootstrap: str, topic: str, partitions: int
) -> list[list[tuple[int, bytes | None, bytes]]]:
    """Read a topic to its end with librdkafka.

    Returns:
        For each partition offset, key and value of its records.
    """
    logs: list[list[tuple[int, bytes | None, bytes]]] = [[] for _ in range(partitions)]
    for message in _messages(bootstrap, topic, range(partitions)):
        logs[message.partition()].append((message.offset(), message.key(), message.value()))
    return logs


def _messages(
    bootstrap: str, topic: str, partitions: Iterable[int]
) -> Iterator[confluent_kafka.Message]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "check.crcs": True,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    beginning = confluent_kafka.OFFSET_BEGINNING
    places = [confluent_kafka.TopicPartition(topic, one, beginning) for one in partitions]
    consumer.assign(places)
    unread = {place.partition for place in places}
    deadline = time.monotonic() + TIMEOUT
    try:
        while unread:
            assert time.monotonic() < deadline, f"{topic} {unread} was not read in time"
            for message in consumer.consume(CONSUME_COUNT, CONSUME_TIMEOUT):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                else:
                    assert error.retriable() or error.code() < 0, error
    finally:
        consumer.close()


def fetch_log(address: str, topic: str, partition: int = 0, start: int = 0) -> list[Record]:
    """Read a partition from its leader's address with Fetch requests and our own decoder."""
    records: list[Record] = []
    with connected(address) as client:
        while True:
            answer = client.fetch(
                topic,
                start,
                partition=partition,
                max_bytes=FETCH_SIZE,
                partition_max_bytes=FETCH_SIZE,
                version=FETCH_VERSION,
            )
            assert answer.error_code == 0, answer.error_code
            if start >= answer.high_watermark:
                return records
            for batch in read_batches(answer.records or b""):
                records += [one for one in batch.records() if one.offset >= start]
                start = batch.next_offset


def partition_by_key(key: bytes, partitions: int) -> int:
    """Return where Java's partitioner puts a key, by other people's murmur2."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


@dataclass(slots=True)
class Tally:
    """Records of one topic by number, what the producer said of them, and the verdict.

    A value begins with topic and number, and has no white space, so that journals can hold it.
    Records are numbered in the order of their sends, by one thread, so numbers rise within every
    partition; a key stays in one partition.
    """

    topic: str
    partitions: int
    keyed: bool
    sent: int = 0
    acked: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Number -> partition and offset (-1: not known) that the producer reported."""
    failed: list[tuple[int, DeliveryError]] = field(default_factory=list)
    told_twice: int = 0
    found: Counter[str] = field(default_factory=Counter)

    def next_record(self, size: int) -> tuple[bytes, bytes | None]:
        """Return value and key of the next record."""
        number, self.sent = self.sent, self.sent + 1
        value = b"%s:%d:" % (self.topic.encode(), number)
        return value.ljust(size, b"."), b"key-%d" % (number % 997) if self.keyed else None

    def take(self, number: int, error: DeliveryError | None, metadata: RecordMetadata) -> None:
        """Note what became of a record."""
        if error is not None:
            self.failed.append((number, error))
        elif number in self.acked:
            self.told_twice += 1
        else:
            self.acked[number] = (metadata.partition, metadata.offset)

    def compare(self, bootstrap: str) -> Counter[str]:
        """Read the topic back; return how many records are wrong, by kind of wrong."""
        faults = self.found
        seen: set[int] = set()
        for partition, log in enumerate(read_values(bootstrap, self.topic, self.partitions)):
            self._compare_partition(partition, log, seen)
        faults["lost"] += len(self.acked.keys() - seen)
        faults["never completed"] += self.sent - len(self.acked) - len(self.failed)
        faults["completed twice"] += self.told_twice
        faults.update(f"failed: {error}" for _, error in self.failed)
        return +faults

    def _compare_partition(
        self,
        partition: int,
        log: Sequence[tuple[int, bytes | None, bytes]],
        seen: set[int],
    ) -> None:
        faults, before = self.found, -1
        for place, (offset, key, value) in enumerate(log):
            topic, digits, _ = value.split(b":", 2)
            number = int(digits)
            if topic.decode() != self.topic or number >= self.sent:
                faults["misrouted"] += 1
                continue
            if number in seen:
                faults["duplicated"] += 1
            elif number < before:
                faults["misordered"] += 1
            seen.add(number)
            before = max(before, number)
            if offset != place:
                faults["holes in the log"] += 1
            if self.keyed and (
                key != b"key-%d" % (number % 997)
                or partition_by_key(key, self.partitions) != partition
            ):
                faults["misrouted"] += 1
            told = self.acked.get(number)
            if told is None:
                continue
            if told[0] != partition:
                faults["misrouted"] += 1
            elif told[1] == -1:
                faults["offset not told"] += 1
            elif told[1] != offset:
                faults["wrong offset"] += 1
