"""Who uses a consumer: one thread at a time, as long as it lives, in the process that made it.

    calls   ── with turn ──► theirs until they end; another thread is refused
    close() ── to_close ──► wakes whoever has the turn, waits until he is out, and keeps it

A closer wakes others by being `waits.closer`: every wait of another thread that may be woken ends
with a WakeupError from then on, and so does its next call.
"""

from __future__ import annotations

import threading

from kafka_fast.consumer.core import ConsumerCore
from kafka_fast.errors import CommitFailedError, KafkaTimeoutError, UsageError, WakeupError

CLOSE_SLICE = 0.05
"""Seconds after which a closer wakes once more whoever has the turn: he may have begun to wait."""

INTERRUPTED = (LookupError, RuntimeError, AttributeError, CommitFailedError)
"""What a call may meet, inside of it, once a signal's handler has closed the consumer."""


class Turn:
    """Held, as a context manager, from a call's beginning to its end. Calls may nest."""

    __slots__ = ("_closing", "_core", "_depth", "_holder", "_lock")

    def __init__(self, core: ConsumerCore) -> None:
        self._lock = threading.RLock()
        self._core = core
        self._depth = 0  # of the calls of the thread that has the lock
        self._holder: int | None = None  # that thread
        self._closing: Closing | None = None  # who has the turn to close the consumer

    def __enter__(self) -> None:
        self._core.check_open()
        waits = self._core.waits
        if waits.closer is not None and self._holder != threading.get_ident():
            waits.check_closer()  # without the lock: the closer is to get it
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

        A thread that is in a call is woken, and waited for until it is out. A call of this very
        thread goes on when this one ends: a listener or a signal's handler closes.

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
        """Give the turn back, if this is who has it."""
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
                # Another one that closes, or waits to, is not woken: it will have closed then.
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
    """A thread's turn to close a consumer. As a context it tells whether there is something to do.

    There is not if another thread has closed meanwhile, nor inside of a `close` of this thread's.
    """

    __slots__ = ("_deadline", "_turn", "has_turn", "thread")

    def __init__(self, turn: Turn, deadline: float) -> None:
        """Begin without the turn.

        Args:
            turn: of the consumer.
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
