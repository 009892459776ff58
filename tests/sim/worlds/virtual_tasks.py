"""The shipped consumer of asyncio in virtual time, whose user's calls are cancelled now and then.

    User ── poll() ──► VirtualTasks ──► aio.Consumer.poll ── waits ──► the world goes on
                                                          ◄── CancelledError, at some of the waits

A coroutine is run to its end in one go: what it waits for passes in virtual time. So a user of this
consumer is an actor like the others, and needs no event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from kafka_fast import aio
from kafka_fast.consumer.core import ConsumerCore
from kafka_fast.dataplane.fetch._consumer_record import ConsumerRecord
from kafka_fast.dataplane.fetch._consumer_records import ConsumerRecords
from kafka_fast.errors import KafkaError
from kafka_fast.net.steps import Request, Steps, Wait, run_steps
from tests.sim.worlds.virtual_consumer import VirtualDriver, Waiter, Watched

T = TypeVar("T")

LATEST_CANCEL = 0.1
"""Seconds after which a task that is to be cancelled in a wait is cancelled, at most."""


class CallCancelledError(KafkaError):
    """The user's task was cancelled in a call, and goes on with its life."""


class VirtualLoopDriver(VirtualDriver):
    """Runs steps in virtual time, as `LoopDriver` does in an event loop."""

    def __init__(self, waiter: Waiter, is_cancelled: Callable[[], bool], source: random.Random):
        """Begin with nobody waiting.

        Args:
            waiter: where the user waits.
            is_cancelled: called at each wait; whether the user is cancelled in it.
            source: says when in the wait that happens.
        """
        super().__init__(waiter.host)
        self._is_cancelled = is_cancelled
        self._source = source

    async def breathe(self) -> None:
        """Go on: no other task is in this actor's loop."""

    async def run_in_task(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""
        return run_steps(steps, self._answer)

    def _answer(self, request: Request) -> object:
        if not isinstance(request, Wait) or not self._is_cancelled():
            return super()._answer(request)
        now = self._host.now()
        until = min(request.deadline, now + self._source.random() * LATEST_CANCEL)
        super()._answer(request._replace(deadline=until))
        raise asyncio.CancelledError  # what is waited for may have come at the same moment


class VirtualAsyncConsumer(Watched, aio.Consumer):
    """The shipped consumer of asyncio, for one actor."""

    def __init__(
        self,
        config: dict[str, object],
        waiter: Waiter,
        log: Callable[[str], None],
        on_misjudged: Callable[[str], None],
        driver: VirtualLoopDriver,
    ) -> None:
        """Start it; the arguments are those of `VirtualConsumer`, and the driver."""
        self._waiter = waiter
        self._log = log
        self._on_misjudged = on_misjudged
        self._virtual_driver = driver
        super().__init__(config)

    def _make_core(self) -> ConsumerCore:
        driver: Any = _InTask(self._virtual_driver)
        self._driver = driver
        return super()._make_core()

    async def _close(self, timeout: float | None, *, is_interrupted: bool) -> None:
        """Close, in this actor: there is no other task that would go on."""
        steps = self._calls.close(
            timeout, is_interrupted=is_interrupted, begin=self._finalizer.detach
        )
        await self._driver.run(steps)


class _InTask:
    """A driver whose `run` is a coroutine."""

    def __init__(self, driver: VirtualLoopDriver) -> None:
        self.run = driver.run_in_task
        self.breathe = driver.breathe


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
        self._log = log
        self._cancels = cancels
        self._source = source
        driver = VirtualLoopDriver(waiter, self._is_cancelled, source)
        self.consumer = VirtualAsyncConsumer(config, waiter, log, on_misjudged, driver)

    def calm_down(self) -> None:
        """Cancel nothing from now on."""
        self._cancels = 0.0

    def _is_cancelled(self) -> bool:
        return self._source.random() < self._cancels

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

    def _ends(self, call: Coroutine[Any, Any, object]) -> bool:
        """Run a coroutine; return whether it was not cancelled."""
        try:
            self._run(call)
        except CallCancelledError:
            return False
        return True

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        try:
            call.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        except asyncio.CancelledError:
            self._log("cancelled")
            raise CallCancelledError("cancelled") from None
        raise AssertionError("it waits for something that is not in this world")


class _Iterated:
    """An asynchronous iterator as a plain one."""

    def __init__(self, run: Callable[[Any], Any], steps: Any) -> None:
        self._run = run
        self._steps = steps

    def __iter__(self) -> _Iterated:
        return self

    def __next__(self) -> Any:
        return self._run(self._steps.__anext__())
