"""The worker's cache of consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast.spark.options import JobConfig, freeze
from kafka_fast.spark.source.consumers import MAX_IDLE, ConsumerCache
from tests.unit.spark.source.fakes import Clock


class FakeConsumer:
    def __init__(self, config: JobConfig) -> None:
        self.config = config
        self.assigned: list[Any] = []
        self.closed = 0

    def assign(self, partitions: list[Any]) -> None:
        self.assigned.append(partitions)

    def close(self, timeout: float) -> None:
        self.closed += 1


def config(number: int = 0) -> JobConfig:
    properties = {"bootstrap.servers": f"a:{number + 1}", "connections.max.idle.ms": "60000"}
    return freeze(properties, "consumer")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Iterator[ConsumerCache]:
    made = ConsumerCache(FakeConsumer, clock)
    yield made
    clock.now = 1e9
    made.idle.close_due()


def test_a_task_gets_the_last_ones_consumer_with_nothing_assigned(cache: ConsumerCache) -> None:
    with cache.lease(config()) as first:
        pass
    assert first.assigned == [[]]
    with cache.lease(config()) as second:
        assert second is first
    with cache.lease(config(1)) as other:
        assert other is not first
    assert len(cache.idle) == 2


def test_a_consumer_has_one_task_at_a_time(cache: ConsumerCache) -> None:
    with cache.lease(config()) as first, cache.lease(config()) as second:
        assert first is not second
    assert len(cache.idle) == 2


def test_a_failed_task_closes_its_consumer(cache: ConsumerCache) -> None:
    with pytest.raises(KeyError), cache.lease(config()) as first:
        raise KeyError
    assert first.closed == 1
    assert len(cache.idle) == 0


def test_a_task_that_has_read_enough_gives_its_consumer_back(cache: ConsumerCache) -> None:
    def read() -> Iterator[Any]:
        with cache.lease(config()) as consumer:
            yield consumer
            yield consumer

    rows = read()
    first = next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert first.closed == 0
    assert len(cache.idle) == 1


def test_idle_consumers_are_closed(cache: ConsumerCache, clock: Clock) -> None:
    with cache.lease(config()) as first:
        pass
    clock.now += 59
    cache.idle.close_due()
    assert first.closed == 0
    clock.now += 1
    cache.idle.close_due()
    assert first.closed == 1
    assert len(cache.idle) == 0


def test_few_are_kept(cache: ConsumerCache) -> None:
    made = []
    for number in range(MAX_IDLE + 1):
        with cache.lease(config(number)) as consumer:
            made.append(consumer)
    assert [leased.closed for leased in made] == [1] + [0] * MAX_IDLE


def test_a_forked_child_leaves_its_parents_alone(cache: ConsumerCache) -> None:
    with cache.lease(config()) as first:
        pass
    cache.idle.drop_inherited()
    with cache.lease(config()) as second:
        assert second is not first
    assert first.closed == 0
