"""Daemon threads while the process ends: a call that is refused then does not return.

    end_clients ─► begin_end ─► clients refuse calls ─► hold_daemon: the thread stands still
                                                        the interpreter's end stops it there

An error would end the thread, and Python would print its traceback while the interpreter is torn
down: cut short, or CPython aborts over the lock of stderr. The user can do nothing about that.

It stands still for a few seconds, not forever. A delivery callback may need a lock that the thread
holds, or a function of `atexit` may join it. After that the thread gets the error.

Thread: any.
"""

from __future__ import annotations

import threading
import time

DELIVERY_HOLD = 1.0
"""Seconds, at most, while clients end. What a producer still has to deliver rarely takes longer."""

HOLD = 5.0
"""Seconds after that. The interpreter's end comes much sooner, if nobody waits for the thread."""

OURS = "kf-"
"""How the names of our own threads begin. The end of a client waits for some of them."""


class DaemonThreads:
    """Knows whether the process ends, and keeps daemon threads from what would follow an error.

    A finalizer may call this in an interpreter whose modules have lost their names, in the thread
    that ends the process. There only the fields of this object are used.
    """

    def __init__(self) -> None:
        self._get_ident = threading.get_ident
        self._ender: int | None = None  # the thread that ends the process
        self._clients_ended = threading.Event()

    def begin_end(self) -> None:
        """Hold daemon threads from now on. Only the thread that ends the process."""
        self._ender = self._get_ident()

    def clients_ended(self) -> None:
        """Note that only the interpreter's end is left."""
        self._clients_ended.set()

    def forget_end(self) -> None:
        """Hold no thread: this is a forked child, which goes on."""
        self._ender = None
        self._clients_ended = threading.Event()

    def hold_daemon(self) -> None:
        """Stand still if this is a daemon thread of the user's and the process ends.

        Called before the error that says that a client is closed. The caller holds no lock that the
        end of a client needs.
        """
        if self._must_hold() and self._clients_ended.wait(DELIVERY_HOLD):
            time.sleep(HOLD)

    async def hold_task(self) -> None:
        """Do the same for a task: its loop runs on, and calls the callbacks of deliveries."""
        if self._must_hold():
            import asyncio  # only programs that await pay for it

            await asyncio.sleep(DELIVERY_HOLD + HOLD)

    def _must_hold(self) -> bool:
        if self._ender is None or self._ender == self._get_ident():
            return False
        thread = threading.current_thread()
        is_main = thread is threading.main_thread()
        return thread.daemon and not is_main and not thread.name.startswith(OURS)


daemon_threads = DaemonThreads()
"""Of this process."""
