"""Users of the asyncio producer in virtual time, whose calls are cancelled now and then.

    call ─► ProducerTasks.begin ─► coroutine ── waits ──► the world goes on ── look ──► goes on
                                              ◄── CancelledError, in some of the waits

The producer, its steps and the driver's way with them are what ships; only where a task would sleep
in an event loop, its coroutine is suspended in this world.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka_fast import aio
from kafka_fast.config import ProducerSettings
from kafka_fast.dataplane.core._loop_share import begin_share
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.net.waiting.steps import Wait
from kafka_fast.producer.producer_core import ProducerCore
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.virtual_loop import (
    LATEST_CANCEL,
    Suspended,
    VirtualLoopDriver,
    make_loop,
    wait_of,
)


class VirtualAsyncProducer(aio.Producer):
    """The shipped producer of asyncio, on a core of this world."""

    def __init__(
        self, core: ProducerCore, settings: ProducerSettings, driver: VirtualLoopDriver
    ) -> None:
        """Send with a core of the world instead of an own one.

        Args:
            core: of the world; somebody else closes it.
            settings: as the core's.
            driver: of the world's tasks.
        """
        self.client_id = "simulated"
        self._begin(core, settings, driver, None)

    def __del__(self) -> None:
        """The world closes the core."""


@dataclass(slots=True, eq=False)
class _Task:
    """A coroutine that has begun."""

    name: str
    call: Coroutine[Any, Any, Any]
    before_step: Callable[[], object]
    after_step: Callable[[], object]
    on_end: Callable[[Any, BaseException | None], object]
    may_be_cancelled: bool
    waits: int = 0
    """How often it was suspended."""
    suspended: asyncio.Future[Any] | None = None
    """What it has yielded."""
    wait: Wait | None = None
    """What it is suspended for."""
    is_doomed: bool = False
    """It is cancelled in this wait, even if that is over."""


class ProducerTasks:
    """All tasks of one world's users."""

    def __init__(
        self, clock: Clock, source: random.Random, cancels: float, log: Callable[[str], None]
    ) -> None:
        """Make the loop that runs the tasks of the world's users.

        Args:
            clock: of the world.
            source: decides who is cancelled, and when.
            cancels: of all waits, how many end with a cancellation.
            log: takes what happens.
        """
        self._clock = clock
        self._source = source
        self._cancels = cancels
        self._log = log
        self._tasks: list[_Task] = []
        self._loop = make_loop(clock, lambda: clock.after(0.0, self._run_loop))
        begin_share(clock.now)  # the world before this one used the same thread

    def begin(
        self,
        name: str,
        call: Coroutine[Any, Any, Any],
        on_end: Callable[[Any, BaseException | None], object],
        *,
        before_step: Callable[[], object] = lambda: None,
        after_step: Callable[[], object] = lambda: None,
        may_be_cancelled: bool = True,
    ) -> None:
        """Run a coroutine as a task.

        Args:
            name: for people.
            call: is run until it waits, and again whenever its wait is over.
            on_end: hears what was returned or raised; a CancelledError, too.
            before_step: called before the coroutine runs, each time.
            after_step: called when it waits or has ended, before `on_end`.
            may_be_cancelled: whether some of its waits may end so.
        """
        task = _Task(name, call, before_step, after_step, on_end, may_be_cancelled)
        self._step(task, None)

    def look(self) -> None:
        """Let those go on whose wait is over."""
        for task in list(self._tasks):
            wait = task.wait
            if wait is None or task.is_doomed:
                continue
            if wait.is_over() or self._clock.now >= wait.deadline:
                self._step(task, None)

    def close(self) -> None:
        """End the tasks that still wait, as a loop does that is closed under them."""
        with self._loop.running():
            for task in self._tasks:
                task.call.close()
        self._tasks.clear()

    def _run_loop(self) -> None:
        with self._loop.running():
            self._loop.run_ready()

    def _step(self, task: _Task, cancelled: asyncio.CancelledError | None) -> None:
        """Run a task until it waits or ends."""
        suspended = task.suspended
        if suspended is not None:
            self._tasks.remove(task)
            task.suspended = task.wait = None
        task.before_step()
        try:
            with self._loop.running():
                if isinstance(suspended, Suspended) and cancelled is None:
                    suspended.set_result(None)
                call = task.call
                awaited = call.send(None) if cancelled is None else call.throw(cancelled)
        except StopIteration as end:
            task.after_step()
            task.on_end(end.value, None)
        except (KafkaError, asyncio.CancelledError) as error:
            task.after_step()
            self._log(f"{task.name}: {error!r}")
            task.on_end(None, error)
        else:
            task.after_step()
            self._suspend(task, awaited)

    def _suspend(self, task: _Task, suspended: asyncio.Future[Any]) -> None:
        task.suspended, wait = suspended, wait_of(suspended)
        task.wait = wait
        task.waits += 1
        self._tasks.append(task)
        number = task.waits
        if wait.deadline != NEVER:
            self._clock.at(wait.deadline, lambda: None)  # somebody looks at all tasks then
        elif wait.is_over():
            self._clock.after(0.0, lambda: None)
        if task.may_be_cancelled and self._source.random() < self._cancels:
            task.is_doomed = bool(wait.is_over()) or self._source.random() < 0.3
            after = 0.0 if task.is_doomed else self._source.random() ** 3 * LATEST_CANCEL
            self._clock.after(after, partial(self._cancel, task, number))

    def _cancel(self, task: _Task, number: int) -> None:
        """Cancel a task, if it has not gone on meanwhile."""
        if task.wait is not None and task.waits == number:
            self._step(task, asyncio.CancelledError())
