"""Delivery callbacks of users, called in an event loop; they may be coroutines.

kf-callback ── put ──► LoopCallbacks ── one call of the loop ──► callback
└──► a task, if it is a
coroutine
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from kafka_fast.errors import DeliveryError, UsageError
from kafka_fast.logs import get_logger
from kafka_fast.net.steps import Steps, Wait
from kafka_fast.producer.base import OnDelivery
from kafka_fast.types import RecordMetadata

logger = get_logger("kafka_fast.producer")

Due = tuple[OnDelivery, DeliveryError | None, RecordMetadata]


class LoopCallbacks:
    """The callbacks that run in one loop, for one producer. The loop's thread, but for `put`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        """Begin without callbacks.

        Args:
            loop: calls them.
            wake: has callers look again that wait until callbacks have run.
        """
        self._loop = loop
        self._wake = wake
        self._due: deque[Due] = deque()
        self._is_called = False  # the loop will call `_run`
        self.tasks: set[asyncio.Task[Any]] = set()
        """The callbacks that are coroutines and have not ended."""

    @property
    def is_idle(self) -> bool:
        """Whether all callbacks that were due have ended. Any thread."""
        return not (self._due or self.tasks)

    def put(
        self, callback: OnDelivery, error: DeliveryError | None, metadata: RecordMetadata
    ) -> None:
        """Have a callback called in the loop. Callback thread.

        Raises:
            RuntimeError: the loop was closed.
        """
        self._due.append((callback, error, metadata))
        if not self._is_called:
            self._is_called = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:
                self._due.clear()
                raise

    def _run(self) -> None:
        self._is_called = False  # first: what is put from now on calls again
        while self._due:
            callback, error, metadata = self._due.popleft()
            try:
                result = callback(error, metadata)
            except Exception as raised:  # noqa: BLE001  the user's; other callbacks are due
                _report(callback, raised)
                continue
            if inspect.isawaitable(result):
                task = self._loop.create_task(_finish(callback, result))
                self.tasks.add(task)
                task.add_done_callback(self._end)
        self._wake()

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        self._wake()


class DeliveryCallbacks:
    """The delivery callbacks of one producer. Thread: that of an event loop."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Begin without loops.

        Args:
            wake: has callers look again that wait until callbacks have run.
        """
        self._wake = wake
        self._loops: dict[asyncio.AbstractEventLoop, LoopCallbacks] = {}

    def here(self) -> LoopCallbacks:
        """Return the callbacks of the loop that runs in this thread."""
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            for other in [it for it in self._loops if it.is_closed()]:
                del self._loops[other]
            found = self._loops[loop] = LoopCallbacks(loop, self._wake)
        return found

    def of(self, callback: OnDelivery) -> OnDelivery:
        """Return what the data plane may call instead: it calls `callback` in this loop."""
        return partial(self.here().put, callback)

    @property
    def may_wait(self) -> bool:
        """Whether this task may wait for deliveries: one that runs a callback may not."""
        return asyncio.current_task() not in self.here().tasks

    def check_may_wait(self) -> None:
        """Raise UsageError in a task that runs a callback: it would wait for itself."""
        if not self.may_wait:
            raise UsageError(
                "a delivery callback must not wait for deliveries: it would wait for itself"
            )

    def await_run(self, deadline: float) -> Steps[None]:
        """Wait until all callbacks that are due in this loop have run, or the deadline has come."""
        here = self.here()
        yield Wait(lambda: here.is_idle, deadline, "delivery callbacks")


class SharedCallback:
    """The callback of all records of a producer: called in the loop that has sent last."""

    def __init__(self, callback: OnDelivery) -> None:
        """Begin without a loop.

        Args:
            callback: the user's.
        """
        self._callback = callback
        self.callbacks: LoopCallbacks | None = None
        """Of the loop that has sent last."""

    def __call__(self, error: DeliveryError | None, metadata: RecordMetadata) -> None:
        """Have the user's callback called in the loop. Callback thread."""
        assert self.callbacks is not None, "a record was sent before its loop was noted"
        self.callbacks.put(self._callback, error, metadata)


async def _finish(callback: OnDelivery, result: Any) -> None:
    try:
        await result
    except Exception as error:  # noqa: BLE001  the user's
        _report(callback, error)


def _report(callback: object, error: BaseException) -> None:
    logger.error("the delivery callback %r has raised", callback, exc_info=error)
