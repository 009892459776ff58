"""The future of send_many: what it tells, and what flush tells if nobody reads it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafka_fast.errors import DeliveryError, KafkaTimeoutError
from kafka_fast.producer import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.dataplane.lost import lost_count, lost_error
from tests.unit.sending.bulk.common import PARTITIONS, detached, fail_all


def test_an_unread_future_leaves_its_failures_to_flush() -> None:
    bulk = detached()
    future = bulk.send_many("t", [b"a"] * 10)
    fail_all(bulk._queues)
    assert lost_count(bulk._queues) == 0  # it may still be read
    del future
    lost = lost_error(bulk._queues)
    assert lost is not None
    assert lost.count == 10
    assert isinstance(lost.first, DeliveryError)
    assert lost.first.topic == "t"


def test_a_future_dropped_before_the_end_leaves_its_failures_to_flush() -> None:
    bulk = detached()
    bulk.send_many("t", [b"a"] * 10 + [b"v" * (1 << 20)])
    fail_all(bulk._queues)
    assert lost_count(bulk._queues) == 11


@pytest.mark.parametrize("refused", [b"v" * (1 << 20), b"v" * 90_000], ids=["large", "no room"])
def test_a_future_that_a_function_forgets_is_dropped(refused: bytes) -> None:
    """Regression: before Python 3.11 the traceback of a refusal kept the function's variables."""
    bulk = detached(memory=1 << 17)

    def send() -> None:
        future = bulk.send_many("t", [b"a"] + [refused] * 3, partitions=0)
        assert len(future) == 4

    send()
    fail_all(bulk._queues)
    assert lost_count(bulk._queues) == 4


def test_a_read_future_leaves_nothing() -> None:
    bulk = detached()
    future = bulk.send_many("t", [b"a"] * 10)
    fail_all(bulk._queues)
    assert future.result(0).failed == 10
    del future
    assert lost_count(bulk._queues) == 0


def test_a_future_that_is_pending() -> None:
    bulk = detached()
    future = bulk.send_many("t", [b"a"] * 3)
    assert not future.done()
    assert len(future) == 3
    assert "pending" in repr(future)
    with pytest.raises(KafkaTimeoutError, match="3 records"):
        future.result(0.01)
    with pytest.raises(TypeError, match="made by"):
        type(future)()
    with pytest.raises(TypeError, match="made by"):
        type(future).__new__(type(future))


def test_nothing_to_send() -> None:
    future = detached().send_many("t", [])
    assert future.done()
    assert future.result() == (0, 0, {})
    assert future.failed() == []
    assert future.exception() is None


def test_callback_and_await(producer: Producer, topic: str) -> None:
    called = threading.Event()
    future = producer.send_many(topic, [b"a"] * 5000)
    future.add_done_callback(lambda done: called.set() if done is future else None)
    future.result(10)
    assert called.wait(10)
    late = threading.Event()
    future.add_done_callback(lambda _: late.set())
    assert late.wait(10)

    async def wait() -> int:
        first = await producer.send_many(topic, [b"b"] * 5000)
        again = await future
        return first.records + again.records

    assert asyncio.run(wait()) == 10_000


def test_a_callback_of_a_closed_producers_records_runs_at_once(
    kafka: EmbeddedKafka, topic: str
) -> None:
    """Regression: it waited for a callback thread that had ended."""
    with Producer(bootstrap_servers=kafka.bootstrap) as closed:
        future = closed.send_many(topic, [b"a", b"b"])
    told: list[object] = []
    future.add_done_callback(told.append)
    assert told == [future]


def test_on_delivery_hears_of_every_record(kafka: EmbeddedKafka, topic: str) -> None:
    heard = []
    with Producer(
        bootstrap_servers=kafka.bootstrap,
        on_delivery=lambda error, metadata: heard.append((error, metadata)),
    ) as producer:
        times = list(range(100))
        producer.send_many(
            topic, [b"v"] * 100, keys=[b"%d" % i for i in times], timestamps_ms=times
        )
    assert [error for error, _ in heard] == [None] * 100
    assert sorted(metadata.timestamp_ms for _, metadata in heard) == times
    for partition in range(PARTITIONS):
        offsets = [metadata.offset for _, metadata in heard if metadata.partition == partition]
        assert offsets == list(range(len(offsets)))
