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

    @property
    def is_member(self) -> bool:
        """Whether its group has taken it in."""

    def begin_to_leave(self) -> Answer[bool] | None:
        """Tell the coordinator that there is no such member; None: it has no group."""

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

    So the others need not wait for session.timeout.ms. One that has only asked to join leaves too:
    the coordinator may have taken it in by now, or given out an id for which rebalances wait (a
    broker before 2.2 tells the id when the others have joined; it is not waited for that long).
    Nothing is committed: whether the records of the last poll are done is not known, and a
    listener's thread may be gone.
    """
    leaving = []
    for core in list(living):
        was_member, left = core.is_member, core.begin_to_leave()
        if left is not None:
            leaving.append((core, was_member, left))
    deadline = time.monotonic() + EXIT_PATIENCE
    for core, was_member, left in leaving:
        left.wait(max(0.0, deadline - time.monotonic()))
        if was_member:
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
