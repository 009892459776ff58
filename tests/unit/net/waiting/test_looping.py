"""What a task waits for in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

from kafka_fast.net.waiting.looping import _in_thread
from tests.waiting import TIMEOUT, eventually


def test_a_dropped_wait_does_not_wait_for_its_thread() -> None:
    """Regression: the loop stood still until the thread had ended."""
    may_end = threading.Event()
    runs_in: list[threading.Thread] = []

    def hang() -> None:
        runs_in.append(threading.current_thread())
        assert may_end.wait(TIMEOUT)

    async def main() -> bool:
        waiting = _in_thread(hang)
        waiting.send(None)
        waiting.close()
        eventually(lambda: bool(runs_in), "the thread's begin")
        return runs_in[0].is_alive()

    assert asyncio.run(main()), "it goes on"
    may_end.set()
    runs_in[0].join(TIMEOUT)
    assert not runs_in[0].is_alive()


def test_a_thread_has_ended_when_its_wait_has() -> None:
    async def main() -> bool:
        thread = await _in_thread(threading.current_thread)
        assert isinstance(thread, threading.Thread)
        assert thread is not threading.current_thread()
        return thread.is_alive()

    assert not asyncio.run(main())
