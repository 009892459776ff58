"""close() while a call is under way: of another thread, of a cancelled task, of this very thread.

The call ends with a WakeupError, what it was to return is not done, and the consumer closes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kafka_fast
from kafka_fast import (
    Consumer,
    KafkaTimeoutError,
    RebalanceListener,
    TopicPartition,
    UsageError,
    WakeupError,
    read_range,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import LIST_OFFSETS, OFFSET_COMMIT
from tests.embedded.consuming import MakeConsumer, committed, fill, read
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

PACKAGE = str(Path(kafka_fast.__file__).parent) + os.sep
AT_ONCE = 20.0
"""Seconds: by far not as long as the waits that are to be ended."""


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    """Another thread."""
    with ThreadPoolExecutor(1, "other") as pool:
        yield pool


@pytest.fixture
def partition(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


@pytest.fixture
def consumer(consumer_on: MakeConsumer, partition: TopicPartition) -> Consumer:
    """Reads the test's topic by hand, and commits for a group."""
    one = consumer_on(group_id=partition.topic, allow_auto_create_topics=False)
    one.assign([partition])
    return one


@pytest.fixture
def member_on(consumer_on: MakeConsumer, topic: str) -> MakeConsumer:
    def make(listener: RebalanceListener | None = None, **config: Any) -> Consumer:
        one = consumer_on(group_id=topic, **config)
        one.subscribe([topic], listener=listener)
        return one

    return make


class Diary(RebalanceListener):
    """Hears in which thread partitions go; may be made to wait when they come."""

    def __init__(self) -> None:
        self.gone_in: list[str] = []
        self.has_come = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def on_partitions_assigned(self, consumer: Consumer, partitions: Collection[Any]) -> None:
        self.has_come.set()
        assert self.go_on.wait(TIMEOUT)

    def on_partitions_revoked(self, consumer: Consumer, partitions: Collection[Any]) -> None:
        self.gone_in.append(threading.current_thread().name)
        consumer.close()  # it is being closed: nothing to do


def is_busy(consumer: Consumer) -> bool:
    """Whether a thread is in a call; looked at without being in one."""
    return consumer._caller_lock.holder is not None


def begin(other: ThreadPoolExecutor, consumer: Consumer, call: Callable[[], object]) -> Future[Any]:
    """Return the call's future once the other thread is in it."""
    future = other.submit(call)
    eventually(lambda: is_busy(consumer) or future.done(), "the other thread's call")
    return future


@contextmanager
def at_once() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < AT_ONCE


CALLS: dict[str, Callable[[Consumer, TopicPartition], object]] = {
    "poll": lambda c, p: c.poll(TIMEOUT),
    "for": lambda c, p: next(iter(c)),
    "batches": lambda c, p: next(c.batches()),
    "position": lambda c, p: c.position(p),
    "end_offsets": lambda c, p: c.end_offsets([p]),
    "partitions_for": lambda c, p: c.partitions_for("absent"),
}


class LateLock:
    """The lock of a consumer that another thread closes, or tries to, before one of its takes."""

    def __init__(self, consumer: Consumer, other: ThreadPoolExecutor, take: int) -> None:
        self._consumer = consumer
        self._caller_lock = consumer._caller_lock
        self._other = other
        self._left = take
        self.closing: Future[None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._caller_lock, name)

    def __enter__(self) -> None:
        self._left -= 1
        if self._left == 0:
            core = self._consumer._core
            self.closing = self._other.submit(self._consumer.close)
            eventually(lambda: core.has_ended or core.waits.closer is not None, "the close")
        self._caller_lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._caller_lock.__exit__(None, None, None)


CLOSES = r"^(another thread|task 'close of .*') closes this consumer"


