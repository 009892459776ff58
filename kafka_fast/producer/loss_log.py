"""Decides when unobserved failures are logged: soon, several in one line, and not too often.

`flush` and `close` raise unobserved failures. The log is for programs that call neither in time.

Thread: control.
"""

from __future__ import annotations

from kafka_fast.dataplane.produce._observers import take_unlogged
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.instants import NEVER

FLUSH_PATIENCE = 1.0
"""Seconds for which a failure waits for others, or for a flush that raises it."""

INTERVAL = 10.0
"""Seconds between two lines of one producer, at least."""


class LossLog:
    """Logs the unobserved failures of one producer."""

    def __init__(self, queues: Queues) -> None:
        """Begin with nothing to log."""
        self._queues = queues
        self._due = NEVER
        self._logged_at = -INTERVAL

    def tick(self, now: float) -> None:
        """Log failures that are due; the caller has collected the ended batches."""
        if self._queues.unlogged is None:
            self._due = NEVER
        elif self._due == NEVER:
            self._due = max(now + FLUSH_PATIENCE, self._logged_at + INTERVAL)
        elif now >= self._due:
            self._due = NEVER
            self._logged_at = now
            if losses := take_unlogged(self._queues):
                losses.log(self._queues.client_id)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return self._due
