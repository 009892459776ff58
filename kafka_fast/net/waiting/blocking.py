"""The driver for blocking callers: the calling thread sleeps on its client's wake.

The main thread looks for signals while it sleeps. An exception that a signal handler raises is
thrown into the steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.net.waiting.steps import InThread, Invoke, Steps, Yielded, YieldToLoop, run_steps

T = TypeVar("T")


class BlockingDriver:
    """Runs steps in the calling thread; any number of threads may call at a time."""

    def __init__(self, wake: Wake, now: Callable[[], float]) -> None:
        """Drive steps whose callers sleep on `wake` and read the time from `now`.

        Args:
            wake: of the client.
            now: returns monotonic seconds.
        """
        self._wake = wake
        self._now = now

    def run(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""
        return run_steps(steps, self._answer)

    def wake(self) -> None:
        """Have all waiters look again. Any thread."""
        self._wake.raise_()

    def _answer(self, yielded: Yielded) -> object:
        if isinstance(yielded, Invoke):
            return yielded.function(*yielded.args)
        if isinstance(yielded, InThread):
            return yielded.function()
        if isinstance(yielded, YieldToLoop):
            return None  # other threads run anyway
        in_main = threading.current_thread() is threading.main_thread()
        while True:
            seen = self._wake.count
            if yielded.is_over():
                return None
            left = yielded.deadline - self._now()
            if left <= 0.0:
                return None
            self._wake.wait(seen, left, in_main)
