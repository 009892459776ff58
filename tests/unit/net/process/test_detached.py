"""Threads that finalizers start: the end of the process waits until they have run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.net.process import process_life
from kafka_fast.net.process._detached import Detached, forget_starts, wait_for_starts
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.net.process.detached import detached
from tests.waiting import TIMEOUT


class Starts:
    """Starts no thread until it is told to."""

    def __init__(self) -> None:
        self.pending: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def __call__(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.pending.append((function, arguments))

    def run(self) -> None:
        while self.pending:
            function, arguments = self.pending.pop()
            function(*arguments)


def test_the_function_is_called_in_a_thread_of_its_name() -> None:
    names: list[str] = []
    called = threading.Event()

    def call(first: int, second: int) -> None:
        names.append(f"{threading.current_thread().name} {first} {second}")
        called.set()

    detached(call, "kf-test")((1, 2))
    assert called.wait(TIMEOUT)
    assert names == ["kf-test 1 2"]


def test_the_end_waits_for_a_thread_that_has_not_run() -> None:
    """Regression: CPython 3.11 freed its state meanwhile, and the process died of SIGSEGV."""
    starts = Starts()
    Detached(lambda: None, "kf-test", starts)(())
    assert not wait_for_starts(0.01)
    late = threading.Timer(0.05, starts.run)
    late.start()
    process_life.end_clients()
    daemon_threads.forget_end()  # this process goes on
    assert starts.pending == []
    late.join()


def test_the_end_waits_until_the_thread_with_a_name_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the bare thread was waited for, and not the one that it starts."""
    starts = Starts()
    were_waited_for: list[bool] = []

    def start(thread: threading.Thread) -> None:
        were_waited_for.append(not wait_for_starts(0))

    Detached(lambda: None, "kf-test", starts)(())
    monkeypatch.setattr(threading.Thread, "start", start)
    starts.run()
    assert were_waited_for == [True]
    assert wait_for_starts(0)


def test_a_thread_that_cannot_be_started_is_not_waited_for() -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError):
        Detached(print, "kf-test", refuse)(())
    assert wait_for_starts(0)


def test_a_child_does_not_wait_for_its_parents_threads() -> None:
    starts = Starts()
    Detached(lambda: None, "kf-test", starts)(())
    forget_starts()
    assert wait_for_starts(0)
