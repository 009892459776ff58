"""Batches that brokers refuse: too large ones are not made again, wrong records are named."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_fast.errors import (
    DeliveryError,
    InvalidTimestamp,
    Outcome,
    TopicAuthorizationFailed,
    UsageError,
)
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.partitions.cluster_topics import TopicConfig
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import DESCRIBE_CONFIGS, PRODUCE
from kafka_fast.types import RecordMetadata
from tests.embedded.looped import producer_of, run, until
from tests.embedded.producing import TIMEOUT, MakeProducer, new_topic, values
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio

RECORD = 200
LIMIT = 3_000
COUNT = 5_000


def send(producer: Any, topic: str, count: int = COUNT, first: int = 0) -> list[bytes]:
    """Send so many records and wait until they are delivered, in order; return their values."""
    sent = [b"%06d" % number + bytes(RECORD - 6) for number in range(first, first + count)]
    futures = [producer.send(topic, value) for value in sent]
    offsets = [future.result(TIMEOUT).offset for future in futures]
    assert offsets == list(range(first, first + count))
    return sent


@contextmanager
def no_new(producer: Any, name: str) -> Iterator[None]:
    """Check that a counter stands where it stood."""
    before = producer.metrics()[name]
    yield
    assert producer.metrics()[name] == before


# ---- batches that are too large ----


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_refused_size_is_learnt(
    kafka: EmbeddedKafka,
    producer_on: MakeProducer,
    idempotent: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: each batch was refused anew, and those behind it waited for its backoff."""
    caplog.set_level(logging.WARNING)
    topic = new_topic(kafka, "learnt", max_message_bytes=str(LIMIT))
    asked: list[int] = []
    kafka.faults.script(DESCRIBE_CONFIGS, lambda response, node: asked.append(node))
    producer = producer_on(enable_idempotence=idempotent)
    producer.partitions_for(topic)
    in_flight = 5
    sent = send(producer, topic) if idempotent else unordered(kafka, producer, topic)
    assert sorted(values(kafka, topic)) == sorted(sent)
    assert producer.metrics()["punts"] <= in_flight
    assert len(asked) == 1
    with no_new(producer, "punts"), no_new(producer, "splits"):
        producer.send_many(topic, sent).result(TIMEOUT)
    assert caplog.records == [], "what only follows from a refusal is no trouble"


def unordered(kafka: EmbeddedKafka, producer: Any, topic: str) -> list[bytes]:
    sent = [b"%06d" % number + bytes(RECORD - 6) for number in range(COUNT)]
    result = producer.send_many(topic, sent).result(TIMEOUT)
    assert result.failed == 0
    return sent


