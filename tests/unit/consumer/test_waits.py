"""What ends a wait of a consumer's user, beside what ends those of any client."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka_fast.consumer.waits import Waits
from kafka_fast.control.view import View
from kafka_fast.errors import KafkaConnectionError, KafkaTimeoutError, WakeupError
from kafka_fast.net.waiting.callers import ThreadCallers
from kafka_fast.net.waiting.steps import Wait
from kafka_fast.net.waiting.waits import Answer
from tests.unit.net.waiting.test_waits import Clock, clock, control

__all__ = ["clock", "control"]  # fixtures


@pytest.fixture
def waits(clock: Any, control: Any) -> Waits:
    return Waits(View(control), clock.now, ThreadCallers(), memory=30.0)


def test_a_wakeup_ends_one_wait_that_it_may_end(waits: Waits, clock: Clock) -> None:
    answer: Answer[int] = Answer()
    waits.wakeup()
    waits.wakeup()
    with pytest.raises(KafkaTimeoutError):
        clock.run(waits.wait(answer, 100.1, "leaving", may_wake=False))
    with pytest.raises(WakeupError):
        clock.run(waits.wait(answer, 200.0, "counting"))
    waits.raise_if_over()


def test_whoever_closes_ends_the_waits_of_all_others(waits: Waits, clock: Clock) -> None:
    """Again and again, until it has closed or given up; but not those that must not be woken."""
    answer: Answer[int] = Answer()
    closer = -1  # no thread's ident
    assert waits.claim_closing(closer)
    assert not waits.claim_closing(-2), "there is one already"
    for _ in range(2):
        with pytest.raises(WakeupError, match="another thread closes"):
            clock.run(waits.wait(answer, 200.0, "counting"))
        with pytest.raises(WakeupError):
            waits.check_wakeup()
    with pytest.raises(KafkaTimeoutError):
        clock.run(waits.wait(answer, 100.1, "leaving", may_wake=False))
    waits.give_up_closing(-2)
    assert waits.closer == closer
    waits.give_up_closing(closer)
    waits.raise_if_over()


def test_the_closer_itself_waits_on(waits: Waits, clock: Clock) -> None:
    answer: Answer[int] = Answer()
    assert waits.claim_closing(threading.get_ident())
    waits.raise_if_over()
    answer.set(7)
    assert clock.run(waits.wait(answer, 200.0, "counting")) == 7


def test_a_wait_is_over_when_something_ends_it(waits: Waits, control: Any) -> None:
    """Exactly when `raise_if_over` would raise: else its steps would spin, or sleep on."""
    (request,) = [next(waits.wait(Answer[int](), 200.0, "counting"))]
    assert isinstance(request, Wait)
    (last,) = [next(waits.wait(Answer[int](), 200.0, "leaving", may_wake=False))]
    assert isinstance(last, Wait)
    assert not request.is_over()
    waits.wakeup()
    assert request.is_over()
    assert not last.is_over()
    with pytest.raises(WakeupError):
        waits.raise_if_over()
    assert not request.is_over()
    waits.claim_closing(-1)
    assert request.is_over()
    assert not last.is_over()
    waits.give_up_closing(-1)
    waits.claim_closing(threading.get_ident())
    assert not request.is_over()
    control.fatal = KafkaConnectionError("not allowed in")
    assert request.is_over()
    assert last.is_over()
