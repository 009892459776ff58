"""Which threads stand still as the process ends, and for how long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from kafka_fast.net.process import daemon_threads
from kafka_fast.net.process.daemon_threads import DaemonThreads
from tests.waiting import TIMEOUT

SHORT = 0.2
"""Seconds: longer than a call that returns at once takes."""


@pytest.fixture(name="threads")
def ending_threads(monkeypatch: pytest.MonkeyPatch) -> DaemonThreads:
    """Threads of a process that ends now, whose clients have ended."""
    monkeypatch.setattr(daemon_threads, "HOLD", SHORT)
    threads = DaemonThreads()
    threads.begin_end()
    threads.clients_ended()
    return threads


def seconds(call: Callable[[], object], *, name: str = "user", daemon: bool = True) -> float:
    """Return how long a call takes in a thread."""
    took: list[float] = []

    def run() -> None:
        began = time.monotonic()
        call()
        took.append(time.monotonic() - began)

    thread = threading.Thread(target=run, name=name, daemon=daemon)
    thread.start()
    thread.join(TIMEOUT)
    return took[0]


def test_a_daemon_thread_stands_still_for_a_while(threads: DaemonThreads) -> None:
    assert seconds(threads.hold_daemon) >= SHORT


def test_other_threads_go_on(threads: DaemonThreads) -> None:
    assert seconds(threads.hold_daemon, daemon=False) < SHORT
    assert seconds(threads.hold_daemon, name="kf-callback") < SHORT
    began = time.monotonic()
    threads.hold_daemon()
    assert time.monotonic() - began < SHORT


def test_a_task_of_a_daemon_thread_stands_still(
    threads: DaemonThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_threads, "DELIVERY_HOLD", 0.0)
    assert seconds(lambda: asyncio.run(threads.hold_task())) >= SHORT
    assert seconds(lambda: asyncio.run(threads.hold_task()), daemon=False) < SHORT


def test_nothing_stands_still_in_a_process_that_goes_on(threads: DaemonThreads) -> None:
    threads.forget_end()
    assert seconds(threads.hold_daemon) < SHORT
    assert seconds(lambda: asyncio.run(threads.hold_task())) < SHORT


def test_a_thread_goes_on_if_clients_take_long_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that a client waits for may need a lock that the thread holds."""
    monkeypatch.setattr(daemon_threads, "DELIVERY_HOLD", SHORT)
    threads = DaemonThreads()
    threads.begin_end()
    assert SHORT <= seconds(threads.hold_daemon) < daemon_threads.HOLD
