"""One member's calls of its assignors: in order, never two at once, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.control.group.assignors.calls import AssignorCalls
from kafka_fast.errors import KafkaError

Aside = tuple[Callable[[], object], Callable[[object, float], None]]


class Thread:
    """Another thread, played by hand."""

    def __init__(self) -> None:
        self.begun: list[Aside] = []
        self.told: list[object] = []
        self.calls = AssignorCalls({}, lambda function, done: self.begun.append((function, done)))

    def call(self, name: str) -> None:
        self.calls.call(
            lambda: name,
            lambda result, now: self.told.append(result),
            lambda error, now: self.told.append(error),
        )

    def end(self, result: Any = None) -> None:
        """End the call that is under way, with this result or its own."""
        function, done = self.begun.pop()
        done(function() if result is None else result, 1.0)


def test_calls_take_turns() -> None:
    thread = Thread()
    for name in "abc":
        thread.call(name)
    for told in (["a"], ["a", "b"], ["a", "b", "c"]):
        assert len(thread.begun) == 1, "one at a time"
        thread.end()
        assert thread.told == told
    assert not thread.begun


def test_what_has_not_begun_can_be_dropped() -> None:
    thread = Thread()
    thread.call("a")
    thread.call("b")
    thread.calls.drop_waiting()
    thread.call("c")
    thread.end()
    thread.end()
    assert thread.told == ["a", "c"]


def test_an_assignors_error_is_told() -> None:
    thread = Thread()
    thread.call("a")
    error = KafkaError("the assignor has failed")
    thread.end(error)
    assert thread.told == [error]


def test_a_fault_of_our_own_is_not_hidden() -> None:
    thread = Thread()
    thread.call("a")
    with pytest.raises(ZeroDivisionError):
        thread.end(ZeroDivisionError())
    assert thread.told == []
