"""Pieces of work of a login, on threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kafka_fast.control.authentication.mechanism import WORK_TIMEOUT, Work
from kafka_fast.errors import KafkaConnectionError
from kafka_fast.net.work import HANGING_MAX, LoginWork
from tests.waiting import TIMEOUT, eventually


def work_of(function: Callable[[], object]) -> Work:
    return Work(function, "a token is asked of a test")


def outcome(function: Callable[[], object]) -> tuple[object, str]:
    """Return what a piece of work ends with, and the name of its thread."""
    done = threading.Event()
    told: list[tuple[object, str]] = []

    def take(result: object) -> None:
        told.append((result, threading.current_thread().name))
        done.set()

    LoginWork().run_work(work_of(function), take)
    assert done.wait(TIMEOUT)
    return told[0]


def test_work_is_done_on_a_thread_of_its_own() -> None:
    assert outcome(lambda: b"token") == (b"token", "kf-login")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)])
def test_what_work_raises_is_its_result(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert outcome(fail) == (error, "kf-login")


def test_work_is_done_in_place_when_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    told: list[object] = []
    LoginWork().run_work(work_of(lambda: 7), told.append)
    assert told == [7]


class Hanging:
    """A function that returns when the test says so, and the work that calls it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls = 0
        self.told: list[object] = []
        self.returns = threading.Event()
        self.login_work = LoginWork(lambda: self.now)

    def function(self) -> object:
        self.calls += 1
        assert self.returns.wait(TIMEOUT)
        return b"token"

    def ask(self) -> None:
        self.login_work.run_work(work_of(self.function), self.told.append)


@pytest.fixture
def hanging() -> Hanging:
    return Hanging()


def test_a_function_that_never_returns_is_called_a_few_times_only(hanging: Hanging) -> None:
    for _ in range(HANGING_MAX):
        hanging.ask()
        hanging.now += WORK_TIMEOUT
    for _ in range(10):
        hanging.ask()
    (error,) = {str(answer) for answer in hanging.told}
    assert isinstance(hanging.told[0], KafkaConnectionError)
    assert error == (
        "waits for a login: a token is asked of a test, and 4 earlier calls have not returned, the "
        "first for 240 s"
    )
    assert hanging.calls == HANGING_MAX
    hanging.returns.set()
    eventually(lambda: len(hanging.told) == 10 + HANGING_MAX, "the end of the calls")
    hanging.ask()
    eventually(lambda: len(hanging.told) == 11 + HANGING_MAX, "a call")
    assert hanging.told[10:] == [b"token"] * (HANGING_MAX + 1)


def test_work_that_only_takes_long_keeps_no_other_from_beginning(hanging: Hanging) -> None:
    for _ in range(5 * HANGING_MAX):
        hanging.ask()
    hanging.now += WORK_TIMEOUT - 1
    hanging.ask()
    assert hanging.told == []
    hanging.returns.set()
    eventually(lambda: len(hanging.told) == 5 * HANGING_MAX + 1, "the end of the calls")
