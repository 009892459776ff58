"""Functions that other threads hand to a client's control thread, which calls them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafka_fast.net.host import Host


class Calls:
    """Functions of `now` that the control thread is to call, in the order of arrival."""

    def __init__(self, host: Host) -> None:
        """Begin with no functions.

        Args:
            host: wakes the control thread.
        """
        self._host = host
        self._waiting: deque[Callable[[float], None]] = deque()

    def __call__(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called in the next turn. Any thread."""
        self._waiting.append(what)
        self._host.wake()

    def run(self, now: float) -> None:
        """Call all functions, also those that are added meanwhile. Control thread."""
        while self._waiting:
            self._waiting.popleft()(now)
