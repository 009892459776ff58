"""The waits of a consumer's user for the control thread, and what ends them.

    kf-control ── Answer.set ──► wait ──► the result, or an error that is raised
    deadline, wakeup(), close(), a client that cannot go on ──► raise

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kafka_fast.control.connections.refusals import RefusalWatch
from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.diagnosis.silence import around
from kafka_fast.control.diagnosis.troubles import Reason, timeout_error
from kafka_fast.errors import InternalError, KafkaError, KafkaTimeoutError, WakeupError, fresh_copy
from kafka_fast.logs import ClientLog, LongWait, Waiting, in_seconds
from kafka_fast.net.waiting.callers import Caller, Callers
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


class Waits:
    """The waits of one consumer's user."""

    def __init__(
        self,
        control: ConsumerControl,
        now: Callable[[], float],
        callers: Callers,
        *,
        memory: float,
    ) -> None:
        """Start without a wakeup, a failure or a closing caller: each of them ends waits.

        Args:
            control: knows whether the client can go on, and its troubles with brokers.
            now: returns monotonic seconds.
            callers: the consumer's users.
            memory: seconds for which a past trouble may be the cause of a timeout.
        """
        self._control = control
        self._log = ClientLog("kafka_fast.consumer", control.context.client_id)
        self._now = now
        self.callers = callers
        self._memory = memory
        self._failure: InternalError | None = None
        self._wakeups = 0
        self._is_closed = False
        self._claims = threading.Lock()
        self.closer: Caller | None = None
        """The caller that closes the consumer, or waits until it can."""

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
        """Wait for an answer of the control thread; a long wait is logged.

        Args:
            answer: set by the control thread.
            deadline: when to give up.
            what: the awaited thing, for messages.
            may_wake: whether `wakeup` ends this wait. If not, `wakeup` ends a later wait.
            is_shielded: whether the wait goes on after an interruption (Ctrl-C, a cancellation),
                for at most `GRACE` seconds, and raises it at the end. A second interruption is
                raised at once.
            missing: returns what the answer still lacks, for messages.

        Raises:
            KafkaTimeoutError: there was no answer by the deadline.
            WakeupError: another caller called `wakeup`.
            AuthenticationError, TlsError: a node that the answer needs refuses this client.
        """
        began = self._now()
        long = LongWait(self._log)
        ends = self.ends(may_wake=may_wake)
        refusals = self.watch_refusals()
        interruption = Interruption()
        until = deadline
        while not answer.is_known:
            self.check(may_wake=may_wake)
            refusals.check(missing)
            now = self._now()
            if now >= until:
                if interruption:
                    break
                limit = self.limit(began, deadline)
                raise self.timeout_error(f"{what}: no answer {limit}", began, missing())
            long.look(now, lambda at: self.describe(what, began, deadline, at, missing()))
            try:
                yield Wait(
                    lambda: answer.is_known or refusals.has_news or ends(),
                    min(until, long.deadline),
                    what,
                )
            except GeneratorExit:
                raise
            except BaseException as error:
                if interruption or not is_shielded:
                    raise
                interruption.keep(error)
                until = min(deadline, self._now() + GRACE)
        if interruption:
            interruption.raise_it()
        return answer.get()

    def watch_refusals(self) -> RefusalWatch:
        """Return what looks out for refused logins and certificates from now on."""
        return self._control.connections.refusals.watch()

    def ends(self, *, may_wake: bool = True) -> Callable[[], bool]:
        """Return a function that tells whether `check` would raise for this caller.

        Any thread may call the returned function.
        """
        me = self.callers.current()

        def is_ended() -> bool:
            return (
                self._is_closed
                or (may_wake and (self._wakeups > 0 or self.closer not in (None, me)))
                or self._failure is not None
                or self._control.fatal is not None
            )

        return is_ended

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
        reasons += around(self._control.connections, now, min(began, now - self._memory))
        why = "; ".join(reason.text for reason in reasons if reason.text)
        limit = "" if deadline - began > NO_LIMIT else f" up to {in_seconds(deadline - began)}"
        return Waiting(f"{what}: waiting{limit}" + (f"; {why}" if why else ""))

    def limit(self, began: float, deadline: float) -> str:
        """Return the time that a wait had, for messages."""
        return f"within {in_seconds(max(0.0, deadline - began))}"

    def check(self, *, may_wake: bool = True) -> None:
        """Raise if a wait must end now.

        Raises:
            WakeupError: another caller called `wakeup` since the last time, or closes the
                consumer; or a signal handler has closed it.
            KafkaError: this client cannot go on.
        """
        self.check_closed()
        if may_wake:
            self.check_wakeup()
        self.check_runs()
        if self._control.fatal is not None:
            raise fresh_copy(self._control.fatal)

    def check_wakeup(self) -> None:
        """Raise WakeupError if another caller called `wakeup` since the last time, or closes."""
        self.check_closer()
        if self._wakeups:
            self._wakeups = 0
            raise WakeupError("wakeup() was called")

    def check_closed(self) -> None:
        """Raise WakeupError if the consumer was closed, by a signal handler or a listener."""
        if self._is_closed:
            raise WakeupError("the consumer was closed meanwhile")

    def check_closer(self) -> None:
        """Raise WakeupError if another caller closes the consumer, or waits until it can."""
        closer = self.closer
        if closer is not None and closer != self.callers.current():
            raise WakeupError(f"{self.callers.name(closer)} closes this consumer")

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
        troubles = around(
            self._control.connections, now, since if began is None else min(began, since)
        )
        known = [reason for reason in reasons if reason is not None]
        said = "; ".join(reason.text for reason in known)
        # A trouble whose error a reason names is not named again.
        more = [
            trouble
            for trouble in troubles
            if trouble.cause is None or str(trouble.cause) not in said
        ]
        return timeout_error(what, *known, *more)

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

    def end(self) -> None:
        """End all waits, now and later: the consumer is closed. Any thread."""
        self._is_closed = True

    def fail(self, failure: InternalError) -> None:
        """End all waits with `failure`, now and later: the client has failed. Control thread."""
        self._failure = failure
