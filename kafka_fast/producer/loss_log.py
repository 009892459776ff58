"""Decides when unobserved failures are logged: soon, several in one line, and not too often.

`flush` and `close` raise unobserved failures. The log is for programs that call neither in time:

    the producer runs      LossLog: once a second or so; a flush may still raise them
    it has ended           log_finally, by whoever ends it; or, where a handle is dropped unread
                           later, by a thread of its own
    the process ends       log_all_finally: also those that a handle would tell

Only what is logged finally makes the exit status of the process (exit.status.on.loss).
"""

from __future__ import annotations

import time

from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.instants import NEVER
from kafka_fast.net.process import process_life
from kafka_fast.net.process.detached import detached
from kafka_fast.net.process.registry import Registry
from kafka_fast.sending import _observers

FLUSH_PATIENCE = 1.0
"""Seconds for which a failure waits for others, or for a flush that raises it."""

INTERVAL = 10.0
"""Seconds between two lines of one producer, at least."""

_all_queues: Registry[Queues] = Registry()
"""The queues of all producers whose handles may still tell of failures."""


class LossLog:
    """Logs the unobserved failures of one producer. Thread: control."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._due = NEVER
        self._logged_at = -INTERVAL

    def tick(self, now: float) -> None:
        """Log failures that are due; the caller has collected the ended batches."""
        if not self._queues.has_unlogged:
            self._due = NEVER
        elif self._due == NEVER:
            self._due = max(now + FLUSH_PATIENCE, self._logged_at + INTERVAL)
        elif now >= self._due:
            self._due = NEVER
            self._logged_at = now
            _observers.log_unlogged(self._queues)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return self._due


def watch_losses(queues: Queues) -> None:
    """Have failures logged that are found after the producer's end, and at the process's end."""
    queues.reporter = _report
    _all_queues.add(queues)
    if queues.exit_status:
        process_life.prepare_exit_status()


def log_finally(queues: Queues, *, unread: bool = False) -> None:
    """Log failures that nobody was told of, and that no call will raise any more. Any thread.

    Args:
        queues: of the producer.
        unread: the process ends, and nobody will ask the handles that are left.
    """
    if not queues.is_inherited and _observers.log_finally(queues, unread) and queues.exit_status:
        process_life.end_with(queues.exit_status)


def log_all_finally() -> None:
    """Log what nobody was told of, as the process ends."""
    for queues in _all_queues:
        log_finally(queues, unread=True)


def _log_late(queues: Queues) -> None:
    """Log failures of handles that were dropped after the end, in a thread of its own."""
    time.sleep(FLUSH_PATIENCE)  # for the other handles
    log_finally(queues)


_report = detached(_log_late, "kf-losses")

process_life.after_clients.append(log_all_finally)
