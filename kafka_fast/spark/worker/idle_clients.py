"""Clients that no task of this worker uses now: a few of them, and none for too long.

What a task gives back waits here for the next one. A timer closes what has waited for
connections.max.idle.ms.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Idle(NamedTuple, Generic[T]):
    key: Hashable
    client: T
    due: float
    """When it is closed."""


class IdleClients(Generic[T]):
    """Clients without a task. Thread-safe.

    Args:
        most: number of clients that are kept.
        close: closes clients; it is called without a lock.
        clock: monotonic seconds.
    """

    def __init__(
        self, most: int, close: Callable[[list[T]], None], clock: Callable[[], float]
    ) -> None:
        self._most = most
        self._close = close
        self._clock = clock
        self.drop_inherited()

    def drop_inherited(self) -> None:
        """Drop all clients without closing them: after a fork they belong to the parent."""
        self._lock = threading.Lock()
        self._idle: list[_Idle[T]] = []  # the one that became idle last is the last one
        self.timer: threading.Timer | None = None

    def __len__(self) -> int:
        """Return the number of clients."""
        with self._lock:
            return len(self._idle)

    def clients(self) -> list[T]:
        """Return the clients; the one that became idle last is the last one."""
        with self._lock:
            return [idle.client for idle in self._idle]

    def take_client(self, key: Hashable) -> T | None:
        """Return the client with this key that became idle last, and no longer keep it."""
        with self._lock:
            for index in reversed(range(len(self._idle))):
                if self._idle[index].key == key:
                    return self._idle.pop(index).client
        return None

    def put(self, key: Hashable, client: T, timeout: float) -> list[T]:
        """Keep a client; return those that are too many now, for the caller to close.

        Args:
            key: what `take_client` finds it by; several clients may have the same.
            client: the client.
            timeout: seconds after which it is closed.
        """
        with self._lock:
            self._idle.append(_Idle(key, client, self._clock() + timeout))
            surplus = [idle.client for idle in self._idle[: -self._most]]
            del self._idle[: -self._most]
            self._arm()
        return surplus

    def close_due(self) -> None:
        """Close the clients that have been idle for too long."""
        with self._lock:
            now = self._clock()
            closing = [idle.client for idle in self._idle if idle.due <= now]
            self._idle = [idle for idle in self._idle if idle.due > now]
            self.timer = None
            self._arm()
        self._close(closing)

    def _arm(self) -> None:
        """Have `close_due` called when the next client is due."""
        due = min((idle.due for idle in self._idle), default=math.inf)
        if self.timer is not None or due == math.inf:
            return
        self.timer = threading.Timer(max(0.0, due - self._clock()), self.close_due)
        self.timer.daemon = True
        self.timer.start()
