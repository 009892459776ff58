"""A task from its input to its report, with a producer that does what the test says."""

from __future__ import annotations

import platform
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark import KafkaDeliveryError
from kafka_fast.spark.options import TaskOptions, task_options
from kafka_fast.spark.task_errors import TaskError, read_task_error
from kafka_fast.spark.worker import task
from kafka_fast.spark.worker.producers import ProducerCache
from kafka_fast.spark.worker.task import CHUNK_BYTES, PART_RECORDS, chunks, write_records
from tests.unit.spark.fakes import FakeFuture, FakeProducer, refused

CONFIG = {"bootstrap.servers": "nowhere:1", "delivery.timeout.ms": 200_000}


class Cache(ProducerCache):
    """A cache that shows what it made."""

    def __init__(self) -> None:
        self.made: list[FakeProducer] = []
        super().__init__(self.make)

    def make(self, config: dict[str, Any]) -> FakeProducer:
        self.made.append(FakeProducer(config))
        return self.made[-1]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    """The process's cache with fakes in it, and a worker that runs task 5, attempt 2."""
    context = types.SimpleNamespace(partitionId=lambda: 5, attemptNumber=lambda: 2)
    pyspark = types.ModuleType("pyspark")
    pyspark.TaskContext = types.SimpleNamespace(get=lambda: context)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    made = Cache()
    monkeypatch.setattr(task, "PRODUCERS", made)
    yield made
    if made.idle.timer is not None:
        made.idle.timer.cancel()


def options(**changes: Any) -> TaskOptions:
    return task_options(CONFIG, "t", **changes)


def shipped(**changes: Any) -> tuple[Any, ...]:
    return options(**changes).shipped()


def test_all_records_are_handed_over_in_chunks(cache: Cache) -> None:
    (row,) = write_records((b"%d" % i for i in range(25)), *shipped(chunk_records=10))
    (producer,) = cache.made
    assert [len(values) for _, values, _ in producer.calls] == [10, 10, 5]
    assert [v for _, values, _ in producer.calls for v in values] == [b"%d" % i for i in range(25)]
    assert (row.task, row.attempt, row.topic) == (5, 2, "t")
    assert (row.records, row.base_offset, row.last_offset, row.errors) == (25, 0, 24, 0)
    assert producer.closed == []


def test_no_records_no_rows(cache: Cache) -> None:
    assert list(write_records([], *shipped())) == []


def test_a_failure_fails_the_task_and_is_not_the_next_ones(cache: Cache) -> None:
    settings = options()
    assert sum(row.records for row in write_records([b"1"], *settings.shipped())) == 1
    cache.made[0].outcome = lambda topic, count: FakeFuture(topic, count, 0, [refused(topic)])
    with pytest.raises(KafkaDeliveryError, match="1 of 3 records were not delivered"):
        list(write_records([b"1", b"2", b"3"], *settings.shipped()))
    assert cache.made[0].closed == [0.0]
    (row,) = write_records([b"4"], *settings.shipped())
    assert (row.records, row.errors) == (1, 0)
    assert len(cache.made) == 2


def test_failures_can_be_reported_instead(cache: Cache) -> None:
    with cache.lease(options().config) as producer:
        producer.outcome = lambda topic, count: FakeFuture(topic, count, 0, [refused(topic, 0)])
    (row,) = write_records([b"1", b"2"], *shipped(on_error="report"))
    assert (row.records, row.errors, row.first_error) == (1, 1, "refused")
    assert len(cache) == 1


def test_a_producer_with_records_under_way_serves_no_other_task(cache: Cache) -> None:
    settings = options(on_error="report")
    with cache.lease(settings.config) as producer:
        producer.outcome = never
    (row,) = write_records([b"1", b"2"], *settings.shipped())
    assert (row.records, row.errors) == (0, 2)
    assert "delivery not known in time" in (row.first_error or "")
    assert (producer.closed, len(cache)) == ([0.0], 0)


def never(topic: str, count: int) -> FakeFuture:
    future = FakeFuture(topic, count, 0)
    future.known = False
    return future


def test_a_record_of_a_wrong_type_is_the_callers_mistake(cache: Cache) -> None:
    def refuse(topic: str, count: int) -> FakeFuture:
        raise TypeError(f"the value of row 0 for topic {topic!r} must be bytes-like")

    with cache.lease(options().config) as producer:
        producer.outcome = refuse
    with pytest.raises(UsageError, match="the value of row 0 for topic 't' must be bytes-like"):
        list(write_records([(None, 5)], *shipped()))

    def broken() -> Iterator[bytes]:
        raise TypeError("the input's own")
        yield b""

    with pytest.raises(TypeError, match="the input's own"):
        list(write_records(broken(), *shipped()))


def test_spark_gets_what_it_can_carry(cache: Cache) -> None:
    with cache.lease(options().config) as producer:
        producer.outcome = lambda topic, count: FakeFuture(topic, count, 0, [refused(topic)])
    with pytest.raises(TaskError) as raised:
        list(task.run("write_records", [b"1"], shipped()))
    error = read_task_error(str(raised.value))
    assert isinstance(error, KafkaDeliveryError)
    assert str(error).startswith("1 of 1 records were not delivered (rejected); the first: refused")
    assert f"(Spark task 5, attempt 2, on {platform.node()})" in str(error)


def test_an_input_that_fails_leaves_nothing_to_the_next_task(cache: Cache) -> None:
    def broken() -> Iterator[bytes]:
        yield from [b"1"] * 20
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(write_records(broken(), *shipped(chunk_records=10)))
    assert [len(values) for _, values, _ in cache.made[0].calls] == [10, 10]
    assert cache.made[0].closed == [0.0]
    (row,) = write_records([b"2"], *shipped())
    assert row.records == 1


def test_large_records_come_in_short_chunks() -> None:
    sizes = [len(chunk) for chunk in chunks((bytes(100_000) for _ in range(1000)), 10_000)]
    assert sum(sizes) == 1000
    assert max(sizes) <= PART_RECORDS
    assert CHUNK_BYTES // 100_000 < PART_RECORDS
    pairs = (("key", {"no": "bytes"}, bytes(20)) for _ in range(30_000))
    assert [len(chunk) for chunk in chunks(pairs, 10_000)] == [10_000] * 3
