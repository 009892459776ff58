"""Functions that other threads hand to a client's control thread, which calls them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafka_fast.net.host import Host

AT_ONCE = 0.01
"""Seconds, about, that a turn calls such functions, and carries out commands. Events wait then."""


class Calls:
    """Functions of `now` that the control thread is to call, in the order of arrival."""

    def __init__(self, host: Host) -> None:
        """Start with no function waiting; each call of this object adds one.

        Args:
            host: wakes the control thread.
        """
        self._host = host
        self._waiting: deque[Callable[[float], None]] = deque()

    def __call__(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called in the next turn. Any thread."""
        self._waiting.append(what)
        self._host.wake()

    @property
    def are_waiting(self) -> bool:
        """Whether functions are left for the next turn."""
        return bool(self._waiting)

    def run_calls(self, now: float) -> None:
        """Call the functions, also those that are added meanwhile. Control thread.

        If they take long, the next turn calls the others.
        """
        until = self._host.now() + AT_ONCE
        while self._waiting and self._host.now() <= until:
            self._waiting.popleft()(now)
