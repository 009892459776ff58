"""Nothing that failed is committed, whatever the program looks like; see `commit_shapes`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import operator
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafka_fast import Consumer, RebalanceListener, TopicPartition, WakeupError, aio
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consumer.commit_shapes import (
    BATCH,
    COUNT,
    PLACE,
    SHAPES,
    WAYS,
    Shape,
    program_of,
)
from tests.embedded.consuming import committed, fill, poll_until
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

CASES = [
    pytest.param(name, way, is_async, id=f"{name}, {way}{', async' if is_async else ''}")
    for name, shape in SHAPES.items()
    for way in WAYS
    for is_async in (False, True)
    if (way == "for" or shape.others is not None) and (shape.is_for_all or not is_async)
]


class Case:
    """What a program works with, and what it has done."""

    WakeupError = WakeupError
    functools, itertools, operator = functools, itertools, operator

    def __init__(self, partition: TopicPartition, *, is_async: bool) -> None:
        self.partition = partition
        self.keep: object = None
        self.started: list[int] = []
        """Offsets whose work has begun."""
        self.ended: list[int] = []
        """Offsets whose work has ended."""
        self._is_async = is_async

    # ---- work ----

    def receive(self, record: ConsumerRecord) -> None:
        """Work on all records but the one at `PLACE`, which is worked on behind the loop."""
        self.started.append(record.offset)
        if record.offset != PLACE:
            self.ended.append(record.offset)

    def handle(self, record: ConsumerRecord) -> None:
        self.handle_offset(record.offset)

    def handle_offset(self, offset: int) -> None:
        self.started.append(offset)
        if offset == PLACE:
            raise ValueError(offset)
        self.ended.append(offset)

    def handle_all(self, records: Iterable[ConsumerRecord]) -> None:
        self.started += [record.offset for record in records]
        raise ValueError

    def work(self, record: ConsumerRecord) -> None:
        self.work_at(record.offset)

    def work_at(self, offset: int) -> None:
        self.started.append(offset)
        self.ended.append(offset)

    def clean_up(self) -> None:
        pass

    def complain(self, offsets: object, error: object) -> None:
        """Fail as the callback of a commit."""
        raise ValueError

    # ---- what is another in asyncio ----

    def iterate(self, consumer: Any) -> Any:
        return aiter_of(consumer) if self._is_async else iter(consumer)

    def next_of(self, records: Any) -> Any:
        return records.__anext__() if self._is_async else next(records)

    def exit_stack(self) -> Any:
        return contextlib.AsyncExitStack() if self._is_async else contextlib.ExitStack()

    def enter(self, stack: Any, consumer: Any) -> Any:
        return (stack.enter_async_context if self._is_async else stack.enter_context)(consumer)

    def suppressed(self) -> Any:
        return contextlib.suppress(ValueError)

    def wait_for_callback(self, consumer: Any) -> Any:
        """Wait until the next poll will call a commit's callback."""
        wait = functools.partial(eventually, lambda: consumer._membership.has_to_act)
        return asyncio.to_thread(wait) if self._is_async else wait()

    def collect_garbage(self) -> Any:
        gc.collect()
        return asyncio.get_running_loop().shutdown_asyncgens() if self._is_async else None

    @contextlib.contextmanager
    def resource(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.clean_up()

    # ---- closes of others ----

    def close_by_signal(self, consumer: Consumer) -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: consumer.close())
        try:
            signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)

    def close_in_thread(self, consumer: Consumer) -> None:
        closing = threading.Thread(target=consumer.close)
        closing.start()
        closing.join(TIMEOUT)
        assert not closing.is_alive()


def aiter_of(consumer: Any) -> Any:
    return consumer.__aiter__()


def config_on(kafka: EmbeddedKafka, group: str) -> dict[str, object]:
    return {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 0,
        "max.poll.records": BATCH,
        "fetch.max.wait.ms": 20,
        "retry.backoff.ms": 20,
    }


def run_blocking(
    program: Callable[..., Any], config: dict[str, object], case: Case, seen: Callable[[], object]
) -> None:
    """Run a program, call `seen` at its end, and close what it has left open."""
    consumer = Consumer(config)
    consumer.assign([case.partition])
    try:
        with contextlib.suppress(ValueError, KeyboardInterrupt):
            program(consumer, case)
        seen()
    finally:
        consumer.close(0)


async def run_in_loop(
    program: Callable[..., Any], config: dict[str, object], case: Case, seen: Callable[[], object]
) -> None:
    """Run a program for the asyncio client; as `run_blocking`."""
    consumer = aio.Consumer(config)
    consumer.assign([case.partition])
    try:
        with contextlib.suppress(ValueError, KeyboardInterrupt):
            await program(consumer, case)
        await asyncio.to_thread(seen)
    finally:
        await consumer.close(0)


def check(case: Case, shape: Shape, way: str, offset: int) -> None:
    """Check the two promises, and then the very offset."""
    unfinished = set(case.started) - set(case.ended)
    first_not_ended = min(unfinished, default=len(case.ended))
    assert offset <= first_not_ended, "a record is committed, and its body has not ended"
    most = 1 if way == "for" and shape.for_loop != BATCH else BATCH
    assert first_not_ended - offset <= most, "too much is read again"
    assert offset == (shape.for_loop if way == "for" else shape.others)


