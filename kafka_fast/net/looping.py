"""The driver for callers in an asyncio event loop: a task is suspended until its client's wake.

    client's wake ── event descriptor ──► the loop's reader ──► every task that waits looks again

A cancellation of the task is thrown into its steps.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import TypeVar

from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.net._pump import LoopEvent, Machine
from kafka_fast.net.steps import Invoke, Request, Steps, Wait, has_ended

T = TypeVar("T")


class LoopDriver:
    """Runs steps in the tasks of one event loop. Made and used in that loop's thread."""

    def __init__(self, wake: Wake, machine: Machine, now: Callable[[], float]) -> None:
        """Begin with no waiters; `close` gives back what this takes.

        Args:
            wake: of the client.
            machine: has the events that data planes raise for loops.
            now: returns monotonic seconds.
        """
        self._wake = wake
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        self._event = LoopEvent(machine)
        self._loop.add_reader(self._event.fd, self._look)
        wake.watch(True)

    def close(self) -> None:
        """Stop listening for wakes. The client need not be closed."""
        self._wake.watch(False)
        self._loop.remove_reader(self._event.fd)

    async def run(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""
        value: object = None
        errors: list[BaseException] = []  # no variable: with its traceback that would be a cycle
        while True:
            try:
                request = steps.throw(errors.pop()) if errors else steps.send(value)
                value = await self._answer(request)
            except GeneratorExit:  # noqa: PERF203  this coroutine itself is dropped
                steps.close()
                raise
            except BaseException as error:
                if has_ended(steps):
                    if isinstance(error, StopIteration):
                        result: T = error.value
                        return result
                    raise
                errors.append(error)

    async def _answer(self, request: Request) -> object:
        if isinstance(request, Invoke):
            result = request.function(*request.args)
            return await result if inspect.isawaitable(result) else result
        await self._wait(request)
        return None

    async def _wait(self, wait: Wait) -> None:
        """Suspend the task until a wait is over, or its deadline has come."""
        while not wait.is_over() and (left := wait.deadline - self._now()) > 0.0:
            # No wake is lost: one that came after `is_over` has made the descriptor readable, and
            # the loop handles that next.
            woken = self._loop.create_future()
            self._waiting.add(woken)
            timer = self._loop.call_later(left, _settle, woken)
            try:
                await woken
            finally:
                timer.cancel()
                self._waiting.discard(woken)

    def _look(self) -> None:
        """Let every task look again. The loop calls this when the event is raised."""
        self._event.clear()
        woken, self._waiting = self._waiting, set()  # a task whose wait goes on adds itself again
        for it in woken:
            _settle(it)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
