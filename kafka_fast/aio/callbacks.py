"""Delivery callbacks of users, called in an event loop; they may be coroutines.

    kf-callback ── put ──► LoopCallbacks ── a handle of the loop ──► callback ──► a task, if it is a
                     └──► kept, if the loop was closed                            coroutine

What is kept is called in the next loop that uses the producer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any

from kafka_fast.errors import DeliveryError, UsageError
from kafka_fast.instants import NEVER
from kafka_fast.logs import ClientLog
from kafka_fast.net.waiting.steps import Steps, Wait
from kafka_fast.producer.base import OnDelivery, delivery_callback
from kafka_fast.types import RecordMetadata

LONGEST = 0.001
"""Seconds for which callbacks hold their loop before other tasks run."""

Due = tuple[Context, OnDelivery, DeliveryError | None, RecordMetadata]

running_callbacks: ContextVar[tuple[asyncio.Task[Any], ...]] = ContextVar(
    "running_callbacks", default=()
)
"""The callbacks on whose behalf this code runs, also in tasks that a callback has begun."""


class LoopCallbacks:
    """The callbacks that run in one loop, for one producer. The loop's thread, but for `put`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, all_callbacks: DeliveryCallbacks) -> None:
        """Serve one loop. Only `DeliveryCallbacks.here` calls this.

        Args:
            loop: calls them.
            all_callbacks: of the producer, in all its loops.
        """
        self._loop = loop
        self._all = all_callbacks
        self._due: deque[Due] = deque()
        self._is_called = False  # the loop will call `_run`
        self._called = 0  # callbacks, in all
        self.tasks: dict[asyncio.Task[Any], int] = {}
        """The callbacks that are coroutines and have not ended, by number, the first one first."""

    @property
    def last(self) -> int:
        """The number of the last callback that is due."""
        return self._called + len(self._due)

    def have_run(self, last: int) -> bool:
        """Return whether all callbacks up to this number have ended."""
        return self._called >= last and next(iter(self.tasks.values()), NEVER) > last

    def put(
        self,
        callback: OnDelivery,
        context: Context,
        error: DeliveryError | None,
        metadata: RecordMetadata,
    ) -> None:
        """Have a callback called in the loop, in this context. Callback thread."""
        self._due.append((context, callback, error, metadata))
        if not self._is_called:
            self._is_called = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:  # the loop was closed
                self._is_called = False
                self._all.keep_due(self.take_due())

    def take_due(self) -> list[Due]:
        """Take what is due out of a loop that was closed. Any thread."""
        self._is_called = False  # first: what is put from now on finds the loop closed
        taken: list[Due] = []
        with suppress(IndexError):  # another thread may take as well
            while True:
                taken.append(self._due.popleft())
        return taken

    def adopt(self, due: list[Due]) -> None:
        """Have callbacks called here whose own loop was closed."""
        if due:
            self._due.extend(due)
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._is_called = False  # first: what is put from now on calls again
        until = self._all.now() + LONGEST
        try:
            while self._due:
                context, callback, error, metadata = self._due.popleft()
                self._called += 1
                context.run(self._call, callback, error, metadata)
                if self._all.now() >= until:
                    break
        finally:  # a SystemExit goes its way, and the others are called all the same
            if self._due:
                self._loop.call_soon(self._run)
            self._all.wake()

    def _call(
        self, callback: OnDelivery, error: DeliveryError | None, metadata: RecordMetadata
    ) -> None:
        try:
            result = callback(error, metadata)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as raised:  # noqa: BLE001  the user's; other callbacks are due
            self._all.report(callback, raised)
            return
        if result is not None and inspect.isawaitable(result):
            number = self._called
            task = self._loop.create_task(self._finish(callback, result, number))
            self.tasks.setdefault(task, number)
            task.add_done_callback(self._end)

    async def _finish(self, callback: OnDelivery, result: Any, number: int) -> None:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self.tasks[task] = number  # an eager task runs before its maker has it
        running_callbacks.set((*running_callbacks.get(), task))
        try:
            await result
        except Exception as error:  # noqa: BLE001  the user's
            self._all.report(callback, error)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)
        self._all.wake()


class DeliveryCallbacks:
    """The delivery callbacks of one producer, in all loops that use it. The loops' threads."""

    def __init__(
        self,
        client_id: str,
        shared: OnDelivery | None,
        wake: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        """Start without loops; `here` adds the loop that runs in its thread.

        Args:
            client_id: of the producer.
            shared: is called for records that are sent without a callback of their own.
            wake: wakes the callers of `flush` and `close`.
            now: returns monotonic seconds.
        """
        self._log = ClientLog("kafka_fast.producer", client_id)
        self.shared = shared
        self.wake = wake
        self.now = now
        self._loops: dict[asyncio.AbstractEventLoop, LoopCallbacks] = {}
        self._kept: deque[list[Due]] = deque()  # their loops were closed

    def here(self) -> LoopCallbacks:
        """Return the callbacks of the loop that runs in this thread."""
        loop = asyncio.get_running_loop()
        callbacks = self._loops.get(loop)
        if callbacks is None:
            callbacks = self._loops[loop] = LoopCallbacks(loop, self)
            self._adopt(callbacks)
        return callbacks

    def in_this_loop(self, callback: OnDelivery | None) -> OnDelivery | None:
        """Return what the data plane may call instead, to have `callback` called in this loop.

        The callback has the context variables of the caller. None stands for the producer's own
        callback, if it has one.
        """
        callback = self.shared if callback is None else delivery_callback(callback)
        return None if callback is None else partial(self.here().put, callback, copy_context())

    def keep_due(self, due: list[Due]) -> None:
        """Keep callbacks whose loop was closed, until another loop adopts them. Any thread."""
        if not self._kept:
            self._log.warning(
                "delivery callbacks wait for an event loop: theirs was closed before the records "
                "were delivered (await flush() or close() before the loop's end)"
            )
        self._kept.append(due)

    def _adopt(self, here: LoopCallbacks) -> None:
        """Have callbacks called here whose loops were closed."""
        for loop in list(self._loops):
            if loop.is_closed():
                closed = self._loops.pop(loop, None)  # None: another thread was here
                if closed is not None:
                    here.adopt(closed.take_due())
        with suppress(IndexError):
            while True:
                here.adopt(self._kept.popleft())

    @property
    def may_wait(self) -> bool:
        """Whether this task may wait for deliveries: a callback, and its tasks, may not."""
        tasks = self.here().tasks
        return not any(task in tasks for task in running_callbacks.get())

    def check_may_wait(self) -> None:
        """Raise UsageError in a task that runs a callback: it would wait for itself."""
        if not self.may_wait:
            raise UsageError(
                "a delivery callback must not wait for deliveries: it would wait for itself"
            )

    def await_run(self, deadline: float) -> Steps[None]:
        """Wait until all callbacks that are due in this loop have run, or the deadline has come.

        Those that become due meanwhile are not waited for.
        """
        here = self.here()
        self._adopt(here)
        last = here.last
        yield Wait(lambda: here.have_run(last), deadline, "delivery callbacks")

    def report(self, callback: object, error: BaseException) -> None:
        """Log what a callback has raised."""
        self._log.error("the delivery callback %r has raised", callback, exc_info=error)
