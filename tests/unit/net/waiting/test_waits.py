"""What ends a wait of any client's user."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Links
from kafka_fast.control.connections.refusals import Refusals
from kafka_fast.control.diagnosis.troubles import Reason, Troubles
from kafka_fast.control.requests.call import Results
from kafka_fast.control.requests.targets import CoordinatorKind, CoordinatorOfEach
from kafka_fast.control.view import View
from kafka_fast.errors import (
    AuthenticationError,
    CoordinatorLoadInProgress,
    KafkaConnectionError,
    KafkaTimeoutError,
    UsageError,
    WakeupError,
    broker_error,
)
from kafka_fast.net.waiting.steps import Steps, Wait, Yielded, run_steps
from kafka_fast.net.waiting.waits import GRACE, Answer, ClientWaits
from tests.unit.control.requests.test_collecting import DescribeGroups
from tests.unit.control.test_client_control import Client

T = TypeVar("T")

NODE_1 = ConnectionKey(Role.DATA, 1)


class Clock:
    """A driver whose time passes only while somebody waits."""

    def __init__(self) -> None:
        self.time = 100.0
        self.waited = 0

    def now(self) -> float:
        return self.time

    def run(self, steps: Steps[T]) -> T:
        return run_steps(steps, self._answer)

    def _answer(self, yielded: Yielded) -> None:
        assert isinstance(yielded, Wait)
        self.waited += 1
        if not yielded.is_over():
            self.time = max(self.time, yielded.deadline)


class Connections:
    """Connections to node 1, with what has gone wrong there."""

    def __init__(self) -> None:
        self.troubles = Troubles(logging.getLogger("kafka_fast.test"))
        self.busy: Reason | None = None
        self.refusals = Refusals(Links())

    def under_way(self, now: float, least: float) -> Reason | None:
        return self.busy


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def control() -> Any:
    context = SimpleNamespace(client_id="me")
    return SimpleNamespace(kind="client", fatal=None, connections=Connections(), context=context)


@pytest.fixture
def waits(clock: Any, control: Any) -> ClientWaits:
    return ClientWaits(View(control), clock.now, memory=30.0)


def test_an_answer_is_returned_or_raised(waits: ClientWaits, clock: Clock) -> None:
    answer: Answer[int] = Answer()
    answer.set(7)
    assert clock.run(waits.wait(answer, 101.0, "counting")) == 7
    refusal = KafkaConnectionError("no")
    answer.set(refusal)
    with pytest.raises(KafkaConnectionError) as caught:
        clock.run(waits.wait(answer, 101.0, "counting"))
    assert caught.value is not refusal, "it would be raised in two threads"


def test_the_deadline_names_the_last_trouble(
    waits: ClientWaits, clock: Clock, control: Any
) -> None:
    answer: Answer[int] = Answer()
    with pytest.raises(KafkaTimeoutError, match=r"^counting: no answer within 100 ms$"):
        clock.run(waits.wait(answer, 100.1, "counting"))
    assert clock.time == 100.1
    control.connections.troubles.note(NODE_1, KafkaConnectionError("refused"), clock.time - 29.0)
    with pytest.raises(KafkaTimeoutError, match=r"; last trouble: refused$") as caught:
        clock.run(waits.wait(answer, 0.0, "counting"))
    assert isinstance(caught.value.__cause__, KafkaConnectionError)
    clock.time += 2.0
    assert waits.timeout_error("late").__cause__ is None


def test_the_deadline_names_what_is_missing_and_who_is_silent(
    waits: ClientWaits, control: Any, clock: Clock
) -> None:
    refusal = broker_error(14)
    control.connections.busy = Reason("node 1 has not answered", KafkaTimeoutError("not answered"))
    with pytest.raises(KafkaTimeoutError) as caught:
        clock.run(
            waits.wait(
                Answer[int](), 100.1, "counting", missing=lambda: Reason("t-0 lacks", refusal)
            )
        )
    assert str(caught.value) == (
        "counting: no answer within 100 ms; t-0 lacks; node 1 has not answered"
    )
    cause = caught.value.__cause__
    assert isinstance(cause, CoordinatorLoadInProgress)
    assert cause is not refusal, "it would gather the tracebacks of all who wait"


def test_a_long_wait_is_told_of_once(
    waits: ClientWaits, control: Any, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    control.connections.troubles.note(NODE_1, KafkaConnectionError("refused"), 99.0)
    caplog.clear()
    with pytest.raises(KafkaTimeoutError):
        clock.run(waits.wait(Answer[int](), 120.0, "counting"))
    assert caplog.messages == ["[me] counting: waiting up to 20 s; last trouble: refused"]
    caplog.clear()
    with pytest.raises(KafkaTimeoutError):
        clock.run(waits.wait(Answer[int](), 122.0, "counting"))
    assert caplog.messages == [], "nothing to tell of after two seconds"


def test_a_client_that_cannot_go_on_ends_every_wait(
    waits: ClientWaits, control: Any, clock: Clock
) -> None:
    answer: Answer[int] = Answer()
    waits.check_runs()
    control.fatal = KafkaConnectionError("not allowed in")
    waits.check_runs()
    for _ in range(2):
        with pytest.raises(KafkaConnectionError):
            clock.run(waits.wait(answer, 200.0, "counting"))
    waits.fail_all(UsageError("the thread is gone"))
    for _ in range(2):
        with pytest.raises(UsageError, match="the thread is gone"):
            clock.run(waits.wait(answer, 200.0, "counting", may_wake=False))
    with pytest.raises(UsageError, match="the thread is gone"):
        waits.check_runs()


def test_nothing_is_waited_for_once_it_is_closed(waits: ClientWaits, clock: Clock) -> None:
    """A signal's handler may close in the middle of a wait."""
    answer: Answer[int] = Answer()
    waits.end_all()
    for may_wake in (True, False):
        with pytest.raises(WakeupError, match="closed meanwhile"):
            clock.run(waits.wait(answer, 200.0, "leaving", may_wake=may_wake))


