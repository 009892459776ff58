"""The threads of a client on the operating system: when they have ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType

import pytest

from kafka_fast import Consumer
from kafka_fast.net.threaded_host import ThreadedHost
from tests.waiting import TIMEOUT, eventually


def press_ctrl_c_in(function: Callable[..., object]) -> None:
    """Interrupt the main thread as soon as this function of its waits for a thread."""
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        eventually(lambda: is_waiting_in(sys._current_frames()[main], function))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()


def is_waiting_in(frame: FrameType, function: Callable[..., object]) -> bool:
    callers = [outer.f_code for outer, _ in traceback.walk_stack(frame)]
    return callers[0].co_filename == threading.__file__ and function.__code__ in callers


def test_a_thread_lives_on_when_the_wait_for_its_end_is_interrupted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: before 3.13 Python takes the thread for ended; its selector was closed."""
    consumer = Consumer(bootstrap_servers="127.0.0.1:1")  # kept: its collection closes the core
    core = consumer._core
    is_turning, go_on = threading.Event(), threading.Event()

    def take_long(now: float) -> None:
        is_turning.set()
        go_on.wait(TIMEOUT)

    core.call(take_long)
    is_turning.wait(TIMEOUT)
    press_ctrl_c_in(ThreadedHost.stop)
    with pytest.raises(KeyboardInterrupt):
        core._host.stop()
    assert not core._host.wait_ended(0)
    assert not core._host.stop(patience=0.01)
    go_on.set()
    assert core._host.stop()
    assert not [record for record in caplog.records if "control thread" in record.message]
    core.close()
