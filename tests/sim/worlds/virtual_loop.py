"""An event loop in virtual time, and the shipped driver of asyncio in it.

    task ─► steps ─► LoopDriver.run (shipped) ─► Suspended ─► the world lets time pass
         ◄── goes on: the wait is over ◄─────────────────────┘
         ◄── CancelledError, in some of the waits, and in some that are over

The world decides what runs when, and for how long nothing does. So a seed decides it, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from kafka_fast.dataplane.core._loop_share import begin_share
from kafka_fast.instants import NEVER
from kafka_fast.net.waiting.looping import LoopDriver
from kafka_fast.net.waiting.steps import InThread, Wait, Yielded
from tests.sim.worlds.clock import Clock

LATEST_CANCEL = 0.1
"""Seconds after which a task that is to be cancelled in a wait is cancelled, at most."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """What asyncio needs to run tasks, and no more: the world runs this loop and its tasks."""

    def __init__(self, clock: Clock, wake: Callable[[], object]) -> None:
        """Make a loop that only `run_ready` drives.

        Args:
            clock: of the world.
            wake: called when there is something to run although this loop does not run.
        """
        self.suspended: dict[Suspended, None] = {}
        """What its tasks wait for, but for what they wait for in each other."""
        self._clock = clock
        self._wake = wake
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []
        self._is_abandoned = False

    # ---- what asyncio asks for ----

    def call_soon(  # type: ignore[override]  # generic there
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Have a function called by `run_ready`."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if asyncio._get_running_loop() is not self:
            self._wake()
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # one thread runs at a time

    def call_later(  # type: ignore[override]  # generic there
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a function called by `run_ready`, later."""
        timer = asyncio.TimerHandle(self._clock.now + delay, callback, args, self, context)
        self._clock.at(timer.when(), lambda: self._end_timer(timer))
        return timer

    def _end_timer(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled():
            self._ready.append(timer)
            self._wake()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: the clock finds it cancelled."""

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Have a coroutine run as a task."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name)
        self._tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Fail: nothing in these worlds may raise where nobody hears of it."""
        if not self._is_abandoned:
            raise AssertionError(context["message"]) from context.get("exception")

    def get_debug(self) -> bool:
        """Return that nobody debugs."""
        return False

    def is_closed(self) -> bool:
        """Return whether its world has ended."""
        return self._is_abandoned

    # ---- the world's side ----

    @property
    def has_ready(self) -> bool:
        """Whether `run_ready` would do something."""
        return bool(self._ready)

    @property
    def living(self) -> list[asyncio.Task[Any]]:
        """The tasks that have not ended, the oldest first."""
        self._tasks = [task for task in self._tasks if not task.done()]
        return list(self._tasks)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be the loop that runs in this thread."""
        assert asyncio._get_running_loop() is None, "a loop cannot run in a loop"
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def run_ready(self) -> None:
        """Run until all tasks wait for something that takes its time, or have ended."""
        while self._ready:
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()

    def abandon(self) -> None:
        """End all tasks where they wait, as a process does that ends: nothing more runs in them."""
        self._is_abandoned = True
        for task in self.living:
            call: Any = task.get_coro()
            call.close()


def make_loop(clock: Clock, wake: Callable[[], object]) -> VirtualLoop:
    """Return a loop; see `VirtualLoop`."""
    return VirtualLoop(clock, wake)  # type: ignore[abstract]  # tasks do without the rest


class Suspended(asyncio.Future[None]):
    """What a coroutine awaits in this world. Who runs the task sets the result or cancels it."""

    def __init__(self, wait: Wait) -> None:
        """Bind this future to the running loop."""
        super().__init__(loop=asyncio.get_running_loop())
        self.wait = wait

    def __await__(self) -> Generator[Any, None, None]:
        loop = self.get_loop()
        assert isinstance(loop, VirtualLoop), "another loop cannot tell when the wait is over"
        loop.suspended[self] = None
        try:
            yield from super().__await__()
        finally:
            del loop.suspended[self]


def wait_of(future: asyncio.Future[Any]) -> Wait:
    """Return what a task waits for that has yielded this future."""
    if isinstance(future, Suspended):
        return future.wait
    return Wait(future.done, NEVER, "a future")


class VirtualLoopDriver(LoopDriver):
    """The shipped driver; its tasks sleep in virtual time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = lambda: clock.now

    async def _yield_to_loop(self) -> None:
        await Suspended(Wait(lambda: True, NEVER, "other tasks"))
        begin_share(self._now())

    async def _wait(self, wait: Wait) -> None:
        if not wait.is_over() and self._now() < wait.deadline:
            await Suspended(wait)
        begin_share(self._now())

    async def _answer(self, yielded: Yielded) -> object:
        """Do what was yielded; a thread would run at another moment in each run of a seed.

        So its function is called by the clock, in the world's thread. As in a thread of its own, it
        is not through before the task sleeps, and goes on if the task is cancelled there.
        """
        if not isinstance(yielded, InThread):
            return await super()._answer(yielded)
        function = yielded.function
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        def call() -> None:
            result = function()
            if not done.done():  # else the task has gone on without it
                done.set_result(result)

        self._clock.after(0.0, call)
        return await done


async def finish(call: Any) -> Any:
    """Await something: a task needs a coroutine."""
    return await call


def as_coroutine(call: Any) -> Coroutine[Any, Any, Any]:
    """Return an awaitable as a coroutine."""
    return call if asyncio.iscoroutine(call) else finish(call)
