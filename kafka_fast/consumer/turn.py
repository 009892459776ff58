"""The guard that lets one thread at a time use a consumer, in the process that made it.

    calls   ── with turn ──► hold the turn until they end; another thread's call is refused
    close() ── to_close ──► wakes the thread that has the turn, waits for it, takes the turn

The closing thread is noted as `waits.closer`. From then on, waits and calls of other threads end
with a WakeupError, except waits that no wakeup may end.
"""

from __future__ import annotations

import threading

from kafka_fast.consumer.core import ConsumerCore
from kafka_fast.errors import CommitFailedError, KafkaTimeoutError, UsageError, WakeupError

CLOSE_SLICE = 0.05
"""Seconds after which a closer wakes the other thread again, which may have begun a new wait."""

INTERRUPTED = (LookupError, RuntimeError, AttributeError, CommitFailedError)
"""Errors that a call may meet after a signal handler, run in the middle of it, closed the consumer.
"""


class Turn:
    """A context manager that each call holds from its beginning to its end. Calls may nest."""

    __slots__ = ("_closing", "_core", "_depth", "_holder", "_lock")

    def __init__(self, core: ConsumerCore) -> None:
        self._lock = threading.RLock()
        self._core = core
        self._depth = 0  # nested calls of the thread that has the lock
        self._holder: int | None = None  # the thread that has the lock
        self._closing: Closing | None = None  # the closing that has the turn

    def __enter__(self) -> None:
        self._core.check_open()
        waits = self._core.waits
        if waits.closer is not None and self._holder != threading.get_ident():
            waits.check_closer()  # before the lock is taken, so that the closer gets it
        if not self._lock.acquire(blocking=False):
            raise UsageError(
                "another thread uses this consumer: a Consumer is for one thread at a time; "
                "wakeup() and close() are what others may call"
            )
        self._take()
        try:
            self._core.check_open()
        except BaseException:
            self._release()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._release()
        if self._core.closed and isinstance(error, INTERRUPTED):
            raise WakeupError("the consumer was closed meanwhile") from error

    def _take(self) -> None:
        self._depth += 1
        self._holder = threading.get_ident()

    def _release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
        self._lock.release()

    # Closing

    def to_close(self, deadline: float) -> Closing:
        """Return a context in which this thread may close the consumer.

        If another thread is in a call, it is woken and waited for. If this thread itself is in a
        call (a listener or a signal handler closes), that call goes on after the close.

        Args:
            deadline: when to give up.
        """
        return Closing(self, deadline)

    def take_to_close(self, closing: Closing, deadline: float) -> bool:
        """Take the turn to close the consumer, see `Closing`."""
        me = threading.get_ident()
        if self._closing is not None and self._closing.thread == me:
            return False
        if not self._lock.acquire(blocking=False):
            self._await_others(me, deadline)
        self._take()
        closing.has_turn = True
        if self._core.has_ended:
            return False
        self._closing = closing
        self._core.waits.closer = me
        return True

    def end_to_close(self, closing: Closing) -> None:
        """Give the turn back, if this closing has it."""
        if self._closing is closing:
            self._core.waits.closer = self._closing = None
        if closing.has_turn:
            closing.has_turn = False
            self._release()

    def _await_others(self, me: int, deadline: float) -> None:
        """Wait until the thread that has the turn is out of its call."""
        core = self._core
        began = core.now()
        try:
            while True:
                # If another thread is the closer, it is not woken: it closes the consumer.
                if core.waits.claim_closing(me):
                    core.driver.wake()
                left = deadline - core.now()
                if self._lock.acquire(timeout=max(0.0, min(CLOSE_SLICE, left))):
                    return
                if left <= 0:
                    raise KafkaTimeoutError(
                        f"another thread has not come out of its call of this consumer in "
                        f"{core.now() - began:.1f} s: the consumer is not closed"
                    )
        except BaseException:
            core.waits.give_up_closing(me)
            raise


class Closing:
    """A thread's turn to close a consumer. As a context manager it returns whether to close.

    There is nothing to close if another thread has done so, or inside a `close` of this thread.
    """

    __slots__ = ("_deadline", "_turn", "has_turn", "thread")

    def __init__(self, turn: Turn, deadline: float) -> None:
        """Begin without the turn.

        Args:
            turn: the consumer's turn.
            deadline: when to give up waiting for another thread's call.
        """
        self._turn = turn
        self._deadline = deadline
        self.thread = threading.get_ident()
        self.has_turn = False

    def __enter__(self) -> bool:
        """Take the turn.

        Raises:
            KafkaTimeoutError: the other thread has not come out of its call; nothing is closed.
        """
        try:
            return self._turn.take_to_close(self, self._deadline)
        except BaseException:
            self._turn.end_to_close(self)
            raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._turn.end_to_close(self)
