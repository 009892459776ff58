"""When a member may try to join."""

from __future__ import annotations

from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.group.readiness import Readiness


def make() -> Readiness:
    return Readiness(Backoff(100, 1000, lambda: 0.5))


def test_failures_in_a_row_are_put_off_further_and_further() -> None:
    readiness = make()
    assert readiness.is_first_try
    waits = []
    for _ in range(6):
        readiness.put_off(10.0)
        waits.append(round(readiness.try_at - 10.0, 3))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert not readiness.is_first_try
    readiness.succeed()
    readiness.put_off(20.0)
    assert round(readiness.try_at, 3) == 20.1


def test_a_poll_ends_a_pause_once() -> None:
    readiness = make()
    assert not readiness.handle_polled()
    readiness.pause()
    assert readiness.is_paused
    assert readiness.handle_polled()
    assert not readiness.is_paused
    assert not readiness.handle_polled()


def test_who_is_fenced_needs_another_subscription() -> None:
    readiness = make()
    readiness.pause(fenced=True)
    assert not readiness.handle_polled()
    readiness.resume()
    assert not readiness.is_paused
    readiness.pause()
    assert readiness.handle_polled(), "an old fence is no reason any more"
