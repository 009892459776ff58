"""The shipped consumer of asyncio in virtual time, whose user's calls are cancelled now and then.

    User ── poll() ──► VirtualTasks ──► a task: aio.Consumer.poll ── waits ──► the world goes on
                                                              ◄── CancelledError, in some waits

A user of this consumer is an actor like the others, and calls it as one calls a blocking consumer.
Each call is a task of the actor's event loop, which runs until that task has ended. Only a close
that is cancelled leaves a task behind; see `VirtualTasks.close`.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from kafka_fast import aio
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.dataplane.core._loop_share import begin_share
from kafka_fast.errors import KafkaError, KafkaTimeoutError
from kafka_fast.net.waiting.looping import TaskCallers
from kafka_fast.net.waiting.steps import Wait
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords
from tests.sim.worlds.virtual_consumer import Waiter, Watched
from tests.sim.worlds.virtual_loop import (
    LATEST_CANCEL,
    Suspended,
    VirtualLoopDriver,
    as_coroutine,
    make_loop,
)

T = TypeVar("T")

AT_ONCE = 0.3
"""Of all cancellations: that no time passes before, whether the wait is over or not."""

FREQUENT = {"records", "other tasks"}
RARELY_WAITED_FOR = 0.2
"""Of the waits for anything else, how many end with a cancellation at least, if any wait does."""

AGAIN = 0.5
"""Of the waits in which a cancelled call cleans up: that it is cancelled there, too."""

LONGEST_WORK = 0.05
"""Seconds that a listener takes for its own work, at most."""

END_OF_THREADS = 0.001
"""Seconds in which a consumer's threads end that nobody waits for."""

LONGEST_SLEEP = 3600.0
"""Seconds for which a loop sleeps that waits for something without a deadline."""


class CallCancelledError(KafkaError):
    """The user's task was cancelled in a call, and goes on with its life."""


class VirtualAsyncConsumer(Watched, aio.Consumer):
    """The shipped consumer of asyncio, for one actor."""

    def __init__(
        self,
        config: dict[str, object],
        waiter: Waiter,
        log: Callable[[str], None],
        on_misjudged: Callable[[str], None],
    ) -> None:
        """Start it; the arguments are those of `VirtualConsumer`."""
        self._waiter = waiter
        self._log = log
        self._on_misjudged = on_misjudged
        super().__init__(config)

    def _make_core(self) -> ConsumerCore:
        host = self._waiter.host
        host.callers = TaskCallers()
        self._driver = VirtualLoopDriver(host.clock)
        return super()._make_core()


