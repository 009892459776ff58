"""Producers that nobody has closed: when they are collected, when the process ends, or forks.

Accepted is accepted. A core that lost its `Producer` delivers what it took, with the threads that
it has, and ends itself. When the process ends, all cores do so at the same time, each for at most
its exit.flush.timeout.ms; what is left then is counted in the log.

    collected ──► abandon ──► delivers ──► ends itself
    exit ───────► abandon ──► delivers ──► ends itself, or gives up
    fork ───────► the child's inherited producers refuse everything

A process that `multiprocessing` started runs none of `atexit`'s functions if it was forked. What
it does run is `multiprocessing.util.Finalize`.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from typing import Protocol

from kafka_fast.logs import get_logger

logger = get_logger("kafka_fast.producer")

LOG_AFTER = 3.0
"""Seconds after which the log says what the end of the process waits for."""

FINALIZE_PRIORITY = 10
"""Before the finalizers of queues (-5), which a user's callbacks may still want."""


class Core(Protocol):
    """What lives in a process. Any thread."""

    client_id: str
    origin: object
    exit_flush_timeout: float

    def abandon(self) -> None:
        """Accept nothing more, deliver what was accepted, then end; wait for nothing."""

    def wait_ended(self, timeout: float) -> bool:
        """Wait until it has ended."""

    def give_up(self, why: str) -> None:
        """End it now, and tell the log what it had not delivered, and that this is why."""

    def pending(self) -> int:
        """Return how many records have not ended."""

    def mark_forked(self) -> None:
        """Called in a forked child, where no thread of the parent's runs."""


_living: weakref.WeakSet[Core] = weakref.WeakSet()
"""The cores of this process that have not ended. Their threads keep them."""

_finalized: set[int] = set()
"""Ids of the processes, this one and those it was forked from, that have a `Finalize`."""


def add(core: Core) -> None:
    """Have this core end with the process."""
    _living.add(core)
    if os.getpid() not in _finalized and _is_child_of_multiprocessing():
        from multiprocessing.util import Finalize

        Finalize(None, flush_at_exit, exitpriority=FINALIZE_PRIORITY)
        _finalized.add(os.getpid())


def discard(core: Core) -> None:
    """This core has ended."""
    _living.discard(core)


def _is_child_of_multiprocessing() -> bool:
    process = sys.modules.get("multiprocessing.process")  # imported by whatever starts a child
    return process is not None and process.parent_process() is not None


def flush_at_exit() -> None:
    """Deliver what is pending when the process ends, and tell what could not be delivered.

    An exception that a signal handler raises meanwhile (Ctrl-C, sys.exit) ends the wait at once.
    """
    cores = list(_living)
    began = time.monotonic()
    why = "the wait for their delivery was interrupted as the process ended"
    try:
        for core in cores:
            core.abandon()
        for core in cores:
            _wait_for(core, began)
        why = ""
    except (KeyboardInterrupt, SystemExit):
        _ignore_ctrl_c()
    finally:
        for core in cores:
            limit = f"exit.flush.timeout.ms ({core.exit_flush_timeout * 1000:.0f}) passed"
            core.give_up(why or limit)
            warn_unclosed(core)


def _ignore_ctrl_c() -> None:
    """Have no further Ctrl-C interrupt the count, which takes a moment."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait_for(core: Core, began: float) -> None:
    """Wait until the core has ended, or its time is up."""
    deadline = began + core.exit_flush_timeout
    log_at = began + LOG_AFTER
    if core.wait_ended(max(0.0, min(log_at, deadline) - time.monotonic())) or log_at >= deadline:
        return
    logger.warning(
        "the process ends, but %d records of producer %s are not delivered yet: waiting up to "
        "exit.flush.timeout.ms (%.0f s); Ctrl-C ends the wait",
        core.pending(),
        core.client_id,
        core.exit_flush_timeout,
    )
    core.wait_ended(max(0.0, deadline - time.monotonic()))


def warn_unclosed(core: Core) -> None:
    """Warn, once, if nobody has closed the producer; tracemalloc names the line that made it."""
    origin, core.origin = core.origin, None
    if origin is not None:
        warnings.warn(
            f"producer {core.client_id} was not closed: close() it, or use it in a with block",
            ResourceWarning,
            stacklevel=2,
            source=origin,
        )


def _mark_forked() -> None:
    for core in list(_living):
        core.mark_forked()
    _living.clear()


os.register_at_fork(after_in_child=_mark_forked)
# Twice: a Ctrl-C that arrives as the first call begins ends it before its first line. In all other
# cases the second one finds nothing to do.
atexit.register(flush_at_exit)
atexit.register(flush_at_exit)