def test_a_limit_that_is_not_told_is_found(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    topic = new_topic(kafka, "found", max_message_bytes=str(LIMIT))
    kafka.faults.error(DESCRIBE_CONFIGS, TopicAuthorizationFailed)
    producer = producer_on()
    sent = send(producer, topic)
    assert values(kafka, topic) == sent
    with no_new(producer, "punts"):
        send(producer, topic, first=COUNT)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_batches_above_256_kib_are_split_as_well(
    kafka: EmbeddedKafka, producer_on: MakeProducer, codec: str
) -> None:
    topic = new_topic(kafka, "large", max_message_bytes=str(300_000))
    producer = producer_on(batch_size=1_000_000, linger_ms=500, compression_type=codec)
    noise = [bytes((number * 7 + at * at * 31) % 253 for at in range(997)) for number in range(97)]
    sent = [noise[number % 97] + b"%d" % number for number in range(3_000)]
    assert producer.send_many(topic, sent).result(TIMEOUT).failed == 0
    assert values(kafka, topic) == sent
    assert codec != "none" or producer.metrics()["splits"] > 0


def configure(kafka: EmbeddedKafka, topic: str, limit: int) -> None:
    """Change a topic's max.message.bytes under way."""

    def change(cluster: Cluster) -> None:
        cluster.state.topics[topic].config = TopicConfig.from_texts(
            {"max.message.bytes": str(limit)}
        )

    kafka.on_cluster(change)


def test_a_limit_that_is_lowered_is_learnt_anew(
    kafka: EmbeddedKafka, producer_on: MakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_fast.control.producer.limits.ASK_AGAIN", 0.0)
    topic = new_topic(kafka, "lowered", max_message_bytes=str(10 * LIMIT))
    producer = producer_on()
    send(producer, topic)
    configure(kafka, topic, LIMIT)
    send(producer, topic, first=COUNT)
    with no_new(producer, "punts"):
        send(producer, topic, first=2 * COUNT)


def largest(kafka: EmbeddedKafka, topic: str) -> int:
    """Return how many records the largest of the last few batches has."""

    def look(cluster: Cluster) -> int:
        return max(batch.record_count for batch in list(cluster.batches(topic, 0))[-3:])

    return kafka.on_cluster(look)


def test_a_limit_that_is_raised_is_noticed_in_time(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    topic = new_topic(kafka, "raised", max_message_bytes=str(LIMIT))
    producer = producer_on(metadata_max_age_ms=300, linger_ms=100)
    producer.send_many(topic, [bytes(RECORD)] * COUNT).result(TIMEOUT)
    small = largest(kafka, topic)
    assert small * RECORD < LIMIT
    configure(kafka, topic, 1_000_000)

    def has_grown() -> bool:
        producer.send_many(topic, [bytes(RECORD)] * 100).result(TIMEOUT)
        return largest(kafka, topic) > 2 * small

    eventually(has_grown, "larger batches")


def test_a_topic_that_is_created_again_may_take_more(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    topic = new_topic(kafka, "again", max_message_bytes=str(LIMIT))
    producer = producer_on(linger_ms=100)
    producer.send_many(topic, [bytes(RECORD)] * COUNT).result(TIMEOUT)
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 1)
    first = producer.send(topic, b"first").result(TIMEOUT)
    assert first.offset == 0
    producer.send_many(topic, [bytes(RECORD)] * 1_000).result(TIMEOUT)
    assert largest(kafka, topic) * RECORD > LIMIT


# ---- futures end with their part ----


def test_what_the_first_part_brings_is_known_before_the_second(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    topic = new_topic(kafka, "parts", max_message_bytes=str(LIMIT))
    producer = producer_on(linger_ms=200)
    producer.partitions_for(topic)
    kafka.faults.drop(api=PRODUCE, applied=False, skip=2)  # all but the whole and its first part
    told: list[RecordMetadata] = []
    futures = [
        producer.send(topic, bytes(RECORD), on_delivery=lambda _, metadata: told.append(metadata))
        for _ in range(100)
    ]
    bulk = producer.send_many(topic, [bytes(RECORD)] * 100)
    bulk.add_done_callback(lambda _: None)
    assert futures[0].result(TIMEOUT).offset == 0
    done = [future.done() for future in futures]
    count = done.index(False)
    assert 1 < count < 20
    assert not any(done[count:])
    assert futures[count - 1].result(TIMEOUT).offset == count - 1

    def are_told() -> bool:
        producer.partitions_for(topic)  # the callbacks of asyncio run while a call does
        return len(told) == count

    eventually(are_told, "the callbacks of the first part")
    assert not bulk.done()
    for future in futures[count:]:
        future.add_done_callback(lambda _: None)


@pytest.mark.threads_only("has an event loop of its own")
def test_tasks_go_on_with_the_part_of_their_record(
    kafka: EmbeddedKafka, producer_class: Any, loop: str
) -> None:
    topic = new_topic(kafka, "tasks", max_message_bytes=str(LIMIT))
    kafka.faults.drop(api=PRODUCE, applied=False, skip=2)  # all but the whole and its first part

    async def main() -> None:
        producer = producer_of(kafka, linger_ms=200)
        await producer.partitions_for(topic)
        futures = [await producer.send(topic, bytes(RECORD)) for _ in range(100)]
        called: list[object] = []
        for future in futures:
            future.add_done_callback(called.append)
        waiting = asyncio.gather(*futures[50:])
        assert (await futures[0]).offset == 0
        count = [future.done() for future in futures].index(False)
        offsets = [metadata.offset for metadata in await asyncio.gather(*futures[:count])]
        assert offsets == list(range(count))
        await until(lambda: len(called) == count)
        assert called == futures[:count]
        done, pending = await asyncio.wait(
            {asyncio.ensure_future(futures[number]) for number in (0, 60)},
            return_when=asyncio.FIRST_COMPLETED,
        )
        assert len(done) == len(pending) == 1
        assert not waiting.done()
        await producer.close(0)
        with pytest.raises(DeliveryError):
            await waiting
        await until(lambda: len(called) == 100)

    run(main(), loop)


# ---- wrong records ----

OLD = 1_000
"""A timestamp that the topic does not take."""


@pytest.fixture
def strict_topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    return new_topic(kafka, request.node.name, message_timestamp_before_max_ms="1000000")


def now_ms() -> int:
    return int(time.time() * 1000)


def times(wrong: set[int], count: int = 10) -> list[int]:
    now = now_ms()
    return [OLD if number in wrong else now for number in range(count)]


def check(error: Any, *, is_wrong: bool, records: str = "another record") -> None:
    assert isinstance(error, DeliveryError)
    assert isinstance(error.first, InvalidTimestamp)
    assert error.outcome is Outcome.REJECTED
    assert error.is_collateral is not is_wrong
    text = str(error)
    assert f"timestamp {OLD} is not between" in text
    assert (f"with its batch of 10, because of {records}" in text) is not is_wrong
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.is_collateral) == (text, error.is_collateral)


def test_the_error_of_a_record_says_whether_it_is_the_wrong_one(
    strict_topic: str, producer_on: MakeProducer
) -> None:
    """Regression: all records of the batch had the same error."""
    producer = producer_on(linger_ms=100)
    futures = [producer.send(strict_topic, b"v", timestamp_ms=at) for at in times({3, 7})]
    for number, future in enumerate(futures):
        error = future.exception(TIMEOUT)
        check(error, is_wrong=number in (3, 7), records="2 other records")
    assert "(rejected)" in repr(futures[0])


def test_callbacks_hear_it_too(strict_topic: str, producer_on: MakeProducer) -> None:
    told: list[DeliveryError | None] = []
    producer = producer_on(linger_ms=100, on_delivery=lambda error, _: told.append(error))
    for at in times({3}):
        producer.send_nowait(strict_topic, b"v", timestamp_ms=at)
    producer.send_many(strict_topic, [b"v"] * 10, timestamps_ms=times({3}))
    producer.flush()
    assert len(told) == 20
    wrong = [error for error in told if error is not None and not error.is_collateral]
    assert wrong, "of one batch or two"
    assert all("with its batch" not in str(error) for error in wrong)


def test_a_bulk_call_names_the_row(strict_topic: str, producer_on: MakeProducer) -> None:
    producer = producer_on(linger_ms=100)
    future = producer.send_many(strict_topic, [b"v"] * 10, timestamps_ms=times({4}))
    for row, error in future.failed(TIMEOUT):
        check(error, is_wrong=row == 4)
    summary = future.exception()
    assert summary is not None
    assert str(summary).startswith(
        "10 of 10 records not delivered (rejected), 9 of them because of others in their batches; "
        "the first is row 4: INVALID_TIMESTAMP (32): a record of "
    )
    assert [sample.is_collateral for sample in summary.samples] == [False, True, True]


def test_a_flush_names_a_wrong_one(strict_topic: str, producer_on: MakeProducer) -> None:
    producer = producer_on(linger_ms=100)
    for at in times({5}):
        producer.send_nowait(strict_topic, b"v", timestamp_ms=at)
    with pytest.raises(DeliveryError) as caught:
        producer.flush()
    assert caught.value.count == 10
    assert "with its batch" not in str(caught.value)


def test_a_record_in_a_part_of_a_split_batch_has_its_own_error(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    topic = new_topic(
        kafka,
        "split",
        message_timestamp_before_max_ms="1000000",
        max_message_bytes=str(LIMIT),
    )
    producer = producer_on(linger_ms=100)
    futures = [producer.send(topic, bytes(RECORD), timestamp_ms=at) for at in times({20}, count=60)]
    errors = [future.exception(TIMEOUT) for future in futures]
    failed = [number for number, error in enumerate(errors) if error is not None]
    assert 1 < len(failed) < 20
    assert failed == list(range(failed[0], failed[-1] + 1))
    assert [number for number in failed if not getattr(errors[number], "is_collateral", None)] == [
        20
    ]


def test_after_the_end_the_errors_still_say_it(
    strict_topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(linger_ms=100)
    futures = [producer.send(strict_topic, b"v", timestamp_ms=at) for at in times({0})]
    with pytest.raises((DeliveryError, UsageError)):
        futures[0].result(TIMEOUT)
    producer.close(0)
    assert [
        error.is_collateral for error in (future.exception() for future in futures) if error
    ] == [
        False,
        *[True] * 9,
    ]
