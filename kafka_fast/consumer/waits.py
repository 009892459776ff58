"""The waits of a consumer's user: what ends them, beside what ends those of any client.

    wakeup(), close() of another caller ──► WakeupError

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafka_fast.control.view import View
from kafka_fast.errors import WakeupError
from kafka_fast.net.waiting.callers import Caller, Callers
from kafka_fast.net.waiting.waits import ClientWaits


class Waits(ClientWaits):
    """The waits of one consumer's user."""

    def __init__(
        self,
        view: View,
        now: Callable[[], float],
        callers: Callers,
        *,
        memory: float,
    ) -> None:
        """Start without a wakeup or a closing caller: each of them ends waits.

        Args:
            view: knows whether the client can go on, and its troubles with brokers.
            now: returns monotonic seconds.
            callers: the consumer's users.
            memory: seconds for which a past trouble may be the cause of a timeout.
        """
        super().__init__(view, now, memory=memory)
        self.callers = callers
        self._wakeups = 0
        self._claims = threading.Lock()
        self.closer: Caller | None = None
        """The caller that closes the consumer, or waits until it can."""

    def _calls_off(self) -> Callable[[], bool]:
        me = self.callers.current()
        return lambda: self._wakeups > 0 or self.closer not in (None, me)

    def check_wakeup(self) -> None:
        """Raise WakeupError if another caller called `wakeup` since the last time, or closes."""
        self.check_closer()
        if self._wakeups:
            self._wakeups = 0
            raise WakeupError("wakeup() was called")

    def check_closer(self) -> None:
        """Raise WakeupError if another caller closes the consumer, or waits until it can."""
        closer = self.closer
        if closer is not None and closer != self.callers.current():
            raise WakeupError(f"{self.callers.name(closer)} closes this consumer")

    def wakeup(self) -> None:
        """End the wait under way, or the next one; the caller raises the wake. Any thread."""
        self._wakeups += 1

    def claim_closing(self, caller: Caller) -> bool:
        """Make a caller the closer if there is none; return whether it is one. Any thread."""
        with self._claims:
            if self.closer is None:
                self.closer = caller
            return self.closer == caller

    def give_up_closing(self, caller: Caller) -> None:
        """Let another caller be the closer, if this caller was. Any thread."""
        with self._claims:
            if self.closer == caller:
                self.closer = None
