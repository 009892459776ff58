"""Things to do at a time: each under a key, so that it can be put off or called off.

In the order of their times, those of one time in the order in which they were scheduled.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable

Action = Callable[[float], None]  # with the time at which it is run


class Timers:
    """The timers of one broker."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Hashable]] = []
        self._entries: dict[Hashable, tuple[int, Action]] = {}  # key -> number in the heap, action
        self._numbers = 0

    def schedule(self, key: Hashable, due: float, action: Action) -> None:
        """Run `action` at `due`; what was scheduled under this key is called off."""
        self._numbers += 1
        self._entries[key] = (self._numbers, action)
        heapq.heappush(self._heap, (due, self._numbers, key))

    def cancel(self, key: Hashable) -> None:
        """Call off what is scheduled under this key, if anything is."""
        self._entries.pop(key, None)

    def cancel_where(self, concerned: Callable[[Hashable], bool]) -> None:
        """Call off what is scheduled under keys of a kind."""
        for key in [key for key in self._entries if concerned(key)]:
            del self._entries[key]

    def cancel_all(self) -> None:
        """Call off everything."""
        self._heap.clear()
        self._entries.clear()

    def next_due(self) -> float | None:
        """Return when the next action is due, None: never."""
        while self._heap and not self._is_valid(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run_next(self, now: float) -> bool:
        """Run the first action that is due; False: none is."""
        if not self._heap or self._heap[0][0] > now:
            return False  # even if the first one was called off: the others are due later
        due = self.next_due()
        if due is None or due > now:
            return False
        _, _, key = heapq.heappop(self._heap)
        _, action = self._entries.pop(key)
        action(now)
        return True

    def _is_valid(self, entry: tuple[float, int, Hashable]) -> bool:
        _, number, key = entry
        return key in self._entries and self._entries[key][0] == number
