"""What the tests of asyncio's clients share: loops, clients, and cancellations on purpose."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

import uvloop

from kafka_fast import aio
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import TIMEOUT

T = TypeVar("T")

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


QUICK = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20}


def run(main: Coroutine[Any, Any, T], loop: str = "asyncio", *, debug: bool = False) -> T:
    """Run a coroutine in a new event loop, within the tests' patience."""
    made = LOOPS[loop]()
    made.set_debug(debug)
    try:
        return made.run_until_complete(asyncio.wait_for(main, TIMEOUT))
    finally:
        made.run_until_complete(made.shutdown_asyncgens())
        made.close()


def consumer_of(kafka: EmbeddedKafka, **config: Any) -> aio.Consumer:
    """Return a consumer that begins with the first record; short waits."""
    start = {"bootstrap_servers": kafka.bootstrap, "auto_offset_reset": "earliest", **config}
    return aio.Consumer(QUICK | {"fetch.max.wait.ms": 20}, **start)


def producer_of(kafka: EmbeddedKafka, **config: Any) -> aio.Producer:
    """Return a producer; short waits."""
    return aio.Producer(QUICK, bootstrap_servers=kafka.bootstrap, **config)


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, while other tasks run."""
    while not condition():  # noqa: ASYNC110  nobody tells of it
        await asyncio.sleep(0.001)


class Ticks:
    """A task that wants to run whenever the loop does."""

    def __init__(self) -> None:
        self._longest = 0.0  # CPU seconds of this thread between two of its runs, at most
        self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self._longest = max(self._longest, now - before)
            before = now

    async def longest_share(self, call: Awaitable[object]) -> float:
        """Return for how much of a call's CPU time, at most, the task could not run."""
        self._longest = 0.0
        before = time.thread_time()
        await call
        await asyncio.sleep(0)  # the last stretch counts as well
        return self._longest / (time.thread_time() - before)

    def end(self) -> None:
        """Run no more."""
        self._task.cancel()


class Cancelled:
    """Awaits something, and cancels it where it is suspended for the nth time."""

    def __init__(self, awaitable: Awaitable[Any], place: int) -> None:
        self._awaitable = awaitable
        self.left = place
        """Suspensions until the cancellation; it was cancelled if this is 0."""

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._awaitable.__await__()
        sent: object = None
        while True:
            try:
                suspended = steps.send(sent) if sent is not None else next(steps)
            except StopIteration as end:
                return end.value
            self.left -= 1
            if self.left == 0:
                suspended_on = suspended
                if suspended_on is not None:  # as a task does: what it waits for is cancelled, too
                    suspended_on._asyncio_future_blocking = False
                    suspended_on.cancel()
                try:
                    suspended = steps.throw(asyncio.CancelledError())
                except StopIteration as end:
                    return end.value
            sent = yield suspended
