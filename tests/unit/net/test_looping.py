"""What a task waits for in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

from kafka_fast.net.looping import _in_thread
from tests.waiting import TIMEOUT


def test_a_dropped_wait_does_not_wait_for_its_thread() -> None:
    """Regression: the loop stood still until the thread had ended."""
    may_end = threading.Event()

    async def main() -> bool:
        waiting = _in_thread(lambda: may_end.wait(TIMEOUT))
        waiting.send(None)
        waiting.close()
        return any(thread.name == "kf-close" for thread in threading.enumerate())

    assert asyncio.run(main()), "it goes on"
    may_end.set()


def test_a_thread_has_ended_when_its_wait_has() -> None:
    async def main() -> bool:
        assert await _in_thread(lambda: 7) == 7
        return any(thread.name == "kf-close" for thread in threading.enumerate())

    assert not asyncio.run(main())
