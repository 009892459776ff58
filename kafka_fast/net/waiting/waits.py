"""The waits of a client's users for its control thread, and what ends them.

    kf-control ── Answer.set ──► wait ──► the result, or an error that is raised
    deadline, close(), a client that cannot go on ──► raise

Written once, over the `View` of any client. A kind of client that has more ways to end a wait
extends `ClientWaits` by them; a consumer's are in `consumer/waits.py`.

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kafka_fast.control.diagnosis.troubles import Reason, timeout_error
from kafka_fast.control.view import RefusalWatch, View
from kafka_fast.errors import InternalError, KafkaError, KafkaTimeoutError, WakeupError, fresh_copy
from kafka_fast.logs import ClientLog, LongWait, Waiting, in_seconds
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.net.waiting.interruption import Interruption
from kafka_fast.net.waiting.steps import Steps, Wait

T = TypeVar("T")

NO_LIMIT = 1e6
"""Seconds; messages do not name the limit of a longer wait."""

GRACE = 0.1
"""Seconds for which a shielded wait goes on after an interruption. A reachable broker answers in
less, and a user who presses Ctrl-C does not wait longer.
"""


class Answer(Generic[T]):
    """An answer that the control thread will give to the user's thread.

    The control thread wakes users' threads after each of its turns.
    """

    __slots__ = ("_result", "is_known")

    def __init__(self) -> None:
        self.is_known = False
        """Whether `set` was called."""
        self._result: T | KafkaError | None = None

    def set(self, result: T | KafkaError) -> None:
        """Give the answer. Control thread."""
        self._result = result
        self.is_known = True

    def get(self) -> T:
        """Return the result, or raise the error."""
        if isinstance(self._result, KafkaError):
            raise fresh_copy(self._result)
        result: Any = self._result
        return result  # type: ignore[no-any-return]


class ClientWaits:
    """The waits of one client's users."""

    def __init__(self, view: View, now: Callable[[], float], *, memory: float) -> None:
        """Start without a failure or an end: each of them ends waits.

        Args:
            view: knows whether the client can go on, and its troubles with brokers.
            now: returns monotonic seconds.
            memory: seconds for which a past trouble may be the cause of a timeout.
        """
        self._view = view
        self._log = ClientLog(f"kafka_fast.{view.kind}", view.client_id)
        self._now = now
        self._memory = memory
        self._failure: InternalError | None = None
        self._is_closed = False

    def wait(
        self,
        answer: Answer[T],
        deadline: float,
        what: str,
        *,
        may_wake: bool = True,
        is_shielded: bool = False,
        missing: Callable[[], Reason | None] = lambda: None,
    ) -> Steps[T]:
        """Wait for an answer of the control thread, and return it; arguments as `wait_until`.

        Raises:
            KafkaError: the answer is an error; or those of `wait_until`.
        """
        yield from self.wait_until(
            lambda: answer.is_known,
            deadline,
            what,
            may_wake=may_wake,
            is_shielded=is_shielded,
            missing=missing,
        )
        return answer.get()

    def wait_until(
        self,
        is_known: Callable[[], object],
        deadline: float,
        what: str,
        *,
        may_wake: bool = True,
        is_shielded: bool = False,
        missing: Callable[[], Reason | None] = lambda: None,
    ) -> Steps[None]:
        """Wait for what the control thread will bring; a long wait is logged.

        Args:
            is_known: returns whether to end the wait; called in any thread, after each wake.
            deadline: when to give up.
            what: the awaited thing, for messages.
            may_wake: whether other callers may end this wait, where a client has such a call
                (`Consumer.wakeup`). If not, they end a later wait.
            is_shielded: whether the wait goes on after an interruption (Ctrl-C, a cancellation),
                for at most `GRACE` seconds, and raises it at the end. A second interruption is
                raised at once.
            missing: returns what the answer still lacks, for messages.

        Raises:
            KafkaTimeoutError: there was no answer by the deadline.
            WakeupError: another caller ended the wait, or the client was closed meanwhile.
            AuthenticationError, TlsError: a node that the answer needs refuses this client.
        """
        began = self._now()
        long = LongWait(self._log)
        ends = self.ends(may_wake=may_wake)
        refusals = self.watch_refusals()
        interruption = Interruption()
        until = deadline
        while not is_known():
            self.raise_if_over(may_wake=may_wake)
            refusals.raise_refusal(missing)
            now = self._now()
            if now >= until:
                if interruption:
                    break
                limit = self.limit(began, deadline)
                raise self.timeout_error(f"{what}: no answer {limit}", began, missing())
            long.log_if_long(now, lambda at: self.describe(what, began, deadline, at, missing()))
            try:
                yield Wait(
                    lambda: is_known() or refusals.has_news or ends(),
                    min(until, long.deadline),
                    what,
                )
            except GeneratorExit:
                raise
            except BaseException as error:
                if interruption or not is_shielded:
                    raise
                interruption.keep_error(error)
                until = min(deadline, self._now() + GRACE)
        if interruption:
            interruption.raise_it()

    def watch_refusals(self) -> RefusalWatch:
        """Return what looks out for refused logins and certificates from now on."""
        return self._view.watch_refusals()

    def ends(self, *, may_wake: bool = True) -> Callable[[], bool]:
        """Return a function that tells whether `raise_if_over` would raise for this caller.

        Any thread may call the returned function.
        """
        is_called_off = self._calls_off() if may_wake else lambda: False
        return lambda: (
            self._is_closed
            or is_called_off()
            or self._failure is not None
            or self._view.fatal is not None
        )

    def _calls_off(self) -> Callable[[], bool]:
        """Return a function that tells whether `check_wakeup` would raise for this caller."""
        return lambda: False

    def describe(
        self, what: str, began: float, deadline: float, now: float, missing: Reason | None
    ) -> Waiting:
        """Return what the log says of a long wait.

        Args:
            what: the awaited thing.
            began: when the wait began.
            deadline: when the wait ends.
            now: the time.
            missing: what the answer still lacks; None: not known.
        """
        reasons = [] if missing is None else [missing]
        reasons += self._view.around(now, min(began, now - self._memory))
        why = "; ".join(reason.text for reason in reasons if reason.text)
        limit = "" if deadline - began > NO_LIMIT else f" up to {in_seconds(deadline - began)}"
        return Waiting(f"{what}: waiting{limit}" + (f"; {why}" if why else ""))

    def limit(self, began: float, deadline: float) -> str:
        """Return the time that a wait had, for messages."""
        return f"within {in_seconds(max(0.0, deadline - began))}"

    def raise_if_over(self, *, may_wake: bool = True) -> None:
        """Raise if a wait must end now.

        Raises:
            WakeupError: another caller ended the wait; or a signal handler has closed the client.
            KafkaError: this client cannot go on.
        """
        self.check_closed()
        if may_wake:
            self.check_wakeup()
        self.check_runs()
        if self._view.fatal is not None:
            raise fresh_copy(self._view.fatal)

    def check_wakeup(self) -> None:
        """Raise WakeupError if another caller has ended the wait. Here: there is no such call."""

    def check_closed(self) -> None:
        """Raise WakeupError if the client was closed, by a signal handler or a listener.

        A daemon thread stands still instead if the end of the process has closed the client.
        """
        if self._is_closed:
            daemon_threads.hold_daemon()
            raise WakeupError(f"the {self._view.kind} was closed meanwhile")

    def check_runs(self) -> None:
        """Raise if the control thread has failed."""
        if self._failure is not None:
            raise fresh_copy(self._failure)

    def timeout_error(
        self, what: str, began: float | None = None, *reasons: Reason | None
    ) -> KafkaTimeoutError:
        """Return the error of a wait that has timed out; its cause is the last trouble, if any.

        Args:
            what: the awaited thing, and how long the wait took.
            began: when the wait began; None: take the troubles of the last `memory` seconds.
            reasons: why nothing has come; None: a reason is not known.
        """
        now = self._now()
        since = now - self._memory
        troubles = self._view.around(now, since if began is None else min(began, since))
        known = [reason for reason in reasons if reason is not None]
        said = "; ".join(reason.text for reason in known)
        # A trouble whose error a reason names is not named again.
        more = [
            trouble
            for trouble in troubles
            if trouble.cause is None or str(trouble.cause) not in said
        ]
        return timeout_error(what, *known, *more)

    def end_all(self) -> None:
        """End all waits, now and later: the client is closed. Any thread."""
        self._is_closed = True

    def fail_all(self, failure: InternalError) -> None:
        """End all waits with `failure`, now and later: the client has failed. Control thread."""
        self._failure = failure
