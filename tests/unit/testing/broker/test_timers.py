"""Timers: order, putting off, calling off."""

from __future__ import annotations

from kafka_fast.testing.broker.timers import Timers


def test_actions_run_in_the_order_of_their_times() -> None:
    timers, ran = Timers(), []
    for name, due in (("b", 2.0), ("a", 1.0), ("c", 2.0), ("later", 3.0)):
        timers.schedule(name, due, lambda now, name=name: ran.append((name, now)))  # type: ignore[misc]
    assert timers.next_due() == 1.0
    while timers.run_next(2.5):
        pass
    assert ran == [("a", 2.5), ("b", 2.5), ("c", 2.5)]
    assert timers.next_due() == 3.0


def test_a_key_is_scheduled_once() -> None:
    timers, ran = Timers(), []
    timers.schedule("key", 1.0, lambda now: ran.append("first"))
    timers.schedule("key", 5.0, lambda now: ran.append("second"))
    assert timers.next_due() == 5.0
    assert not timers.run_next(4.0)
    assert timers.run_next(5.0)
    assert ran == ["second"]
    assert timers.next_due() is None


def test_calling_off() -> None:
    timers = Timers()
    for key in (("g", 1), ("h", 1), 7):
        timers.schedule(key, 1.0, lambda now: None)
    timers.cancel("unknown")
    timers.cancel_where(lambda key: isinstance(key, tuple) and key[0] == "g")
    timers.cancel(7)
    assert timers.run_next(1.0)
    assert not timers.run_next(1.0)
    timers.schedule("key", 1.0, lambda now: None)
    timers.cancel_all()
    assert timers.next_due() is None


def test_an_action_may_schedule_itself_again() -> None:
    timers, ran = Timers(), []

    def tick(now: float) -> None:
        ran.append(now)
        timers.schedule("tick", now + 1.0, tick)

    timers.schedule("tick", 1.0, tick)
    for now in (1.0, 1.5, 2.0, 3.0):
        timers.run_next(now)
    assert ran == [1.0, 2.0, 3.0]
