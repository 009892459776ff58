"""The driver for callers in asyncio event loops: a task is suspended until its client's wake.

    client's wake ── event descriptor ──► the loop's reader ──► tasks whose waits are over go on

A cancellation of the task is thrown into its steps. One client may have callers in several loops,
of several threads: each loop has a reader of its own (`loop_readers`).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from kafka_fast.dataplane.core._loop_share import add_runnable, begin_share, is_share_over
from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.net.waiting.callers import Caller
from kafka_fast.net.waiting.loop_readers import LoopReaders, resume, was_resumed
from kafka_fast.net.waiting.steps import InThread, Steps, Wait, Yielded, YieldToLoop, has_ended

T = TypeVar("T")


class TaskCallers:
    """Tells the tasks of event loops apart; what runs outside of tasks is known by its thread."""

    kind = "task"

    def current(self) -> Caller:
        """Return the task that runs in this thread; the ident of the thread if none does."""
        try:
            return asyncio.current_task() or threading.get_ident()
        except RuntimeError:  # no event loop runs here
            return threading.get_ident()

    def name(self, caller: Caller) -> str:
        """Return how messages call a caller other than their reader."""
        if isinstance(caller, asyncio.Task):
            return f"task {caller.get_name()!r}"
        return "a function outside of tasks"


class Sleeper:
    """A task that sleeps until another task wakes it."""

    __slots__ = ("_wake_up", "is_awake")

    def __init__(self) -> None:
        self.is_awake = False
        """Whether it was woken."""
        self._wake_up: Callable[[], object] | None = None

    def wake(self) -> None:
        """End the sleep; at once, if it has not begun. The same loop's thread."""
        self.is_awake = True
        if self._wake_up is not None:
            self._wake_up()

    def on_wake(self, wake_up: Callable[[], object]) -> None:
        """Have a function called when the sleep is to end."""
        self._wake_up = wake_up


class LoopDriver:
    """Runs the steps of one client in the tasks of event loops."""

    def __init__(self, wake: Wake, readers: LoopReaders, now: Callable[[], float]) -> None:
        """Drive steps whose tasks the loops' `readers` resume.

        Args:
            wake: of the client.
            readers: of the client.
            now: returns monotonic seconds.
        """
        self._wake = wake
        self._readers = readers
        self._now = now

    async def yield_if_due(self) -> None:
        """Let other tasks run, if calls that need not wait have held the loop for too long."""
        if is_share_over(self._now()):
            await self._yield_to_loop()

    async def _yield_to_loop(self) -> None:
        add_runnable(1)
        try:
            await asyncio.sleep(0)
        finally:
            self._go_on(was_counted=True)

    def _go_on(self, *, was_counted: bool) -> None:
        """Start the time share of a resumed task; if it was counted as runnable, uncount it."""
        begin_share(self._now())
        if was_counted:
            add_runnable(-1)

    async def _suspend(self, over: asyncio.Future[Any], seconds: float) -> None:
        """Suspend the task until a future is set, for so many seconds at most."""
        timer = over.get_loop().call_later(seconds, _settle, over)
        try:
            await over
        finally:
            timer.cancel()
            self._go_on(was_counted=was_resumed(over))

    async def sleep(self, sleeper: Sleeper, deadline: float) -> None:
        """Suspend the task until somebody wakes this sleeper, or the deadline has come."""
        over = asyncio.get_running_loop().create_future()
        sleeper.on_wake(partial(resume, over))
        await self._suspend(over, deadline - self._now())

    async def run(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""
        try:
            return await self._run(steps)
        finally:
            steps.close()  # see `run_steps`; and this coroutine itself may be dropped

    async def _run(self, steps: Steps[T]) -> T:
        value: object = None
        errors: list[BaseException] = []  # no variable: with its traceback that would be a cycle
        while True:
            try:
                yielded = steps.throw(errors.pop()) if errors else steps.send(value)
                value = await self._answer(yielded)
            except GeneratorExit:  # noqa: PERF203  nobody runs what would follow
                raise
            except BaseException as error:
                if has_ended(steps):
                    if isinstance(error, StopIteration):
                        result: T = error.value
                        return result
                    raise
                errors.append(error)

    async def _answer(self, yielded: Yielded) -> object:
        if isinstance(yielded, Wait):
            await self._wait(yielded)
            return None
        if isinstance(yielded, InThread):
            return await _in_thread(yielded.function)
        if isinstance(yielded, YieldToLoop):
            await self._yield_to_loop()
            return None
        result = yielded.function(*yielded.args)
        return await result if inspect.isawaitable(result) else result

    async def _wait(self, wait: Wait) -> None:
        """Suspend the task until a wait is over, or its deadline has come."""
        if wait.is_over():
            return
        loop = asyncio.get_running_loop()
        reader = self._readers.reader_of(loop)
        self._wake.watch(True)  # before the look: an event after the look makes the loop look again
        try:
            left = wait.deadline - self._now()
            if wait.is_over() or left <= 0.0:
                return
            over = loop.create_future()
            reader.waiting[over] = wait.is_over
            try:
                await self._suspend(over, left)
            finally:
                reader.waiting.pop(over, None)
        finally:
            self._wake.watch(False)
            reader.leave_if_idle()


async def _in_thread(function: Callable[[], object]) -> object:
    """Call a function in a thread of its own, which a cancellation of this task does not end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()

    def call() -> None:
        error: BaseException | None = None
        result: object = None
        try:
            result = function()
        except BaseException as raised:  # noqa: BLE001  it is raised in the task
            error = raised
        try:
            loop.call_soon_threadsafe(_settle, done, result, error)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits
            if error is not None:
                raise error from None

    thread = threading.Thread(target=call, name="kf-close", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # out of threads, or the interpreter ends
        return function()
    try:
        return await done
    finally:
        if done.done() and not done.cancelled():  # else the call may go on for long
            # All it has left is to come out of its write to the loop's descriptor. If the loop was
            # closed meanwhile, that number might be another file's already.
            thread.join()


def _settle(
    future: asyncio.Future[object], result: object = None, error: BaseException | None = None
) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