class VirtualTasks:
    """An asynchronous consumer with the methods of a blocking one, for `User`."""

    def __init__(
        self,
        config: dict[str, object],
        waiter: Waiter,
        log: Callable[[str], None],
        on_misjudged: Callable[[str], None],
        *,
        cancels: float,
        source: random.Random,
    ) -> None:
        """Start the consumer.

        Args:
            config: as any consumer's.
            waiter: where its user waits.
            log: takes what happens, for people.
            on_misjudged: called when it does not know whether a partition is fetched.
            cancels: of all waits, how many end with a cancellation.
            source: decides that.
        """
        self._waiter = waiter
        self._log = log
        self._cancels = cancels
        self._source = source
        self._loop = make_loop(waiter.host.clock, waiter.look)
        self.consumer = VirtualAsyncConsumer(config, waiter, log, on_misjudged)
        begin_share(waiter.host.now())

    def calm_down(self) -> None:
        """Cancel nothing from now on."""
        self._cancels = 0.0

    # ---- what a blocking consumer has ----

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.consumer, name)
        if not inspect.iscoroutinefunction(method):
            return method
        return lambda *args, **named: self._run(method(*args, **named))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return _Iterated(self._run, self.consumer.__aiter__())

    def batches(self, max_records: int | None = None) -> Iterator[ConsumerRecords]:
        """Return the iterator over batches."""
        return _Iterated(self._run, self.consumer.batches(max_records))

    def unsubscribe(self) -> None:
        """Unsubscribe, again if that is cancelled."""
        while not self._ends(self.consumer.unsubscribe()):
            pass

    def _ends(self, call: Awaitable[object]) -> bool:
        """Run an awaitable; return whether it was not cancelled."""
        try:
            self._run(call)
        except CallCancelledError:
            return False
        return True

    def close(self, timeout: float | None = None) -> None:
        """Close. If that is cancelled, a task of the consumer's own goes on with it.

        The loop runs until that task has ended, or it ends first, as `asyncio.run` does: it cancels
        what is left. Or the user closes again meanwhile.
        """
        self._close(self.consumer.close(timeout), timeout)

    def leave_block(self) -> None:
        """Leave the `async with` block because of an error; as `close`."""
        error = KafkaError("the user's")
        self._close(self.consumer.__aexit__(KafkaError, error, None), None)

    def _close(self, call: Awaitable[None], timeout: float | None) -> None:
        try:
            self._run(call)
        except CallCancelledError:
            left = self._loop.living
            way = self._source.choice(("goes on", "ends", "closes again"))
            self._log(f"the loop {way}")
            if way == "ends":
                self._finish(left, cancel=True)
            else:
                if way == "closes again":
                    self._close_again(timeout)
                self._finish(left)
            self._waiter.sleep(END_OF_THREADS)
        assert self.consumer.core.has_ended, "a close has left the consumer open"

    def _close_again(self, timeout: float | None) -> None:
        try:
            self.close(timeout)
        except KafkaTimeoutError as error:
            self._log(f"not closed again: {error}")  # as the first close takes its time

    def _finish(self, tasks: list[asyncio.Task[Any]], *, cancel: bool = False) -> None:
        """Let tasks end that nobody awaits; raises the first error."""
        with self._loop.running():
            for task in tasks if cancel else ():
                task.cancel()
            for task in tasks:
                self._play(task, may_be_cancelled=False)
        for task in tasks:
            if not task.cancelled():
                task.result()

    # ---- the loop ----

    async def work(self) -> None:
        """Take some time in a task, or at least let other tasks run."""
        seconds = self._source.choice((0.0, LONGEST_WORK)) * self._source.random() ** 3
        until = self._waiter.host.now() + seconds
        await Suspended(Wait(lambda: False, until, "the user's work"))

    def _run(self, call: Awaitable[T]) -> T:
        """Run an awaitable as a task, to its end."""
        with self._loop.running():
            task = self._loop.create_task(as_coroutine(call))
            self._play(task)
        if task.cancelled():
            self._log("cancelled")
            raise CallCancelledError("cancelled")
        result: T = task.result()
        return result

    def _play(self, task: asyncio.Task[Any], *, may_be_cancelled: bool = True) -> None:
        """Run the loop until a task has ended.

        Args:
            task: of this loop.
            may_be_cancelled: whether this task is, at some of the times when all tasks wait.
        """
        was_cancelled = False
        try:
            while True:
                self._loop.run_ready()
                if task.done():
                    return
                often = self._how_often(was_cancelled=was_cancelled) if may_be_cancelled else 0.0
                is_doomed = self._source.random() < often
                self._sleep(self._source.random() ** 3 * LATEST_CANCEL if is_doomed else None)
                if is_doomed:  # what it waits for may have come at the same moment
                    self._log("is cancelled")
                    task.cancel()
                    was_cancelled = True
        except BaseException:  # the world ends this actor
            self._loop.abandon()
            raise

    def _how_often(self, *, was_cancelled: bool) -> float:
        """Return how probable it is that a task is cancelled in what it waits for now."""
        if not self._cancels:  # the user has calmed down, perhaps in the middle of this call
            return 0.0
        if was_cancelled:
            return AGAIN
        is_rare = any(future.wait.what not in FREQUENT for future in self._loop.suspended)
        return max(self._cancels, RARELY_WAITED_FOR if is_rare else 0.0)

    def _sleep(self, most: float | None) -> None:
        """Let time pass until a task may go on, or for some seconds."""
        loop, host = self._loop, self._waiter.host
        waits = list(loop.suspended)
        if most is None or self._source.random() >= AT_ONCE:
            until = min((future.wait.deadline for future in waits), default=LONGEST_SLEEP)
            left = min(until - host.now(), LONGEST_SLEEP if most is None else most)
            self._waiter.wait(
                lambda: loop.has_ready or any(future.wait.is_over() for future in waits), left
            )
        for suspended in waits:
            wait = suspended.wait
            if wait.is_over() or host.now() >= wait.deadline:
                suspended.set_result(None)


class _Iterated:
    """An asynchronous iterator as a plain one."""

    def __init__(self, run: Callable[[Any], Any], steps: Any) -> None:
        self._run = run
        self._steps = steps

    def __iter__(self) -> _Iterated:
        return self

    def __next__(self) -> Any:
        return self._run(self._steps.__anext__())
