"""What another thread may do in the middle of a call: each step is tried where it could come.

Before Python 3.12 an allocation may run a garbage collection, and so code of the user's, and so
another thread. The tests have a collection run at the first, second, ... allocation of a call, and
do there what the other thread would.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_fast.sending._awaiting import LoopWaits
from kafka_fast.sending._observers import collect, notify
from tests.unit.dataplane.rig import ProduceRig
from tests.unit.sending.test_delivery import report_nothing, succeed

ALLOCATIONS = range(12)

before_3_12 = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="collections run between two bytecodes"
)


@contextmanager
def at_allocation(number: int, action: Callable[[], object]) -> Iterator[list[None]]:
    """Do something, once, at the nth allocation of an object that refers to others."""
    done: list[None] = []

    def act(phase: str, info: object) -> None:
        if phase == "start" and not done:
            gc.set_threshold(0)
            done.append(None)
            action()

    before = gc.get_threshold()
    gc.collect()  # this empties the free lists, but for what comes back since
    kept = [[[], {}, {item}] for item in range(100)]
    gc.callbacks.append(act)
    try:
        gc.set_threshold(gc.get_count()[0] + number)
        yield done
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(act)
        del kept


@before_3_12
def test_two_first_callbacks_of_one_batch() -> None:
    """Regression: the second one's place was taken by the first one's."""
    interleaved = 0
    for number in ALLOCATIONS:
        rig = ProduceRig(linger=3600.0)
        told: list[str] = []

        def second(rig: ProduceRig = rig, told: list[str] = told) -> None:
            rig.send_nowait(on_delivery=lambda error, metadata: told.append("second"))

        with at_allocation(number, second) as done:
            rig.send_nowait(on_delivery=lambda error, metadata, told=told: told.append("first"))
        if not done:
            continue
        interleaved += 1
        rig.turner.begin_flush()
        succeed(rig)
        notify(rig.queues, report_nothing)
        assert sorted(told) == ["first", "second"], number
    assert interleaved > 0


@before_3_12
def test_a_batch_that_ends_as_a_loop_begins_to_wait() -> None:
    """Regression: the loop was told of by nobody, and its task waited forever."""
    interleaved = 0

    async def main(number: int) -> None:
        nonlocal interleaved
        rig = ProduceRig(linger=3600.0)
        loop = asyncio.get_running_loop()
        waits = LoopWaits(rig.queues, loop, lambda: collect(rig.queues), lambda: None)
        rig.queues.loop_bridge = lambda loop: waits
        rig.send_nowait(on_delivery=lambda error, metadata: None)  # somebody observes the batch
        future = rig.send()
        rig.turner.begin_flush()

        def end() -> None:
            succeed(rig)
            collect(rig.queues)

        called: list[Any] = []
        with at_allocation(number, end) as done:
            future.add_done_callback(called.append)
        if not done:
            return
        interleaved += 1
        waits.run(waits.take_due())
        await asyncio.sleep(0)
        assert called == [future], number

    for number in ALLOCATIONS:
        asyncio.run(main(number))
    assert interleaved > 0


@before_3_12
def test_two_loops_that_begin_to_wait_for_one_batch() -> None:
    """Regression: the list of loops that the second one had begun was replaced."""
    interleaved = 0
    for number in ALLOCATIONS:
        rig = ProduceRig(linger=3600.0)
        rig.send_nowait(on_delivery=lambda error, metadata: None)  # somebody observes the batch
        future = rig.send()
        called: list[str] = []
        all_waits: dict[Any, LoopWaits] = {}

        def bridge(loop: Any, rig: ProduceRig = rig, all_waits: Any = all_waits) -> LoopWaits:
            if loop not in all_waits:
                all_waits[loop] = LoopWaits(
                    rig.queues, loop, lambda: collect(rig.queues), lambda: None
                )
            return all_waits[loop]

        rig.queues.loop_bridge = bridge
        second = asyncio.new_event_loop()

        def in_second(future: Any = future, called: Any = called, second: Any = second) -> None:
            running = asyncio.events._get_running_loop()  # type: ignore[attr-defined]
            asyncio.events._set_running_loop(second)  # type: ignore[attr-defined]
            future.add_done_callback(lambda _: called.append("second"))
            asyncio.events._set_running_loop(running)  # type: ignore[attr-defined]

        async def main(rig: ProduceRig = rig, future: Any = future, called: Any = called) -> bool:
            with at_allocation(number, in_second) as done:  # noqa: B023  used at once
                future.add_done_callback(lambda _: called.append("first"))
            rig.turner.begin_flush()
            succeed(rig)
            collect(rig.queues)
            return bool(done)

        has_interleaved = asyncio.run(main())
        for waits in all_waits.values():
            waits.run(waits.take_due())
        second.close()
        if has_interleaved:
            interleaved += 1
            assert sorted(called) == ["first", "second"], number
    assert interleaved > 0


def test_a_callback_thread_that_cannot_start_now_starts_with_the_next_callback() -> None:
    """Regression: it never did, and a flush waited for the callbacks forever."""
    rig = ProduceRig(linger=3600.0)
    tries: list[bool] = []

    def start() -> None:
        tries.append(len(tries) > 0)
        if not tries[-1]:
            raise KeyboardInterrupt

    rig.queues.callback_starter = start
    told: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        rig.send_nowait(on_delivery=lambda error, metadata: told.append(1))
    rig.send_nowait(on_delivery=lambda error, metadata: told.append(2))
    rig.send_nowait(on_delivery=lambda error, metadata: told.append(3))
    assert tries == [False, True]
    rig.turner.begin_flush()
    succeed(rig)
    notify(rig.queues, report_nothing)
    assert told == [1, 2, 3], "the first record was accepted, too"


def test_counters_of_topics_while_topics_come() -> None:
    """Regression: `metrics` could fail as another thread met a new topic."""
    failures = 0
    for number in ALLOCATIONS:
        rig = ProduceRig()

        def another(rig: ProduceRig = rig) -> None:
            for name in ("a", "b", "c", "d", "e", "f", "g", "h"):
                rig.queues.topic(name, 1)

        with at_allocation(number, another):
            failures += set(rig.queues.topic_stats()) < {"t"}
    assert failures == 0


def test_a_loop_is_looked_for_while_another_thread_imports_asyncio() -> None:
    """Regression: half a module was taken for a whole one."""
    done = subprocess.run([sys.executable, "-c", HALF_IMPORTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


HALF_IMPORTED = """
import sys
from types import ModuleType
from tests.unit.sending.test_delivery import report_nothing, succeed
from tests.unit.dataplane.rig import ProduceRig
from kafka_fast.sending._observers import notify

for name in [it for it in sys.modules if it.partition(".")[0] == "asyncio"]:
    del sys.modules[name]
sys.modules["asyncio.events"] = ModuleType("asyncio.events")
rig = ProduceRig()
future = rig.send()
succeed(rig)
told = []
future.add_done_callback(told.append)
notify(rig.queues, report_nothing)
assert told == [future]
"""
