"""Nothing that failed is committed, whatever the program looks like; see `commit_shapes`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kafka_fast import Consumer, TopicPartition, WakeupError, aio
from kafka_fast.dataplane.fetch._consumer_record import ConsumerRecord
from kafka_fast.testing.broker.server import EmbeddedKafka
from tests.net.commit_shapes import BATCH, COUNT, PLACE, SHAPES, WAYS, Shape, program_of
from tests.net.consuming import committed, fill
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
    islice = staticmethod(itertools.islice)

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
    found: list[int] = []

    def look() -> None:
        def is_committed() -> bool:
            found.append(committed(kafka, topic).get(partition, 0))
            return found[-1] >= expected

        with contextlib.suppress(AssertionError):  # `check` says what is wrong
            eventually(is_committed, timeout=2.0)

    config = config_on(kafka, topic)
    if is_async:
        asyncio.run(run_in_loop(program, config, case, look))
    else:
        run_blocking(program, config, case, look)
    check(case, shape, way, found[-1])
