"""A signal in a call: Ctrl-C loses no record, and a handler that closes commits none too many."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import TypeVar

import pytest

from kafka_fast import Consumer, ConsumerRecord, TopicPartition
from kafka_fast.net.process import process_life
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import MakeConsumer, committed, fill, partitions_of
from tests.embedded.engine.lives import in_loop
from tests.embedded.interrupting import acting, interrupted_at
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

COUNT = 20_000
BATCH = 10

T = TypeVar("T")


def once_more(prepare: Callable[[], object], call: Callable[[], T]) -> list[T]:
    """Interrupt a call at each line in turn; return what it gives when it is made once more."""
    answers = []
    for place in itertools.count(1):
        prepare()
        try:
            interrupted_at(place, call, "line")
        except KeyboardInterrupt:
            answers.append(call())
        else:
            break
    return answers


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


def batch(consumer: Consumer) -> list[ConsumerRecord]:
    return list(next(consumer.batches(3)))


WAYS: dict[str, Callable[[Consumer], list[ConsumerRecord]]] = {
    "poll": poll,
    "step": step,
    "batch": batch,
}


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
            records = interrupted_at(place, lambda: WAYS[way](consumer))
        except KeyboardInterrupt:
            assert consumer.position(partition) == at
            assert consumer.current_lag(partition) == COUNT - at
        else:
            break
        assert consumer.poll(TIMEOUT, 1).offsets() == [at]
        assert next(iter(consumer)).offset == at + 1
        at += 2
    assert [record.offset for record in records] == list(range(at, at + len(records)))
    assert records
    assert place > 100, "there are more places than that"


def test_ctrl_c_while_records_arrive_loses_nothing(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    """Neither what was fetched nor the news of where to begin."""
    fill(kafka, topic, 20)
    consumer = consumer_on(fetch_max_wait_ms=10)
    consumer.assign([TopicPartition(topic, 0)])
    answers = once_more(consumer.seek_to_beginning, lambda: consumer.poll(TIMEOUT).offsets())
    assert all(offsets == list(range(20)) for offsets in answers)
    assert len(answers) >= 20, "there are more places than that"


def test_ctrl_c_while_a_position_is_found_out(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    """No records tell of it here, so the news must not be lost."""
    fill(kafka, topic, 20)
    consumer = consumer_on(fetch_max_wait_ms=10)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    positions = once_more(consumer.seek_to_end, lambda: consumer.position(partition, TIMEOUT))
    assert set(positions) == {20}
    assert len(positions) >= 10, "there are more places than that"


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
    for place in itertools.count(1, 11):  # a rebalance for each of some of the lines
        consumer.enforce_rebalance()
        eventually(lambda: consumer._reading.has_group_news)
        if news == "assigned":
            consumer.poll(0)
            assert consumer.metrics()["rebalances"][-1].kind == "revoked"
            eventually(lambda: consumer._reading.has_group_news)
        try:
            interrupted_at(place, lambda: consumer.poll(0), "line")
        except KeyboardInterrupt:
            (value,) = fill(kafka, topic, 1)
            records = eventually(lambda: consumer.poll(0.05))
            assert records.values()[-1] == value
        else:
            break
    assert place > 20, "there are more places than that"


# ---- a handler that closes ----


def poll_once(consumer: Consumer) -> Iterator[ConsumerRecord]:
    return iter(consumer.poll(TIMEOUT))


def loop_to_the_end_of_a_batch(consumer: Consumer) -> Iterator[ConsumerRecord]:
    return itertools.islice(consumer, BATCH)


def loop_into_a_batch(consumer: Consumer) -> Iterator[ConsumerRecord]:
    return itertools.islice(consumer, BATCH // 2)


BEFORE = (poll_once, loop_to_the_end_of_a_batch, loop_into_a_batch)

CALLS: dict[str, Callable[[Consumer, list[TopicPartition]], object]] = {
    "poll": lambda consumer, partitions: consumer.poll(TIMEOUT),
    "step": lambda consumer, partitions: next(iter(consumer)),
    "batch": lambda consumer, partitions: next(consumer.batches()),
    "pause": lambda consumer, partitions: consumer.pause(*partitions),
    "pause one": lambda consumer, partitions: consumer.pause(partitions[0]),
    "pause the other": lambda consumer, partitions: consumer.pause(partitions[1]),
    "pause, resume": lambda consumer, partitions: (
        consumer.pause(*partitions),
        consumer.resume(*partitions),
    ),
    "seek": lambda consumer, partitions: [consumer.seek(partition, 0) for partition in partitions],
    "seek to the beginning": lambda consumer, partitions: consumer.seek_to_beginning(),
    "assign": lambda consumer, partitions: consumer.assign([]),
    "position": lambda consumer, partitions: consumer.position(partitions[0]),
    "unsubscribe": lambda consumer, partitions: consumer.unsubscribe(),
    "close": lambda consumer, partitions: consumer.close(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("before", BEFORE)
def test_no_moment_of_a_call_covers_what_the_user_has_not_done(
    kafka: EmbeddedKafka,
    consumer_on: MakeConsumer,
    call: str,
    before: Callable[[Consumer], Iterator[ConsumerRecord]],
) -> None:
    """A close in the middle of a call commits what is covered at that moment."""
    topic = new_topic(kafka, "moments", 2)
    partitions = partitions_of(topic, 2)
    for partition in partitions:
        fill(kafka, topic, 8, partition.partition)  # a batch may have records of both
    consumer = consumer_on(group_id=topic, enable_auto_commit=False, max_poll_records=BATCH)
    consumer.assign(partitions)
    eventually(lambda: consumer.metrics()["chunks"] == 2, "all records")
    done = dict.fromkeys(partitions, 0)
    for record in before(consumer):
        done[TopicPartition(record.topic, record.partition)] = record.offset + 1
    assert sum(done.values()) > 0
    too_many: set[tuple[str, int]] = set()
    places = 0

    def look(frame: FrameType) -> None:
        nonlocal places
        places += 1
        covered = {} if consumer._core.closed else consumer._cursor.covered()
        if any(at.offset > done[partition] for partition, at in covered.items()):
            too_many.add((frame.f_code.co_name, frame.f_lineno))

    with acting(look):
        CALLS[call](consumer, partitions)
    assert not too_many
    assert places > 100, "there are more places than that"


def test_a_handler_that_closes_as_records_come_commits_none_of_them(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    fill(kafka, topic, 30)
    partition = TopicPartition(topic, 0)
    consumer = consumer_on(group_id=topic, max_poll_records=BATCH)
    consumer.assign([partition])
    assert len(consumer.poll(TIMEOUT)) == BATCH

    def close_at_the_end(frame: FrameType) -> None:
        if frame.f_code.co_name == "settle":
            consumer.close()

    with acting(close_at_the_end):
        assert consumer.poll(TIMEOUT).offsets() == list(range(BATCH, 2 * BATCH))
    assert consumer._core.has_ended
    assert committed(kafka, topic) == {partition: BATCH}


# ---- an event loop ----


def interrupted_in(
    loop: asyncio.AbstractEventLoop, task: asyncio.Task[list[int]], place: int
) -> tuple[list[int], bool]:
    """Interrupt a task at a line; return what it gives all the same, and whether it was."""
    try:
        interrupted_at(place, lambda: loop.run_until_complete(task), "line")
    except KeyboardInterrupt:
        task.cancel()  # as asyncio.run does
        with suppress(asyncio.CancelledError, KeyboardInterrupt):
            # A loop that runs for a task which has raised Ctrl-C would not end.
            return task.result() if task.done() else loop.run_until_complete(task), True
        return [], True
    return task.result(), False


def test_ctrl_c_anywhere_in_an_event_loop_loses_nothing(kafka: EmbeddedKafka, topic: str) -> None:
    fill(kafka, topic, 3_000, batch=500)
    loop = asyncio.new_event_loop()
    with in_loop(kafka, topic, loop) as life:
        life.core.reading.assign([TopicPartition(topic, 0)])
        at = len(loop.run_until_complete(life.poll(1)))
        for place in itertools.count(1):
            task = loop.create_task(life.poll(3))
            offsets, was_interrupted = interrupted_in(loop, task, place)
            assert offsets == list(range(at, at + len(offsets)))
            if not was_interrupted:
                break
            at += len(offsets)
            assert loop.run_until_complete(life.poll(1)) == [at]
            at += 1
        assert place > 30, "there are more places than that"


def test_ctrl_c_while_an_event_loop_waits_loses_nothing(kafka: EmbeddedKafka, topic: str) -> None:
    loop = asyncio.new_event_loop()
    with in_loop(kafka, topic, loop, **{"fetch.max.wait.ms": 5}) as life:
        life.core.reading.assign([TopicPartition(topic, 0)])
        # How many lines there are depends on how often the loop looks before the record is there.
        for place in range(1, 120):
            task = loop.create_task(life.poll())
            loop.run_until_complete(asyncio.sleep(0.001))  # it waits now
            fill(kafka, topic, 1)
            offsets, was_interrupted = interrupted_in(loop, task, place)
            assert (offsets or loop.run_until_complete(life.poll())) == [place - 1]
            if not was_interrupted:
                break
        assert place > 20, "there are more places than that"


# ---- the end ----


def closed_twice(make: Callable[[], Consumer], step: int) -> Iterator[Consumer]:
    """Interrupt `close` at each line in turn; yield each consumer that is closed then."""
    for place in itertools.count(1, step):
        before = len(process_life.living)
        consumer = make()
        try:
            interrupted_at(place, consumer.close, "line")
        except KeyboardInterrupt:
            consumer.close()
            assert len(process_life.living) == before
            assert consumer._core.has_ended
            yield consumer
        else:
            assert place > 50, "there are more places than that"
            return


def test_ctrl_c_anywhere_in_close_commits_only_what_is_done(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    fill(kafka, topic, 10)
    partition = TopicPartition(topic, 0)
    numbers = itertools.count()

    def make() -> Consumer:
        consumer = consumer_on(group_id=f"{topic}-{next(numbers)}", fetch_max_wait_ms=10)
        consumer.assign([partition])
        assert consumer.poll(TIMEOUT, 4).offsets() == [0, 1, 2, 3]
        assert consumer.poll(TIMEOUT, 4).offsets() == [4, 5, 6, 7]
        return consumer

    for number, _ in enumerate(closed_twice(make, 2)):
        assert committed(kafka, f"{topic}-{number}").get((topic, 0), 4) == 4


def test_ctrl_c_anywhere_in_close_ends_a_membership(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
) -> None:
    fill(kafka, topic, 10)
    numbers = itertools.count()

    def make() -> Consumer:
        group = f"{topic}-{next(numbers)}"
        consumer = consumer_on(group_id=group, fetch_max_wait_ms=10, auto_offset_reset="earliest")
        consumer.subscribe([topic])
        assert eventually(lambda: consumer.poll(0.05, 4)).offsets() == [0, 1, 2, 3]
        assert consumer.poll(TIMEOUT, 4).offsets() == [4, 5, 6, 7]
        return consumer

    for number, _ in enumerate(closed_twice(make, 23)):
        assert committed(kafka, f"{topic}-{number}").get((topic, 0), 4) == 4
