"""Clients that are still open when the process ends or forks.

    exit ─► end_clients: all begin at the same time ─► each is waited for ─► each gives up the rest
             (a daemon thread whose call is refused stands still: `daemon_threads`)
         ─► after_clients: what was lost is told ─► threads that were just started have run
         ─► the interpreter's end ─► the exit status
    fork ─► the child's inherited clients refuse everything

Each core decides how to use the time that is left: a producer delivers the records that it has
accepted, a consumer leaves its group.

A child that `multiprocessing` forks runs no `atexit` function of its parent, and before Python 3.14
none at all; it runs `multiprocessing.util.Finalize`. It does not leave through C's `exit` either,
but by `os._exit`.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import NoReturn, Protocol

from kafka_fast.net import _exit_status
from kafka_fast.net.process import _detached
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.net.process.registry import Registry

LOG_AFTER = 3.0
"""Seconds after which the log says what the end of the process waits for."""

START_PATIENCE = 1.0
"""Seconds in which a thread that was started runs, even on a machine that is very busy."""

FINALIZE_PRIORITY = 10
"""Higher than that of the finalizers of multiprocessing's queues (-5), which a user's callbacks may
still need.
"""

LAST_PRIORITY = -(1 << 31)
"""Lower than that of all finalizers of others."""


class Mortal(Protocol):
    """What ends with the process: a client's core."""

    exit_patience: float
    """Seconds that the end of the process waits for it."""

    def begin_exit(self) -> None:
        """Start what must be done before the process ends; wait for nothing."""

    def wait_exit(self, timeout: float) -> bool:
        """Wait until its work is finished; return whether that is so."""

    def log_exit(self) -> None:
        """Log that the process waits for it."""

    def end_exit(self, interrupted: str) -> None:
        """End now, and log what is lost. A wait may have been interrupted, for this reason."""

    def mark_forked(self) -> None:
        """Refuse all calls, in a forked child."""


living: Registry[Mortal] = Registry()
"""The cores of this process that have not ended. Their own threads keep them alive."""

after_clients: list[Callable[[], None]] = []
"""Called when all clients have ended with the process."""

_finalized: set[int] = set()
"""Ids of processes that have a `Finalize`: this one, and those that it was forked from."""


def add(core: Mortal) -> None:
    """Have this core end with the process."""
    living.add(core)
    if os.getpid() not in _finalized and _is_child_of_multiprocessing():
        from multiprocessing.util import Finalize

        Finalize(None, end_clients, exitpriority=FINALIZE_PRIORITY)
        Finalize(None, _leave_child, exitpriority=LAST_PRIORITY)
        _finalized.add(os.getpid())


def discard(core: Mortal) -> None:
    """Forget a core that has ended."""
    living.discard(core)


def _is_child_of_multiprocessing() -> bool:
    process = sys.modules.get("multiprocessing.process")  # imported if a child was started
    return process is not None and process.parent_process() is not None


def end_clients() -> None:
    """Let all clients finish their work as the process ends, and report the work not done.

    An exception that a signal handler raises meanwhile (Ctrl-C, sys.exit) ends the wait at once.
    """
    cores = list(living)
    began = time.monotonic()
    why = "the wait for their delivery was interrupted as the process ended"
    try:
        daemon_threads.begin_end()
        for core in cores:
            core.begin_exit()
        for core in cores:
            _wait_for(core, began)
        why = ""
    except (KeyboardInterrupt, SystemExit):
        _ignore_ctrl_c()
    finally:
        with ExitStack() as steps:  # whatever one of them raises, the others are done as well
            steps.callback(daemon_threads.clients_ended)  # the first comes last
            steps.callback(_detached.wait_for_starts, START_PATIENCE)
            for step in after_clients:
                steps.callback(step)
            for core in cores:
                steps.callback(core.end_exit, why)


def prepare_exit_status() -> None:
    """Be ready to end the process with a status of ours; see `end_with`."""
    _exit_status.prepare()


def end_with(status: int) -> None:
    """Have the process end with this status in place of 0; of several, the highest counts."""
    _exit_status.raise_to(status)


def _leave_child() -> None:
    """Have a child of multiprocessing end with the status that it was told, in place of 0.

    It is the last finalizer. Then multiprocessing calls `os._exit` with the status of the child's
    function. From Python 3.14 on that status is settled before the finalizers run, so none of them
    can change it by what it raises; and nobody flushes what they have printed.
    """
    leave = os._exit

    def leave_with_status(status: int) -> NoReturn:
        leave(status or _exit_status.told())

    os._exit = leave_with_status
    for file in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # None, and closed
            file.flush()


def _ignore_ctrl_c() -> None:
    """Let no further Ctrl-C interrupt the count of lost records, which takes a moment."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait_for(core: Mortal, began: float) -> None:
    """Wait until the core is done, or its time is up."""
    deadline = began + core.exit_patience
    log_at = began + LOG_AFTER
    if core.wait_exit(max(0.0, min(log_at, deadline) - time.monotonic())) or log_at >= deadline:
        return
    core.log_exit()
    core.wait_exit(max(0.0, deadline - time.monotonic()))


def _mark_forked() -> None:
    _detached.forget_starts()
    daemon_threads.forget_end()
    for core in living:
        core.mark_forked()
    living.clear()


# Clients' modules import this one, though only their cores use it: what a program gives to `atexit`
# after that import runs before `end_clients`, while its clients still take calls.
os.register_at_fork(after_in_child=_mark_forked)
# Registered twice: a Ctrl-C that arrives as the first call begins ends that call before its first
# line. Otherwise the second call finds nothing to do.
atexit.register(end_clients)
atexit.register(end_clients)
