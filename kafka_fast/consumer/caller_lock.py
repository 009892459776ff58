"""The guard that lets one caller at a time use a consumer, in the process that made it.

    calls   ── with lock ──► hold the lock until they end; another caller's call is refused
    close() ── acquire_to_close ──► wakes the holder, waits for it, takes the lock

A caller is a thread, or a task of an event loop (`net/waiting/callers.py`). The closing caller is
noted as `waits.closer`. From then on, waits and calls of other callers end with a WakeupError,
except waits that no wakeup may end.
"""

from __future__ import annotations

import threading

from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.errors import CommitFailedError, KafkaTimeoutError, UsageError, WakeupError
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.net.waiting.callers import Caller
from kafka_fast.net.waiting.steps import Steps, Wait

INTERRUPTED = (LookupError, RuntimeError, AttributeError, CommitFailedError)
"""Errors that a call may meet after a signal handler, run in the middle of it, closed the consumer.
"""


class CallerLock:
    """A context manager that each call holds from its beginning to its end. Calls may nest."""

    __slots__ = ("_awaited", "_callers", "_closing", "_core", "_depth", "_holder", "_mutex")

    def __init__(self, core: ConsumerCore) -> None:
        # Held for a moment only. Reentrant: a signal handler's calls may come in between, and they
        # leave the fields as they found them.
        self._mutex = threading.RLock()
        self._core = core
        self._callers = core.waits.callers
        self._depth = 0  # nested calls of the caller that holds the lock
        self._holder: Caller | None = None  # the caller that holds the lock
        self._awaited = 0  # callers that wait until they can close
        self._closing: Closing | None = None  # the closing that holds the lock

    @property
    def holder(self) -> Caller | None:
        """The caller that is in a call; None: nobody is. Any thread."""
        return self._holder

    @property
    def is_mine(self) -> bool:
        """Whether the caller of this function is in a call."""
        return self._holder == self._callers.current()

    def __enter__(self) -> None:
        self._core.check_open()
        waits = self._core.waits
        if waits.closer is not None and not self.is_mine:
            waits.check_closer()  # before the lock is taken, so that the closer gets it
        if not self._acquire():
            waits.check_closer()  # one may have come, and have taken the lock, meanwhile
            self._core.check_open()
            raise self._refusal()
        try:
            self._core.check_open()
        except BaseException:
            self._release()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._release()
        if self._core.closed and isinstance(error, INTERRUPTED):
            daemon_threads.hold_daemon()
            raise WakeupError("the consumer was closed meanwhile") from error

    def _acquire(self) -> bool:
        """Take the lock, unless another caller holds it; return whether this one has it now."""
        me = self._callers.current()
        with self._mutex:
            if self._holder is None:
                self._holder = me
            elif self._holder != me:
                return False
            self._depth += 1
            return True

    def _release(self) -> None:
        with self._mutex:
            self._depth -= 1
            if self._depth == 0:
                self._holder = None
        if self._awaited:
            self._core.driver.wake()

    def _refusal(self) -> UsageError:
        holder, kind = self._holder, self._callers.kind
        who = f"another {kind}" if holder is None else self._callers.name(holder)
        return UsageError(
            f"{who} uses this consumer: a Consumer is for one {kind} at a time; "
            "wakeup(), metrics() and close() are what others may call"
        )

    # ---- closing ----

    def acquire_to_close(self, closing: Closing, deadline: float) -> Steps[bool]:
        """Take the lock for a caller that closes the consumer; `release_to_close` must follow.

        If another caller is in a call, it is woken and waited for. If this caller itself is in a
        call (a listener or a signal handler closes), that call goes on after the close.

        Args:
            closing: made by the caller.
            deadline: when to give up.

        Returns:
            Whether to close. There is nothing to close if another caller has done so, or inside a
            close of this caller.

        Raises:
            KafkaTimeoutError: the other caller has not come out of its call; nothing is closed.
        """
        me = self._callers.current()
        if self._closing is not None and self._closing.caller == me:
            return False
        closing.caller = me
        if not self._acquire():
            yield from self._await_others(me, deadline)
        closing.is_holder = True
        if self._core.has_ended:
            return False
        self._closing = closing
        self._core.waits.closer = me
        return True

    def release_to_close(self, closing: Closing) -> None:
        """Release the lock, if this closing holds it."""
        if self._closing is closing:
            self._core.waits.closer = self._closing = None
        if closing.is_holder:
            closing.is_holder = False
            self._release()

    def _await_others(self, me: Caller, deadline: float) -> Steps[None]:
        """Wait until the caller that holds the lock is out of its call, and take the lock."""
        core = self._core
        began = core.now()
        self._awaited += 1
        try:
            while True:
                # If another caller is the closer, it is not woken: it closes the consumer.
                if core.waits.claim_closing(me):
                    core.driver.wake()
                if self._acquire():
                    return
                if core.now() >= deadline:
                    raise KafkaTimeoutError(
                        f"another {self._callers.kind} has not come out of its call of this "
                        f"consumer in {core.now() - began:.1f} s: the consumer is not closed"
                    )
                yield Wait(self._is_free, deadline, f"the other {self._callers.kind}'s call")
        except BaseException:
            core.waits.give_up_closing(me)
            raise
        finally:
            self._awaited -= 1

    def _is_free(self) -> bool:
        return self._holder is None


class Closing:
    """One attempt to close a consumer."""

    __slots__ = ("caller", "is_holder")

    def __init__(self) -> None:
        self.caller: Caller | None = None
        self.is_holder = False
