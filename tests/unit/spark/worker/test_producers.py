"""The cache of producers: one per configuration, closed when idle, never after a fork."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafka_fast.spark.options import JobConfig, freeze
from kafka_fast.spark.worker.producers import MAX_IDLE_PRODUCERS, ProducerCache
from tests.unit.spark.fakes import FakeProducer


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def config(number: int = 0, idle_ms: int = 540_000) -> JobConfig:
    return freeze(
        {
            "bootstrap.servers": ["a:9092", "b:9092"],
            "client.id": f"c{number}",
            "connections.max.idle.ms": idle_ms,
        }
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Iterator[ProducerCache]:
    made = ProducerCache(FakeProducer, clock)
    yield made
    clock.now = 1e9
    made.idle.close_due()


def test_tasks_share_a_producer(cache: ProducerCache) -> None:
    with cache.lease(config()) as first:
        pass
    with cache.lease(config()) as second, cache.lease(config()) as third:
        assert first is second is third
    with cache.lease(config(1)) as other:
        assert other is not first
    assert len(cache) == 2
    assert first.config["bootstrap.servers"] == "a:9092,b:9092"
    assert first.closed == other.closed == []


def test_a_failed_task_takes_its_producer_with_it(cache: ProducerCache) -> None:
    with pytest.raises(KeyError), cache.lease(config()) as first:
        raise KeyError
    assert first.closed == [0.0]  # at once: what it left behind is written by the next attempt
    with cache.lease(config()) as second:
        assert second is not first


def test_a_retired_producer_stays_open_for_its_other_task(cache: ProducerCache) -> None:
    with cache.lease(config()) as first:
        with pytest.raises(KeyError), cache.lease(config()):
            raise KeyError
        assert first.closed == []
        with cache.lease(config()) as second:
            assert second is not first
    assert first.closed == [0.0]
    assert second.closed == []


def test_one_that_is_not_sure_of_all_records_goes_with_its_last_task(cache: ProducerCache) -> None:
    with cache.lease(config()) as first, cache.lease(config()):
        cache.retire(first)
        with cache.lease(config()) as second:
            assert second is not first
        assert first.closed == []
    assert (first.closed, second.closed) == ([0.0], [])
    cache.retire(first)  # it has gone already
    assert len(cache) == 1


def test_idle_producers_are_closed(cache: ProducerCache, clock: Clock) -> None:
    with cache.lease(config(0, idle_ms=10_000)) as short:
        pass
    with cache.lease(config(1, idle_ms=-1)) as forever:
        pass
    clock.now = 9.9
    cache.idle.close_due()
    assert short.closed == []
    clock.now = 10.0
    with cache.lease(config(0, idle_ms=10_000)) as used:
        cache.idle.close_due()
    assert used is short
    assert short.closed == []
    clock.now = 20.0
    cache.idle.close_due()
    assert short.closed == [0.0]
    assert forever.closed == []
    assert len(cache) == 1


def test_the_timer_closes_without_another_task() -> None:
    cache = ProducerCache(FakeProducer)
    with cache.lease(config(idle_ms=20)) as producer:
        pass
    timer = cache.idle.timer
    assert timer is not None and timer.daemon
    timer.join(timeout=10)
    assert producer.closed == [0.0]
    assert len(cache) == 0


def test_the_number_of_idle_producers_is_bounded(cache: ProducerCache, clock: Clock) -> None:
    made = []
    for number in range(MAX_IDLE_PRODUCERS + 2):
        clock.now += 1
        with cache.lease(config(number)) as producer:
            made.append(producer)
    assert [len(leased.closed) for leased in made] == [1, 1] + [0] * MAX_IDLE_PRODUCERS


def test_a_forked_child_makes_its_own(
    cache: ProducerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cache.lease(config()) as parents:
        pass
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with cache.lease(config()) as children:
        assert children is not parents
    cache.drop_inherited()
    assert len(cache) == 0
    assert parents.closed == []
