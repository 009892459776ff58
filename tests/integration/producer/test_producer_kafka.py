"""The producer on real Kafka: what it says it wrote is what other clients read."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from kafka_fast import Producer
from kafka_fast.errors import (
    DeliveryError,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    Outcome,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.embedded.process.test_producer_endings import COUNTS, ENDINGS, begin
from tests.integration.producing import (
    TIMEOUT,
    create_again,
    fetch_log,
    new_topic,
    partition_by_key,
    read_log,
)
from tests.waiting import eventually

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MODES: dict[str, dict[str, object]] = {
    "idempotent": {},
    "all": {"enable.idempotence": False},
    "leader": {"acks": 1},
    "nobody": {"acks": 0},
}
CREATE_TIME, APPEND_TIME = 1, 2
IN_FLIGHT = 5  # max.in.flight.requests.per.connection
BAD = (3, 7)  # of ten records, those that the topic does not take
CLOCK_STEP_MS = 20  # the clock of the records moves in steps

Row = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int | None]
MakeProducer = Callable[..., Producer]

DRIVERS = True


@pytest.fixture
def producer_on(real_kafka: RealKafka, producer_class: Any) -> Iterator[MakeProducer]:
    """Producers that are closed in the end, whatever they have lost."""
    made: list[Producer] = []

    def make(**config: object) -> Producer:
        made.append(producer_class({"bootstrap.servers": real_kafka.bootstrap}, **config))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def admin(real_kafka: RealKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": real_kafka.bootstrap})


def done(futures: dict[Any, Any]) -> None:
    """Wait for what an admin client was asked."""
    for future in futures.values():
        future.result(TIMEOUT)


def rows() -> list[Row]:
    """Return records of every shape; some repeat, so that compression has something to do."""
    shapes: list[Row] = [
        (None, None, (), None),
        (b"", b"", (), None),
        (b"key", b"value", (), 1_700_000_000_000),
        (None, b"x" * 3_000, (("a", b"1"), ("a", None), ("ü", b"")), None),
        (b"\x00\xff", b"\x00" * 700, (("", b"empty name"),), 1_600_000_000_001),
        (b"k" * 300, None, (), 0),
    ]
    return [shapes[number % len(shapes)] for number in range(600)]


class TestWhatIsRead:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("codec", CODECS)
    def test_every_record_is_read_back_as_it_was_sent(
        self, real_kafka: RealKafka, producer_on: MakeProducer, codec: str, mode: str
    ) -> None:
        topic = new_topic(real_kafka)
        start_ms = int(time.time() * 1000)
        producer = producer_on(**MODES[mode], compression_type=codec)
        sent = rows()
        futures = [
            producer.send(topic, value, key, headers=headers, timestamp_ms=timestamp)
            for key, value, headers, timestamp in sent
        ]
        offsets = [future.result(TIMEOUT).offset for future in futures]
        assert offsets == ([-1] * len(sent) if mode == "nobody" else list(range(len(sent))))

        eventually(lambda: len(fetch_log(real_kafka.bootstrap, topic)) == len(sent), "all records")
        theirs = read_log(real_kafka.bootstrap, topic, 0)
        ours = fetch_log(real_kafka.bootstrap, topic)
        end_ms = int(time.time() * 1000)
        for number, (row, read, fetched) in enumerate(zip(sent, theirs, ours, strict=True)):
            key, value, headers, timestamp = row
            assert (read.offset, read.key, read.value, read.headers) == (
                number,
                key,
                value,
                headers,
            )
            kind, timestamp_ms = read.timestamp
            assert kind == CREATE_TIME
            if timestamp is None:
                assert start_ms - CLOCK_STEP_MS <= timestamp_ms <= end_ms
            else:
                assert timestamp_ms == timestamp
            assert (fetched.offset, fetched.key, fetched.value, fetched.headers) == (
                number,
                key,
                value,
                headers,
            )
            assert fetched.timestamp_ms == timestamp_ms

    def test_the_append_time_of_the_broker_is_told(
        self, real_kafka: RealKafka, producer_on: MakeProducer
    ) -> None:
        topic = new_topic(real_kafka, message_timestamp_type="LogAppendTime")
        told = producer_on().send(topic, b"x", timestamp_ms=1).result(TIMEOUT)
        (read,) = read_log(real_kafka.bootstrap, topic, 0)
        assert read.timestamp == (APPEND_TIME, told.timestamp_ms)
        assert abs(told.timestamp_ms - time.time() * 1000) < TIMEOUT * 1000

    @pytest.mark.threads_only("most of its time is the broker's, or another client's")
    def test_keys_go_where_java_puts_them(
        self, real_kafka: RealKafka, producer_on: MakeProducer
    ) -> None:
        topic = new_topic(real_kafka, 7)
        producer = producer_on()
        keys = [b"key-%d" % number for number in range(500)]
        futures = [producer.send(topic, key, key) for key in keys]
        for key, future in zip(keys, futures, strict=True):
            assert future.result(TIMEOUT).partition == partition_by_key(key, 7)
        for partition in range(7):
            for read in read_log(real_kafka.bootstrap, topic, partition):
                assert read.key is not None
                assert partition_by_key(read.key, 7) == partition

    @pytest.mark.threads_only("most of its time is the broker's, or another client's")
    def test_many_topics_at_once(self, real_kafka: RealKafka, producer_on: MakeProducer) -> None:
        topics = [new_topic(real_kafka, 2) for _ in range(5)]
        producer = producer_on(linger_ms=20)
        futures = [
            (topic, number, producer.send(topic, b"%s %d" % (topic.encode(), number)))
            for number in range(400)
            for topic in topics
        ]
        read = {
            (topic, partition): read_log(real_kafka.bootstrap, topic, partition)
            for topic in topics
            for partition in range(2)
            if not producer.flush()
        }
        for topic, number, future in futures:
            told = future.result(TIMEOUT)
            logged = read[topic, told.partition][told.offset]
            assert logged.value == b"%s %d" % (topic.encode(), number)
        assert sum(map(len, read.values())) == len(futures)


class TestRefused:
    def test_a_batch_that_is_too_large_is_split(
        self, real_kafka: RealKafka, producer_on: MakeProducer
    ) -> None:
        topic = new_topic(real_kafka, max_message_bytes="20000")
        producer = producer_on(batch_size=200_000, linger_ms=500)
        values = [b"%06d" % number * 50 for number in range(500)]
        futures = [producer.send(topic, value) for value in values]
        offsets = [future.result(TIMEOUT).offset for future in futures]
        assert [read.value for read in read_log(real_kafka.bootstrap, topic, 0)] == values
        assert offsets == list(range(500))
        assert producer.metrics()["splits"] > 0

    @pytest.mark.parametrize(
        ("limit", "batch_size", "count", "size"),
        [(3_000, 16_384, 5_000, 200), (262_144, 1_000_000, 3_000, 2_000)],
        ids=["small batches", "batch.size above 256 KiB"],
    )
    def test_a_refused_size_is_learnt(
        self,
        real_kafka: RealKafka,
        producer_on: MakeProducer,
        limit: int,
        batch_size: int,
        count: int,
        size: int,
    ) -> None:
        topic = new_topic(real_kafka, max_message_bytes=str(limit))
        producer = producer_on(batch_size=batch_size, linger_ms=100)
        producer.partitions_for(topic)
        values = [b"%06d" % number + bytes(size - 6) for number in range(count)]
        futures = [producer.send(topic, value) for value in values]
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(count))
        assert producer.metrics()["splits"] > 0
        refused = producer.metrics()["punts"]
        assert refused <= IN_FLIGHT, "no more than were sent before the first refusal came"
        assert producer.send_many(topic, values).result(TIMEOUT).failed == 0
        assert producer.metrics()["punts"] == refused
        assert [one.value for one in read_log(real_kafka.bootstrap, topic, 0)] == values * 2

    @pytest.mark.needs_kafka("2.4", "Produce answers name wrong records")
    @pytest.mark.parametrize("wrong", ["key", "timestamp"])
    def test_the_error_of_a_record_says_whether_it_is_the_wrong_one(
        self, real_kafka: RealKafka, producer_on: MakeProducer, wrong: str
    ) -> None:
        limit = "difference" if int(real_kafka.release.version[0]) < 3 else "after"
        topic = new_topic(
            real_kafka,
            **{"cleanup_policy": "compact", f"message_timestamp_{limit}_max_ms": "3600000"},
        )
        producer = producer_on(linger_ms=500)
        now = int(time.time() * 1000)
        keys = [None if wrong == "key" and place in BAD else b"k" for place in range(10)]
        times = [now + 86_400_000 * (wrong == "timestamp" and place in BAD) for place in range(10)]
        cause = InvalidTimestamp if wrong == "timestamp" else InvalidRecord
        futures = [
            producer.send(topic, b"v", key, timestamp_ms=at)
            for key, at in zip(keys, times, strict=True)
        ]
        errors = [future.exception(TIMEOUT) for future in futures]
        told = producer.send_many(topic, [b"v"] * 10, keys=keys, timestamps_ms=times)
        errors += [error for _, error in told.failed(TIMEOUT)]
        assert len(errors) == 20
        for number, error in enumerate(errors):
            assert error is not None
            assert isinstance(error.first, cause)
            assert error.outcome is Outcome.REJECTED
            assert error.is_collateral is (number % 10 not in BAD)
            assert ("because of 2 other records" in str(error)) is error.is_collateral
        again = [number for number in range(10) if number not in BAD]
        for number in again:
            producer.send(topic, b"%d" % number, keys[number]).result(TIMEOUT)
        read = [one.value for one in read_log(real_kafka.bootstrap, topic, 0)]
        assert read == [b"%d" % number for number in again]

    @pytest.mark.parametrize("mode", ["idempotent", "all"])
    def test_a_record_that_is_too_large_fails_alone(
        self, real_kafka: RealKafka, producer_on: MakeProducer, mode: str
    ) -> None:
        topic = new_topic(real_kafka, max_message_bytes="20000")
        producer = producer_on(**MODES[mode], batch_size=0)
        values = [b"%d" % number for number in range(60)]
        values[20] = values[40] = b"x" * 30_000
        futures = [producer.send(topic, value) for value in values]
        for number, future in enumerate(futures):
            error = future.exception(TIMEOUT)
            if number in (20, 40):
                assert error is not None
                assert error.outcome is Outcome.REJECTED
                assert isinstance(error.__cause__, MessageTooLarge)
                assert "the topic's max.message.bytes (20000) allows" in str(error)
            else:
                assert error is None, error
        read = [one.value for one in read_log(real_kafka.bootstrap, topic, 0)]
        expected = [value for value in values if len(value) < 100]
        assert (read if mode == "idempotent" else sorted(read)) == (
            expected if mode == "idempotent" else sorted(expected)
        )

    def test_flush_tells_of_what_nobody_observes(
        self, real_kafka: RealKafka, producer_on: MakeProducer
    ) -> None:
        old = int(real_kafka.release.version[0]) < 3
        limit = "difference" if old else "after"  # the latter is new in 3.6
        topic = new_topic(real_kafka, **{f"message_timestamp_{limit}_max_ms": "3600000"})
        producer = producer_on()
        tomorrow = int(time.time() * 1000) + 86_400_000
        producer.send_nowait(topic, b"too early", timestamp_ms=tomorrow)
        with pytest.raises(DeliveryError) as caught:
            producer.flush()
        assert caught.value.count == 1
        assert caught.value.outcome is Outcome.REJECTED
        assert isinstance(caught.value.first.__cause__, InvalidTimestamp)
        producer.send(topic, b"in time").result(TIMEOUT)
        assert [one.value for one in read_log(real_kafka.bootstrap, topic, 0)] == [b"in time"]


class TestTopicsThatChange:
    def test_a_topic_is_deleted_and_made_again_while_producing(
        self,
        real_kafka: RealKafka,
        producer_on: MakeProducer,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG, "kafka_fast.producer")
        topic = new_topic(real_kafka, 2)
        producer = producer_on(metadata_max_age_ms=2_000)
        before = [producer.send(topic, b"old %d" % number, partition=0) for number in range(100)]
        for future in before:
            future.result(TIMEOUT)
        real_kafka.delete_topic(topic)
        between = [producer.send(topic, b"new %d" % number, partition=0) for number in range(100)]
        eventually(lambda: "UNKNOWN_TOPIC" in caplog.text, "the broker's refusal")
        if real_kafka.release.version[0] >= "4":
            assert "UNKNOWN_TOPIC_ID" in caplog.text, "Produce names topics by id"
        create_again(real_kafka, topic, 2)
        offsets = [future.result(TIMEOUT).offset for future in between]
        after = producer.send(topic, b"last", partition=0).result(TIMEOUT)
        assert [*offsets, after.offset] == list(range(101))
        read = [one.value for one in read_log(real_kafka.bootstrap, topic, 0)]
        assert read == [*(b"new %d" % number for number in range(100)), b"last"]

    def test_new_partitions_are_used(
        self, real_kafka: RealKafka, producer_on: MakeProducer, admin: AdminClient
    ) -> None:
        topic = new_topic(real_kafka, 1)
        producer = producer_on(metadata_max_age_ms=300)
        assert producer.send(topic, b"x", b"key-1").result(TIMEOUT).partition == 0
        done(admin.create_partitions([NewPartitions(topic, 5)]))
        seen: set[int] = set()

        def all_used() -> bool:
            seen.add(producer.send(topic, b"x", b"key-%d" % len(seen)).result(TIMEOUT).partition)
            for number in range(50):
                seen.add(producer.send(topic, b"", b"%d" % number).result(TIMEOUT).partition)
            return seen == {0, 1, 2, 3, 4}

        eventually(all_used, "records in all partitions")
        assert len(producer.partitions_for(topic)) == 5

    def test_the_start_of_the_log_moves_while_producing(
        self, real_kafka: RealKafka, producer_on: MakeProducer, admin: AdminClient
    ) -> None:
        topic = new_topic(real_kafka)
        producer = producer_on()
        futures = []
        for start in range(0, 1_000, 100):
            futures += [producer.send(topic, b"%d" % n) for n in range(start, start + 100)]
            futures[-1].result(TIMEOUT)
            # All of the producer's batches are gone, and maybe what the broker knew of it.
            place = confluent_kafka.TopicPartition(topic, 0, start + 100)
            done(admin.delete_records([place]))
        futures.append(producer.send(topic, b"1000"))
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(1_001))
        (read,) = read_log(real_kafka.bootstrap, topic, 0)
        assert (read.offset, read.value) == (1_000, b"1000")
        assert all(a.result().offset < b.result().offset for a, b in pairwise(futures))


@pytest.mark.parametrize(
    "name", ["a function that returns", "sys.exit in a function", "an abandoned generator"]
)
def test_an_unclosed_producer_delivers_all_it_accepted(real_kafka: RealKafka, name: str) -> None:
    prefix = f"ending-{uuid.uuid4().hex[:8]}-"
    for topic in COUNTS:
        real_kafka.create_topic(prefix + topic, 1)
    process = begin(real_kafka.bootstrap, ENDINGS[name].body, prefix)
    _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == ENDINGS[name].status, err
    logs = {topic: read_log(real_kafka.bootstrap, prefix + topic, 0) for topic in COUNTS}
    assert {topic: len(log) for topic, log in logs.items()} == COUNTS