class TestAnotherThread:
    @pytest.mark.parametrize("call", CALLS)
    def test_is_woken(
        self,
        kafka: EmbeddedKafka,
        consumer: Consumer,
        other: ThreadPoolExecutor,
        partition: TopicPartition,
        call: str,
    ) -> None:
        kafka.faults.drop(api=LIST_OFFSETS, count=100)
        waiting = begin(other, consumer, lambda: CALLS[call](consumer, partition))
        with at_once():
            consumer.close()
            with pytest.raises(WakeupError, match=CLOSES):
                waiting.result(TIMEOUT)
        with pytest.raises(UsageError, match="the consumer is closed"):
            consumer.poll()

    @pytest.mark.parametrize("take", [2, 3, 4])
    @pytest.mark.parametrize("call", ["for", "batches"])
    def test_is_woken_between_two_waits(
        self,
        consumer: Consumer,
        other: ThreadPoolExecutor,
        call: str,
        take: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Regression: "the consumer is closed", as if the record were asked for afterwards.

        An iterator waits for its next records in several polls.
        """
        for module in (kafka_fast.consumer.client, kafka_fast.aio.consumer):
            monkeypatch.setattr(module, "ITERATION_WAIT", 0.0)
        records = iter(consumer) if call == "for" else consumer.batches()
        lock = LateLock(consumer, other, take)
        monkeypatch.setattr(getattr(consumer, "client", consumer), "_caller_lock", lock)
        with pytest.raises(WakeupError, match=CLOSES):
            next(records)
        assert lock.closing is not None
        lock.closing.result(TIMEOUT)

    @pytest.mark.threads_only("it calls a blocking consumer in a thread of asyncio's")
    def test_of_a_cancelled_task_is_woken(self, consumer: Consumer) -> None:
        """`asyncio.to_thread` leaves its thread behind when it is cancelled."""

        async def main() -> None:
            task = asyncio.create_task(asyncio.to_thread(consumer.poll, TIMEOUT))
            await asyncio.to_thread(eventually, lambda: is_busy(consumer))
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            consumer.close()

        with at_once():
            asyncio.run(main())

    def test_that_polls_again_and_again_is_out_as_well(
        self, kafka: EmbeddedKafka, consumer: Consumer, other: ThreadPoolExecutor, topic: str
    ) -> None:
        fill(kafka, topic, 100)

        has_polled = threading.Event()

        def poll_for_ever() -> None:
            while True:
                with suppress(WakeupError):
                    consumer.poll(0, 1)
                has_polled.set()

        polling = other.submit(poll_for_ever)
        assert has_polled.wait(TIMEOUT)
        with at_once():
            consumer.close()
            with pytest.raises(UsageError, match="the consumer is closed"):
                polling.result(TIMEOUT)

    def test_leaves_a_block_that_is_closed(
        self, kafka: EmbeddedKafka, consumer: Consumer, other: ThreadPoolExecutor, topic: str
    ) -> None:
        fill(kafka, topic, 10)

        def work() -> None:
            with consumer:
                while True:
                    consumer.poll(TIMEOUT)

        working = begin(other, consumer, work)
        eventually(lambda: consumer.metrics()["chunks"] > 0, "records")
        with at_once():
            consumer.close()
            with pytest.raises(WakeupError):
                working.result(TIMEOUT)

    def test_reads_a_range_no_further(
        self, kafka: EmbeddedKafka, other: ThreadPoolExecutor, topic: str
    ) -> None:
        fill(kafka, topic, 10)
        steps = read_range(topic, bootstrap_servers=kafka.bootstrap, default_api_timeout_ms=60_000)
        kafka.kill(kafka.leader(topic, 0))
        steps._consumer.seek(TopicPartition(topic, 0), 0)
        reading = begin(other, steps._consumer, lambda: list(steps))
        with at_once():
            steps.close()
            with pytest.raises((WakeupError, UsageError)):
                reading.result(TIMEOUT)


class TestWhatIsCommitted:
    def test_what_earlier_polls_returned(
        self,
        kafka: EmbeddedKafka,
        member_on: MakeConsumer,
        other: ThreadPoolExecutor,
        partition: TopicPartition,
    ) -> None:
        fill(kafka, partition.topic, 10)
        diary = Diary()
        member = member_on(diary)
        read(member, 10)
        waiting = begin(other, member, lambda: member.poll(TIMEOUT))
        member.close()
        with pytest.raises(WakeupError):
            waiting.result(TIMEOUT)
        assert committed(kafka, partition.topic) == {partition: 10}
        assert diary.gone_in == ["MainThread"], "once, in the thread that closes"
        follower = member_on()
        with at_once():  # it has left its group
            eventually(lambda: [follower.poll(0.05), follower.assignment()][1], "its partitions")

    def test_not_what_the_poll_that_is_woken_would_have_returned(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, other: ThreadPoolExecutor, topic: str
    ) -> None:
        """Nobody gets it: to commit it would be to lose it."""
        fill(kafka, topic, 10)
        is_read, go_on = threading.Event(), threading.Event()

        def deserialize(data: bytes) -> bytes:
            is_read.set()
            assert go_on.wait(TIMEOUT)
            return data

        member = member_on(value_deserializer=deserialize)
        waiting = other.submit(member.poll, TIMEOUT)
        assert is_read.wait(TIMEOUT)
        with ThreadPoolExecutor(1) as closer:
            closing = closer.submit(member.close)
            eventually(lambda: member._core.waits.closer is not None, "the other's close")
            go_on.set()
            closing.result(TIMEOUT)
        with pytest.raises(WakeupError):
            waiting.result(TIMEOUT)
        assert set(committed(kafka, topic).values()) <= {0}
        assert len(read(member_on(), 10)) == 10

    def test_not_what_a_loop_had_not_reached(
        self,
        kafka: EmbeddedKafka,
        consumer: Consumer,
        other: ThreadPoolExecutor,
        partition: TopicPartition,
    ) -> None:
        fill(kafka, partition.topic, 10)
        assert [record.offset for record in itertools.islice(consumer, 3)] == [0, 1, 2]
        consumer.pause(partition)
        waiting = begin(other, consumer, lambda: next(iter(consumer)))
        consumer.close()
        with pytest.raises(WakeupError):
            waiting.result(TIMEOUT)
        assert committed(kafka, partition.topic) == {partition: 3}


class TestTwoClosers:
    def test_one_closes_and_the_other_returns_then(
        self, member_on: MakeConsumer, other: ThreadPoolExecutor
    ) -> None:
        diary = Diary()
        member = member_on(diary)
        eventually(lambda: [member.poll(0.05), member.assignment()][1], "partitions")
        waiting = begin(other, member, lambda: member.poll(TIMEOUT))
        with ThreadPoolExecutor(4) as closers, at_once():
            for closing in [closers.submit(member.close) for _ in range(4)]:
                closing.result(TIMEOUT)
                assert member._core.closed
        with pytest.raises(WakeupError):
            waiting.result(TIMEOUT)
        assert len(diary.gone_in) == 1

    def test_who_is_stuck_is_not_closed_behind_his_back(
        self, kafka: EmbeddedKafka, member_on: MakeConsumer, other: ThreadPoolExecutor, topic: str
    ) -> None:
        fill(kafka, topic, 10)
        diary = Diary()
        diary.go_on.clear()
        member = member_on(diary)
        waiting = other.submit(member.poll, TIMEOUT)
        assert diary.has_come.wait(TIMEOUT)
        with pytest.raises(KafkaTimeoutError, match=r"has not come out of its call .* not closed"):
            member.close(0.2)
        diary.go_on.set()
        assert len(waiting.result(TIMEOUT)) == 10, "it goes on as if nothing had been"
        member.close()
        assert diary.gone_in == ["MainThread"]


@pytest.mark.threads_only("a signal handler cannot await")
class TestThisThread:
    """A handler of a signal closes in the middle of whatever this thread does."""

    def test_a_poll_that_waits_ends(self, consumer: Consumer) -> None:
        before = signal.signal(signal.SIGALRM, lambda *_: consumer.close())
        try:
            consumer.poll(0.05)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with at_once(), pytest.raises(WakeupError, match="closed meanwhile"):
                consumer.poll(TIMEOUT)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert consumer._core.closed

    @pytest.mark.parametrize("is_in_a_loop", [False, True], ids=["first", "in a loop"])
    def test_anywhere_in_a_poll_it_commits_what_that_poll_covers(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        *,
        is_in_a_loop: bool,
    ) -> None:
        """Whether it covers the records before depends on the place; it is never more.

        What the call ends with is an error of ours, wherever it was.
        """
        offsets: set[int] = set()
        fill(kafka, partition.topic, 2_000, batch=500)
        for place in itertools.count(1, 3):
            group = f"group-{place}-{is_in_a_loop}"
            consumer = consumer_on(group_id=group, max_poll_records=3)
            consumer.assign([partition])
            done = 1 if is_in_a_loop else 3
            handed_over = [next(iter(consumer))] if is_in_a_loop else read(consumer, 3)
            assert [record.offset for record in handed_over] == list(range(done))
            eventually(lambda consumer=consumer: consumer.metrics()["chunks"] > 0)
            try:
                with call_at(place, consumer.close):
                    consumer.poll(TIMEOUT)
            except (WakeupError, UsageError):
                offsets.add(committed(kafka, group).get(partition, 0))
            else:
                break
        assert offsets == {0, done}
        assert place > 30, "there are more places than that"


@contextmanager
def call_at(place: int, call: Callable[[], object]) -> Iterator[None]:
    """Call something at the nth place in the package where Python would run a signal's handler."""
    left = place

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PACKAGE):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                call()

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("does", ["nothing", "subscribe", "assign"])
def test_close_says_nothing_of_commits_that_nobody_made(
    consumer_on: MakeConsumer, topic: str, caplog: pytest.LogCaptureFixture, does: str
) -> None:
    """Regression: of a consumer that had read nothing, it said that it may be read again."""
    consumer = consumer_on(group_id=topic)
    if does == "subscribe":
        consumer.subscribe([topic])
    elif does == "assign":
        consumer.assign([(topic, 0)])
    consumer.close(0)
    assert [text for text in caplog.messages if "finishing commits" in text] == []


def test_close_says_that_a_commit_has_not_ended(
    kafka: EmbeddedKafka,
    consumer: Consumer,
    partition: TopicPartition,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fill(kafka, partition.topic, 10)
    read(consumer, 10)
    kafka.faults.drop(api=OFFSET_COMMIT, count=100)
    consumer.commit(sync=False)
    consumer.close(0)
    (told,) = [text for text in caplog.messages if "finishing commits" in text]
    assert told.endswith("what was read may be read again")
