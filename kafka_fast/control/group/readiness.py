"""When a member may try to join: after a backoff, and only while its user polls.

Thread: control.
"""

from __future__ import annotations

from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.instants import LONG_AGO
from kafka_fast.logs import get_logger

logger = get_logger("kafka_fast.group")

OVERSTAYED = "max.poll.interval.ms passed without a poll"


class Readiness:
    """Whether, and when, one member may try to join. Control thread only."""

    def __init__(self, backoff: Backoff) -> None:
        """Start ready: the first try is due at once.

        Args:
            backoff: the wait between two tries.
        """
        self._backoff = backoff
        self._failures = 0  # in a row
        self._try_at = LONG_AGO
        self._hurried_at = LONG_AGO
        self._is_paused = False  # overstayed or failed: joins when the user polls
        self._is_fenced = False  # another member has the same instance id: joins no more

    # ---- getters ----

    @property
    def try_at(self) -> float:
        """When the next try is due."""
        return self._try_at

    @property
    def is_first_try(self) -> bool:
        """Whether no try has failed since the last success."""
        return not self._failures

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""
        return self._is_paused

    # ---- what happens ----

    def succeed(self) -> None:
        """Reset the backoff: a try was successful."""
        self._failures = 0

    def put_off(self, now: float) -> None:
        """Make the next try due after a backoff, which grows with the failures in a row."""
        self._try_at = now + self._backoff.delay(self._failures)
        self._failures += 1

    def may_hurry(self, now: float) -> bool:
        """Return whether to try again at once, as the coordinator asks.

        The coordinator may ask so all the time. So this is False if it has asked recently.
        """
        before, self._hurried_at = self._hurried_at, now
        return now - before > self._backoff.maximum

    def pause(self, *, fenced: bool = False) -> None:
        """Stay out until the user polls; if fenced, until the user subscribes again."""
        self._is_paused = True
        self._is_fenced = fenced

    def resume(self) -> None:
        """End a pause: the user has subscribed again."""
        self._is_paused = self._is_fenced = False

    def handle_polled(self) -> bool:
        """End a pause, unless the member is fenced; return whether a pause has ended."""
        if not self._is_paused or self._is_fenced:
            return False
        self._is_paused = False
        return True


def warn_of_overstaying(group_id: str, max_poll_interval_ms: int) -> None:
    """Log why a member leaves its group, and what to do about it."""
    logger.warning(
        "group %s: poll() was not called for max.poll.interval.ms (%d): leaving the group; "
        "poll more often, raise it, or lower max.poll.records",
        group_id,
        max_poll_interval_ms,
    )
