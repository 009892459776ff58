"""Ctrl-C in a call that takes records: nobody got them, so they come next.

Python raises KeyboardInterrupt where it looks for signals: when a function begins, and when one of
C has returned. Here a profiler raises it at each of these places in turn.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

import pytest

import kafka_fast
from kafka_fast import Consumer, ConsumerRecord, TopicPartition
from kafka_fast.testing.broker.server import EmbeddedKafka
from tests.net.consuming import MakeConsumer, fill
from tests.waiting import TIMEOUT, eventually

COUNT = 3_000
PACKAGE = str(Path(kafka_fast.__file__).parent) + os.sep

T = TypeVar("T")


@contextmanager
def interrupt_at(place: int) -> Iterator[None]:
    """Raise KeyboardInterrupt at the nth place in the package that this thread passes."""
    left = place

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PACKAGE):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def once_more(prepare: Callable[[], object], call: Callable[[], T]) -> list[T]:
    """Interrupt a call at each place in turn; return what it gives when it is made once more."""
    found = []
    for place in itertools.count(1):
        prepare()
        try:
            with interrupt_at(place):
                call()
        except KeyboardInterrupt:
            found.append(call())
        else:
            break
    return found


@pytest.fixture(name="consumer")
def consumer_of_much(kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str) -> Consumer:
    """One that has everything, and has told its user of nothing yet."""
    fill(kafka, topic, COUNT, batch=500)
    consumer = consumer_on(group_id=topic, enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    assert consumer.position(TopicPartition(topic, 0)) == 0
    eventually(lambda: consumer.metrics()["chunks"] > 0, "records")
    return consumer


def poll(consumer: Consumer) -> list[ConsumerRecord]:
    return list(consumer.poll(TIMEOUT, 3))


def step(consumer: Consumer) -> list[ConsumerRecord]:
    return [next(iter(consumer))]


WAYS: dict[str, Callable[[Consumer], list[ConsumerRecord]]] = {"poll": poll, "step": step}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_in_a_loop", [False, True], ids=["first", "in a loop"])
def test_ctrl_c_anywhere_loses_nothing(consumer: Consumer, way: str, *, is_in_a_loop: bool) -> None:
    (partition,) = consumer.assignment()
    at = 0
    for place in itertools.count(1):
        if is_in_a_loop:
            assert next(iter(consumer)).offset == at
            at += 1
        try:
            with interrupt_at(place):
                found = WAYS[way](consumer)
        except KeyboardInterrupt:
            assert consumer.position(partition) == at
            assert consumer.current_lag(partition) == COUNT - at
        else:
            break
        after = consumer.poll(TIMEOUT, 2)
        assert after.offsets() == [at, at + 1]
        at += 2
    assert [record.offset for record in found] == list(range(at, at + len(found)))
    assert place > 10, "there are more places than that"


def test_ctrl_c_while_records_arrive_loses_nothing(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    """Neither what was fetched nor the news of where to begin."""
    fill(kafka, topic, 20)
    consumer = consumer_on(fetch_max_wait_ms=10)
    consumer.assign([TopicPartition(topic, 0)])
    found = once_more(consumer.seek_to_beginning, lambda: consumer.poll(TIMEOUT).offsets())
    assert all(offsets == list(range(20)) for offsets in found)
    assert len(found) >= 20, "there are more places than that"


def test_ctrl_c_while_a_position_is_found_out(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    """No records tell of it here, so the news must not be lost."""
    fill(kafka, topic, 20)
    consumer = consumer_on(fetch_max_wait_ms=10)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    found = once_more(consumer.seek_to_end, lambda: consumer.position(partition, TIMEOUT))
    assert set(found) == {20}
    assert len(found) >= 10, "there are more places than that"


@pytest.mark.parametrize("news", ["revoked", "assigned"])
def test_ctrl_c_in_a_rebalance_leaves_a_member_that_reads(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str, news: str
) -> None:
    """The group waits for an answer: without one the member would only send heartbeats."""
    consumer = consumer_on(
        group_id=topic, partition_assignment_strategy="range", heartbeat_interval_ms=50
    )
    partition = TopicPartition(topic, 0)
    consumer.subscribe([topic])
    eventually(lambda: consumer.poll(0.01) is not None and partition in consumer.assignment())
    for place in itertools.count(1, 3):  # a rebalance for each of a third of the places
        consumer.enforce_rebalance()
        eventually(lambda: consumer._reading.has_group_news)
        if news == "assigned":
            consumer.poll(0)
            assert consumer.metrics()["rebalances"][-1].kind == "revoked"
            eventually(lambda: consumer._reading.has_group_news)
        try:
            with interrupt_at(place):
                consumer.poll(0)
        except KeyboardInterrupt:
            (value,) = fill(kafka, topic, 1)
            records = eventually(lambda: consumer.poll(0.05))
            assert records.values()[-1] == value
        else:
            break
    assert place > 20, "there are more places than that"
