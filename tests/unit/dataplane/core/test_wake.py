"""What users' threads of a client sleep on."""

from __future__ import annotations

import select
import signal
import threading

import pytest

from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.net._pump import LoopEvent, Machine
from tests.waiting import TIMEOUT

FOR_EVER = 1e9


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def wake(machine: Machine) -> Wake:
    return Wake(DataPlane(machine, max_frame=1 << 20, request_timeout=1.0))


def test_a_wait_ends_in_time(wake: Wake) -> None:
    wake.wait(wake.count, 0.0)
    wake.wait(wake.count, -1.0)
    wake.wait(wake.count, 0.06)


def test_what_was_raised_after_the_count_was_read_is_not_waited_for(wake: Wake) -> None:
    seen = wake.count
    wake.raise_()
    wake.wait(seen, FOR_EVER)
    assert wake.count == seen + 1


def test_all_who_wait_are_woken(wake: Wake) -> None:
    """Outside of the main thread nobody wakes up for signals: a lost wake would hang here."""
    seen = wake.count
    threads = [threading.Thread(target=wake.wait, args=(seen, FOR_EVER, False)) for _ in range(4)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    wake.raise_()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()


def test_ping_pong_loses_no_wake(wake: Wake) -> None:
    rounds, told = 2_000, [0, 0]

    def play(me: int) -> None:
        for number in range(1, rounds + 1):
            told[me] = number
            wake.raise_()
            while True:
                seen = wake.count
                if told[1 - me] >= number:
                    break
                wake.wait(seen, FOR_EVER, False)

    threads = [threading.Thread(target=play, args=(me,), daemon=True) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive(), told


def test_a_signal_ends_a_wait(wake: Wake) -> None:
    class CaughtError(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise CaughtError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        with pytest.raises(CaughtError):
            wake.wait(wake.count, FOR_EVER)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_event_loops_are_woken_while_they_watch(wake: Wake, machine: Machine) -> None:
    event = LoopEvent(machine)
    wake.raise_()
    assert not is_raised(event)
    wake.watch(True)
    wake.raise_()
    assert is_raised(event)
    wake.watch(False)
    wake.raise_()
    assert not is_raised(event)


def is_raised(event: LoopEvent) -> bool:
    """Return whether the event's descriptor is readable; clear it."""
    was_raised = bool(select.select([event.fd], [], [], 0)[0])
    if was_raised:
        event.clear()
    return was_raised
