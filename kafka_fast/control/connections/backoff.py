"""Exponential backoff with jitter (KIP-580), for everything that is tried again.

`Backoff` is the curve, without state: how long to wait after so many failures. `KeyedBackoff`
counts the failures of many things (partitions, nodes, groups) on one curve. Neither knows the time
or a source of randomness: `now` comes with the call, `random` (a callable that returns a float in
[0, 1)) with the constructor.

Used for retry.backoff.ms, reconnect.backoff.ms and socket.connection.setup.timeout.ms, each with
its `.max.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kafka_fast.instants import LONG_AGO

__all__ = ["Backoff", "KeyedBackoff"]

Key = TypeVar("Key", bound=Hashable)

MULTIPLIER = 2.0
JITTER = 0.2
MAX_EXPONENT = 62
"""The exponent stops here, so that endless failures do not overflow a float."""


class Backoff:
    """The curve: `base * 2**failures`, spread by ±20 %, never above the maximum."""

    __slots__ = ("_base", "_maximum", "_random")

    def __init__(self, base_ms: int, max_ms: int, random: Callable[[], float]) -> None:
        """Take the limits as configured.

        Args:
            base_ms: the wait after the first failure.
            max_ms: the longest wait, jitter included. If it is below `base_ms`, every wait is
                this long (KIP-580).
            random: returns a float in [0, 1).
        """
        self._base = min(base_ms, max_ms) / 1000
        self._maximum = max_ms / 1000
        self._random = random

    @property
    def maximum(self) -> float:
        """The longest wait in seconds."""
        return self._maximum

    def delay(self, failures: int) -> float:
        """Return the seconds to wait when `failures` tries in a row failed before this one."""
        raw = self._base * MULTIPLIER ** min(max(failures, 0), MAX_EXPONENT)
        spread = 1 - JITTER + 2 * JITTER * self._random()
        return min(raw * spread, self._maximum)


class KeyedBackoff(Generic[Key]):
    """One curve shared by many keys, each with its own count of failures.

    A key exists only between its first failure and its next success, so the table holds what is
    broken, not everything that ever was.
    """

    __slots__ = ("_backoff", "_states")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        # Failures in a row, and when the next try is allowed.
        self._states: dict[Key, tuple[int, float]] = {}

    def failures(self, key: Key) -> int:
        """Return how many tries of `key` failed in a row."""
        return self._states.get(key, (0, 0.0))[0]

    def ready_at(self, key: Key) -> float:
        """Return when `key` may be tried again; minus infinity if nothing holds it back."""
        return self._states.get(key, (0, LONG_AGO))[1]

    def is_ready(self, key: Key, now: float) -> bool:
        """Tell whether `key` may be tried at `now`."""
        return now >= self.ready_at(key)

    def handle_failure(self, key: Key, now: float) -> float:
        """Count a failure of `key` and return when it may be tried again."""
        failures = self.failures(key)
        ready_at = now + self._backoff.delay(failures)
        self._states[key] = (failures + 1, ready_at)
        return ready_at

    def handle_success(self, key: Key) -> None:
        """Forget the failures of `key`."""
        self._states.pop(key, None)