@pytest.mark.parametrize(("name", "way", "is_async"), CASES)
def test_what_has_failed_is_not_committed(
    kafka: EmbeddedKafka, topic: str, name: str, way: str, *, is_async: bool
) -> None:
    shape, partition = SHAPES[name], TopicPartition(topic, 0)
    fill(kafka, topic, COUNT)
    case = Case(partition, is_async=is_async)
    program = program_of(shape, way, is_async=is_async)
    expected = shape.for_loop if way == "for" else shape.others
    offsets: list[int] = []

    def look() -> None:
        def is_committed() -> bool:
            offsets.append(committed(kafka, topic).get(partition, 0))
            return offsets[-1] >= expected

        with contextlib.suppress(AssertionError):  # `check` says what is wrong
            eventually(is_committed, timeout=2.0)

    config = config_on(kafka, topic)
    if is_async:
        asyncio.run(run_in_loop(program, config, case, look))
    else:
        run_blocking(program, config, case, look)
    check(case, shape, way, offsets[-1])


class TestTasks:
    """What ends a loop of asyncio's from outside."""

    @staticmethod
    async def _started(kafka: EmbeddedKafka, topic: str) -> aio.Consumer:
        fill(kafka, topic, COUNT)
        consumer = aio.Consumer(config_on(kafka, topic))
        consumer.assign([TopicPartition(topic, 0)])
        return consumer

    def test_a_cancellation_in_the_body_is_an_exception(
        self, kafka: EmbeddedKafka, topic: str
    ) -> None:
        async def main() -> None:
            consumer = await self._started(kafka, topic)
            works = asyncio.Event()

            async def read() -> None:
                async for record in consumer:
                    if record.offset == PLACE:
                        works.set()
                        await asyncio.sleep(TIMEOUT)

            reading = asyncio.create_task(read())
            await works.wait()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            await consumer.close()

        asyncio.run(main())
        assert committed(kafka, topic) == {(topic, 0): PLACE}

    def test_a_cancellation_of_the_wait_for_a_record_is_none(
        self, kafka: EmbeddedKafka, topic: str
    ) -> None:
        async def main() -> None:
            consumer = await self._started(kafka, topic)
            read: list[int] = []

            async def read_on() -> None:
                async with consumer:
                    async for record in consumer:
                        read.append(record.offset)  # noqa: PERF401  the test looks at it meanwhile

            reading = asyncio.create_task(read_on())
            await asyncio.to_thread(eventually, lambda: len(read) == COUNT)
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

        asyncio.run(main())
        assert committed(kafka, topic) == {(topic, 0): COUNT}

    def test_a_loop_that_is_stopped_within_the_body_has_not_done_its_record(
        self, kafka: EmbeddedKafka, topic: str
    ) -> None:
        """The coroutine is closed, as the interpreter does with one that nobody runs any more."""
        fill(kafka, topic, COUNT)
        consumer: list[aio.Consumer] = []

        async def read() -> None:
            consumer.append(await self._started(kafka, topic))
            async for record in consumer[0]:
                if record.offset == PLACE:
                    loop.stop()
                    await asyncio.sleep(TIMEOUT)

        loop = asyncio.new_event_loop()
        reading = read()
        task = loop.create_task(reading)
        loop.run_forever()
        task._log_destroy_pending = False  # type: ignore[attr-defined]  it is what is tested
        with contextlib.suppress(RuntimeError):  # Python 3.12 and later: the task is entered
            reading.close()
        loop.run_until_complete(consumer[0].close())
        loop.close()
        assert committed(kafka, topic) == {(topic, 0): PLACE}


def test_a_rebalance_in_a_poll_commits_what_was_asked_past(kafka: EmbeddedKafka) -> None:
    """Regression of the rule, not of a fault: a poll asks for more, and may have to give up."""
    topic = new_topic(kafka, "rebalance", 2)
    for partition in (0, 1):
        fill(kafka, topic, COUNT, partition)
    config = config_on(kafka, topic) | {"auto.commit.interval.ms": 60_000}
    with Consumer(config) as first, Consumer(config) as second:
        first.subscribe([topic])
        for count, _ in enumerate(first, 1):
            if count == 2 * COUNT:
                break
        assert not committed(kafka, topic), "it is not time yet, and nothing is given up"
        second.subscribe([topic])
        poll_until([first, second], lambda: len(second.assignment()) == 1)
        assert committed(kafka, topic) == {(topic, 0): COUNT, (topic, 1): COUNT}


def test_a_loop_ends_after_its_record_while_another_thread_closes(
    kafka: EmbeddedKafka, topic: str
) -> None:
    """Not only when the close has ended: what is handled until then is not committed."""
    closes, go_on = threading.Event(), threading.Event()

    class Slow(RebalanceListener):
        def on_partitions_revoked(self, consumer: object, partitions: object) -> None:
            closes.set()
            assert go_on.wait(TIMEOUT)

    fill(kafka, topic, COUNT)
    handled: list[int] = []
    with Consumer(config_on(kafka, topic)) as consumer, ThreadPoolExecutor(1) as other:
        consumer.subscribe([topic], listener=Slow())
        with contextlib.suppress(WakeupError):
            for record in consumer:
                handled.append(record.offset)
                if record.offset == PLACE:
                    closing = other.submit(consumer.close)
                    assert closes.wait(TIMEOUT)
        go_on.set()
        closing.result(TIMEOUT)
    assert handled == list(range(PLACE + 1))
    assert committed(kafka, topic) == {(topic, 0): PLACE}