# ---- interruptions ----


def interrupted(waits: ClientWaits, answer: Answer[int], *, is_shielded: bool) -> Steps[int]:
    """Return a wait into which Ctrl-C was thrown, once."""
    steps = waits.wait(answer, 200.0, "committing", is_shielded=is_shielded)
    assert isinstance(next(steps), Wait)
    yielded = steps.throw(KeyboardInterrupt())
    assert isinstance(yielded, Wait)
    assert yielded.deadline == pytest.approx(100.0 + GRACE)
    return steps


def test_an_interruption_ends_a_wait_at_once(waits: ClientWaits) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(waits, Answer(), is_shielded=False)


def test_what_must_finish_does_so_before_the_interruption_is_raised(waits: ClientWaits) -> None:
    answer: Answer[int] = Answer()
    steps = interrupted(waits, answer, is_shielded=True)
    answer.set(7)
    with pytest.raises(KeyboardInterrupt):
        next(steps)


def test_what_must_finish_has_no_more_than_the_grace(waits: ClientWaits, clock: Clock) -> None:
    steps = interrupted(waits, Answer(), is_shielded=True)
    clock.time += GRACE
    with pytest.raises(KeyboardInterrupt):
        next(steps)


def test_a_second_interruption_ends_what_must_finish(waits: ClientWaits) -> None:
    steps = interrupted(waits, Answer(), is_shielded=True)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())


def test_steps_that_are_dropped_do_not_go_on(waits: ClientWaits) -> None:
    steps = waits.wait(Answer[int](), 200.0, "committing", is_shielded=True)
    next(steps)
    steps.close()


def test_a_refused_login_ends_a_wait_at_once(
    waits: ClientWaits, clock: Clock, control: Any
) -> None:
    answer: Answer[int] = Answer()
    refused = AuthenticationError("node 1 at b:9092 refuses the login by PLAIN: no")
    steps = waits.wait(answer, 1e6, "counting")
    yielded = next(steps)
    assert isinstance(yielded, Wait)
    assert not yielded.is_over()
    control.connections.refusals.note(refused)
    assert yielded.is_over()
    with pytest.raises(AuthenticationError, match="refuses the login by PLAIN") as caught:
        steps.send(None)
    assert caught.value is not refused
    clock.time = 100.0
    with pytest.raises(KafkaTimeoutError):  # a later call waits for the next try
        clock.run(waits.wait(answer, 101.0, "counting"))


def test_a_wait_is_over_when_something_ends_it(waits: ClientWaits, control: Any) -> None:
    """Exactly when `raise_if_over` would raise: else its steps would spin, or sleep on."""
    is_known = False
    yielded = next(waits.wait_until(lambda: is_known, 200.0, "counting"))
    assert isinstance(yielded, Wait)
    assert not yielded.is_over()
    is_known = True
    assert yielded.is_over()
    is_known = False
    control.fatal = KafkaConnectionError("not allowed in")
    assert yielded.is_over()
    with pytest.raises(KafkaConnectionError):
        waits.raise_if_over()


def test_a_wait_for_a_call_ends_with_its_results(clock: Clock) -> None:
    """What an admin client does: it needs no more than a `ClientControl`."""
    client = Client()
    waits = ClientWaits(client.view, clock.now, memory=30.0)
    answer: Answer[Results[str, str]] = Answer()
    call = DescribeGroups(
        CoordinatorOfEach(CoordinatorKind.GROUP),
        timeout=1.0,
        on_ended=lambda results, now: answer.set(results),
    )
    client.requester.open_call(call, [])
    assert clock.run(waits.wait(answer, 101.0, "describing groups")).values == {}
    with pytest.raises(KafkaTimeoutError, match=r"^describing groups: no answer within 1 s"):
        clock.run(waits.wait(Answer[int](), 101.0, "describing groups"))
