"""How long a group's rebalance takes: said when it ends, and a WARNING once it has taken 10 s.

A rebalance needs every member: one that works for long on what its last poll brought holds all the
others up. Who is waited for is what the user has to know.

Thread: control.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka_fast.instants import NEVER
from kafka_fast.logs import in_seconds

__all__ = ["SLOW", "Slowness"]

SLOW = 10.0
"""Seconds after which a rebalance is slow."""


class Slowness:
    """The rebalance of one member's group that is under way, if there is one."""

    def __init__(self, group_id: str, logger: logging.Logger) -> None:
        """Start without a rebalance; `note_state` notices one.

        Args:
            group_id: the group.
            logger: gets the WARNING.
        """
        self._group_id = group_id
        self._logger = logger
        self._began: float | None = None
        self._warn_at = NEVER  # not yet, and not once it was done

    @property
    def deadline(self) -> float:
        """When `note_state` has something to do."""
        return self._warn_at

    def note_state(
        self, now: float, *, is_rebalancing: bool, why_waiting: Callable[[], str]
    ) -> None:
        """Record when a rebalance begins or ends, and warn once if it is slow.

        Args:
            now: the time.
            is_rebalancing: whether this member is between two assignments.
            why_waiting: returns what the rebalance waits for.
        """
        if not is_rebalancing:
            self._began, self._warn_at = None, NEVER
        elif self._began is None:
            self._began, self._warn_at = now, now + SLOW
        elif now >= self._warn_at:
            self._warn_at = NEVER
            self._logger.warning(
                "group %s: the rebalance has taken %s: %s",
                self._group_id,
                in_seconds(now - self._began),
                why_waiting(),
            )

    def took(self, now: float) -> str:
        """Return how long the rebalance took that ends now, for the line about its end."""
        return "" if self._began is None else f", after {in_seconds(now - self._began)}"
