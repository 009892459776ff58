"""Who uses a consumer: one thread at a time, as long as it lives, in the process that made it."""

from __future__ import annotations

import threading

from kafka_fast.errors import UsageError
from kafka_fast.net.consumer_core import ConsumerCore


class Turn:
    """Held, as a context manager, from a call's beginning to its end. Calls may nest."""

    __slots__ = ("_core", "_lock")

    def __init__(self, core: ConsumerCore) -> None:
        self._lock = threading.RLock()
        self._core = core

    def __enter__(self) -> None:
        self.check_open()
        if not self._lock.acquire(blocking=False):
            raise UsageError(
                "another thread uses this consumer: a Consumer is for one thread at a time; "
                "wakeup() is what others may call"
            )
        try:
            self.check_open()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def check_open(self) -> None:
        """Raise if nobody can use the consumer any more."""
        if self._core.closed:
            self._core.check_lives()
            raise UsageError("the consumer is closed")
