"""Consumers that nobody has closed: when they are collected, when the process ends, or forks."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from typing import Protocol

from kafka_fast.net.waits import Answer

EXIT_PATIENCE = 1.0
"""Seconds that the end of the interpreter waits for coordinators to hear of it."""


class Core(Protocol):
    """What lives in a process."""

    client_id: str
    closed: bool

    def close(self) -> None:
        """End its threads."""

    def begin_to_leave(self) -> Answer[bool] | None:
        """Tell the coordinator that this member is gone; None: it is none."""

    def mark_forked(self) -> None:
        """Called in a forked child, where no thread of the parent's runs."""


living: weakref.WeakSet[Core] = weakref.WeakSet()
"""The consumers of this process that are not closed."""


def abandon(core: Core) -> None:
    """Stop what a consumer that was collected unclosed has left running."""
    if not core.closed:
        warnings.warn(
            f"consumer {core.client_id!r} was collected before it was closed: nothing was "
            "committed, and its group waits for session.timeout.ms; close() it, or use it in a "
            "with block",
            ResourceWarning,
            stacklevel=2,
        )
        core.close()


def leave_at_exit() -> None:
    """Leave the groups of consumers that nobody has closed, before the interpreter ends.

    So the others need not wait for session.timeout.ms. Nothing is committed: whether the records
    of the last poll are done is not known, and a listener's thread may be gone.
    """
    leaving = [(core, left) for core in list(living) if (left := core.begin_to_leave()) is not None]
    deadline = time.monotonic() + EXIT_PATIENCE
    for core, left in leaving:
        left.wait(max(0.0, deadline - time.monotonic()))
        warnings.warn(
            f"the interpreter ends with consumer {core.client_id!r} in its group: what was not "
            "committed will be read again; close() it, or use it in a with block",
            ResourceWarning,
            stacklevel=2,
        )


def _mark_forked() -> None:
    for core in list(living):
        core.mark_forked()
    living.clear()


os.register_at_fork(after_in_child=_mark_forked)
