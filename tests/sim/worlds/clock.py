"""Virtual time: what happens when, in an order that only the seed decides."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Clock:
    """A queue of things to do. Equal times are served in the order of their planning."""

    def __init__(self) -> None:
        """Start at second 1: zero means «never» to the data plane."""
        self.now = 1.0
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, due: float, action: Callable[[], None]) -> None:
        """Plan an action; one that is due already happens next."""
        self._count += 1
        heapq.heappush(self._planned, (max(due, self.now), self._count, action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Plan an action `seconds` from now."""
        self.at(self.now + seconds, action)

    def next_due(self) -> float:
        """Return when the next thing happens; infinity if nothing is planned."""
        return self._planned[0][0] if self._planned else float("inf")

    def take(self) -> Callable[[], None]:
        """Let time pass until the next thing, and return it."""
        due, _, action = heapq.heappop(self._planned)
        self.now = due
        return action

    def pass_until(self, when: float) -> None:
        """Let time pass in which nothing that is planned happens."""
        self.now = max(self.now, when)
