"""Pieces of work of a login, on threads of their own."""

from __future__ import annotations

import threading

import pytest

from kafka_fast.net.work import run_work
from tests.waiting import TIMEOUT


def outcome(function: object) -> tuple[object, str]:
    """Return what a piece of work ends with, and the name of its thread."""
    done = threading.Event()
    told: list[tuple[object, str]] = []

    def take(result: object) -> None:
        told.append((result, threading.current_thread().name))
        done.set()

    run_work(function, take)  # type: ignore[arg-type]
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
    run_work(lambda: 7, told.append)
    assert told == [7]
