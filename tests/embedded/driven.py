"""The clients of asyncio behind the methods of the blocking ones, so that one test is for both.

    a test's thread ── consumer.poll() ──► run ──► the thread's event loop ──► await poll()
    a listener of the test ── consumer.commit() ──► a greenlet: the same task awaits commit()

Each thread has an event loop of its own, which runs while a call waits. So calls of several threads
are calls of tasks in several loops.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from kafka_fast import aio
from kafka_fast.errors import WouldWaitError
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords

T = TypeVar("T")

PLAIN = {
    "Consumer": {
        "assign",
        "assignment",
        "current_lag",
        "enforce_rebalance",
        "group_metadata",
        "metrics",
        "pause",
        "paused",
        "resume",
        "seek",
        "seek_to_beginning",
        "seek_to_end",
        "seek_to_timestamp",
        "subscription",
        "wakeup",
    },
    "Producer": {"metrics"},
    "RecordRange": set(),
}
"""Methods that are no coroutines."""

WAITING = {
    "Consumer": {
        "beginning_offsets",
        "close",
        "commit",
        "committed",
        "debug_dump",
        "end_offsets",
        "lag",
        "offsets_for_times",
        "partitions_for",
        "poll",
        "position",
        "topics",
        "unsubscribe",
    },
    "Producer": {
        "abort_transaction",
        "begin_transaction",
        "close",
        "commit_transaction",
        "debug_dump",
        "flush",
        "init_transactions",
        "partitions_for",
        "send",
        "send_many",
        "send_offsets_to_transaction",
        "send_table",
    },
    "RecordRange": {"close", "to_arrow"},
}
"""Methods that are coroutines."""

_threads = threading.local()
_loops: list[asyncio.AbstractEventLoop] = []


class Sync(greenlet):
    """Blocking code that runs within a task; what it waits for is awaited in that task."""


async def spawn(function: Callable[..., T], *args: object) -> T:
    """Call a function whose calls of `run` are awaited in this task."""
    code = Sync(function)
    result = code.switch(*args)
    while not code.dead:
        try:
            value = await result
        except BaseException as error:  # noqa: BLE001, PERF203  the code is to see it
            result = code.throw(error)
        else:
            result = code.switch(value)
    returned: T = result
    return returned


def run(awaitable: Awaitable[T]) -> T:
    """Wait for a coroutine, in the event loop of this thread."""
    current = getcurrent()
    if isinstance(current, Sync):
        inner: T = current.parent.switch(awaitable)
        return inner
    loop = getattr(_threads, "loop", None)
    if loop is None or loop.is_closed():
        loop = _threads.loop = asyncio.new_event_loop()
        _loops.append(loop)
    returned: T = loop.run_until_complete(_await(awaitable))
    return returned


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


def close_loops() -> None:
    """Close the event loops of all threads, none of which may run."""
    while _loops:
        _loops.pop().close()


class Driven:
    """A client of asyncio with blocking methods. Everything else is the client's own."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        kind = type(self.client).__name__
        method = getattr(self.client, name)
        if name in WAITING[kind]:
            return lambda *args, **named: run(method(*args, **named))
        assert name.startswith("_") or name in PLAIN[kind] | {"client_id"}, name
        return method

    def __repr__(self) -> str:
        return repr(self.client)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:  # noqa: PYI036  passed on
        run(self.client.__aexit__(kind, error, trace))


class DrivenConsumer(Driven):
    """An `aio.Consumer` in the shape of a `Consumer`."""

    def __init__(self, *args: Any, **properties: Any) -> None:
        super().__init__(aio.Consumer(*args, **properties))

    def subscribe(self, topics: Any = None, *, pattern: Any = None, listener: Any = None) -> None:
        """Subscribe; the listener is given this object, and its calls are awaited."""
        if topics is not None and not isinstance(topics, str):
            topics = list(topics)
            if not topics and pattern is None:
                run(self.client.unsubscribe())
                return
        adapted = None if listener is None else AdaptedListener(self, listener)
        self.client.subscribe(topics, pattern=pattern, listener=adapted)

    def commit(self, *args: Any, callback: Any = None, **named: Any) -> None:
        """Commit; the callback's calls are awaited."""
        if callback is not None:
            named["callback"] = lambda *told: spawn(callback, *told)
        run(self.client.commit(*args, **named))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return Iterated(self.client.__aiter__())

    def batches(self, max_records: int | None = None) -> Iterator[ConsumerRecords]:
        """Return the iterator over batches."""
        return Iterated(self.client.batches(max_records))

    def __enter__(self) -> DrivenConsumer:
        return self


class DrivenProducer(Driven):
    """An `aio.Producer` in the shape of a `Producer`."""

    def __init__(self, *args: Any, **properties: Any) -> None:
        super().__init__(aio.Producer(*args, **properties))

    def send_nowait(self, topic: str, *args: Any, **named: Any) -> None:
        """Send, as soon as that needs no wait."""

        def attempt() -> bool:
            try:
                self.client.send_nowait(topic, *args, **named)
            except WouldWaitError:
                return False
            return True

        async def send() -> None:
            while not attempt():  # noqa: ASYNC110  no event tells of room
                await asyncio.sleep(0.001)

        run(send())

    def __enter__(self) -> DrivenProducer:
        return self


class DrivenRange(Driven):
    """An `aio.RecordRange` in the shape of a `RecordRange`: partitions are looked up at once."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(aio.read_range(*args, **named))
        self.ranges = run(self.client.ranges())

    def __iter__(self) -> DrivenRange:
        return self

    def __next__(self) -> ConsumerRecords:
        records: ConsumerRecords = next(Iterated(self.client))
        return records

    def tables(self, **named: Any) -> Iterator[Any]:
        """Return the tables one by one."""
        return Iterated(self.client.tables(**named))

    def __enter__(self) -> DrivenRange:
        return self


class Iterated:
    """An asynchronous iterator as a plain one."""

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __iter__(self) -> Iterated:
        return self

    def __next__(self) -> Any:
        try:
            return run(self._steps.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None


class AdaptedListener:
    """A listener of the test, whose calls of the consumer are awaited in the task that polls."""

    def __init__(self, consumer: DrivenConsumer, listener: Any) -> None:
        self._consumer = consumer
        self._listener = listener

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, object]]:
        method = getattr(self._listener, name)

        async def hear(consumer: aio.Consumer, partitions: Any) -> object:
            assert consumer is self._consumer.client
            return await spawn(method, self._consumer, partitions)

        return hear
