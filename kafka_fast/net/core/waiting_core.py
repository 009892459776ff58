"""The core of a client whose callers wait for its control thread, with the ways in which it ends.

    close() ───────────► refuse: all waits end ──► end: the threads stop
    end_in_background ─► the same, in a thread of its own: wait for nothing
    abandon ───────────► the same, with a warning: the client was not closed
    a fork ────────────► the child's copy refuses everything

A consumer's core and that of an admin client extend it. A producer's callers wait in C, and its end
delivers records, so its core has ways of its own.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, ClassVar

from kafka_fast.control.client_control import ClientControl
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.errors import InternalError, UsageError
from kafka_fast.net.core.client_core import ClientCore, CommandT, EventT
from kafka_fast.net.host import Host
from kafka_fast.net.process import process_life
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.net.process.detached import detached
from kafka_fast.net.waiting.waits import ClientWaits

END_PATIENCE = 1.0
"""Seconds that the end of the process waits for a thread of ours that a look-up blocks."""


class WaitingCore(ClientCore[CommandT, EventT]):
    """Both planes of a client whose callers wait by `waits`. Any thread, unless said otherwise."""

    unclosed: ClassVar[str] = ""
    """What it means that a client of this kind was not closed, for the warning of `abandon`."""
    waits: ClientWaits
    """The waits of users' threads; the subclass makes them."""

    def __init__(
        self,
        client_id: str,
        host: Host,
        control: ClientControl[Any, CommandT, EventT],
        plane: DataPlane,
    ) -> None:
        """Bring the parts together, as `ClientCore` does."""
        super().__init__(client_id, host, control, plane)
        self.closed = False
        """Whether the client is closed for users; its threads may still run."""
        self.has_ended = False
        """Whether the threads have ended, too."""
        self._stopping = threading.RLock()  # reentrant: a signal handler may close

    def check_open(self) -> None:
        """Raise UsageError if the client is closed, or was inherited through a fork.

        A daemon thread stands still instead if the end of the process has closed the client.
        """
        if self.closed:
            self.check_lives()
            daemon_threads.hold_daemon()
            raise UsageError(f"the {self.kind} is closed")

    def _fail(self, failure: InternalError) -> None:
        self.waits.fail_all(failure)

    # ---- the end ----

    def close(self) -> None:
        """End the threads. After an interruption, call this again."""
        if self.has_ended:
            return
        if os.getpid() != self.pid:
            process_life.discard(self)
            self.closed = self.has_ended = True
            return
        self._refuse()
        if self._host.is_current:  # garbage collection may run on the control thread
            self._end_detached()
        else:
            self._end()

    def abandon(self) -> None:
        """Stop the threads of a client that was collected without being closed; wait for nothing.

        Garbage collection may call this anywhere.
        """
        if self.closed:
            return
        try:
            warnings.warn(
                f"{self.kind} {self.client_id!r} was collected before it was closed: "
                f"{self.unclosed}close() it, or use it in a with block",
                ResourceWarning,
                stacklevel=2,
            )
        finally:  # warnings may be errors
            self.end_in_background()

    def end_in_background(self) -> None:
        """Stop the threads of a client that needs no goodbye; wait for nothing.

        Garbage collection may call this anywhere.
        """
        if not self.closed:
            self._refuse()
            self._end_detached()

    def _refuse(self) -> None:
        """End all waits; from here on the client is closed for users."""
        self.closed = True
        self.waits.end_all()
        self.driver.wake()  # if a signal handler closes, this thread may be in a wait

    def _end_detached(self) -> None:
        """End in a thread of its own: this one must not wait for the control thread."""
        try:
            detached(self._end, "kf-close")(())
        except RuntimeError:  # out of threads; or the interpreter ends, and `end_exit` came first
            if not self._host.is_current:
                self._end()

    def _end(self, patience: float | None = None) -> None:
        """End the threads.

        Args:
            patience: seconds to wait for another thread that does so, and for a look-up in place;
                None: without limit.
        """
        if not self._stopping.acquire(timeout=-1 if patience is None else patience):
            return
        try:
            if not self.has_ended:
                self._host.stop(patience)
                self.plane.shut_down()
                process_life.discard(self)
                self.has_ended = True  # last: after an interruption this is called again
        finally:
            self._stopping.release()

    def mark_forked(self) -> None:
        """Refuse all use in a forked child: no thread runs there, and locks may be held."""
        self.closed = self.has_ended = True
        super().mark_forked()
