"""Who calls a client: a thread, or a task of an event loop.

A consumer is for one caller at a time, so it has to know callers apart: see
`consumer/caller_lock.py`. `TaskCallers`, for callers in an event loop, is in `looping`.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Protocol, TypeAlias

Caller: TypeAlias = Hashable
"""What tells a caller from others: the ident of a thread, or a task."""


class Callers(Protocol):
    """Tells the callers of a client apart. Any thread."""

    kind: str
    """One of them, in messages: "thread" or "task"."""

    def current(self) -> Caller:
        """Return the caller of this function."""

    def name(self, caller: Caller) -> str:
        """Return how messages call a caller other than their reader."""


class ThreadCallers:
    """Tells threads apart."""

    kind = "thread"

    def current(self) -> Caller:
        """Return the ident of this thread."""
        return threading.get_ident()

    def name(self, caller: Caller) -> str:
        """Return how messages call another thread."""
        return "another thread"
