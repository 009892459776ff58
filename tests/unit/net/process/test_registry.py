"""What is known of objects that others keep, while other threads make and drop some."""

from __future__ import annotations

import gc

from kafka_fast.net.process.registry import Registry


class Thing:
    """Anything that can be referenced weakly."""


def test_it_keeps_nothing() -> None:
    registry: Registry[Thing] = Registry()
    kept, dropped = Thing(), Thing()
    registry.add(kept)
    registry.add(dropped)
    assert set(registry) == {kept, dropped}
    del dropped
    gc.collect()
    assert list(registry) == [kept]
    assert len(registry) == 1
    registry.discard(kept)
    registry.discard(kept)
    assert list(registry) == []


def test_a_cleared_one_knows_what_is_added_later() -> None:
    registry: Registry[Thing] = Registry()
    first = Thing()
    registry.add(first)
    registry.clear()
    registry.add(first)
    assert list(registry) == [first]


def test_others_come_and_go_while_one_thread_goes_through_it() -> None:
    """Regression: a WeakSet raised RuntimeError, and the end of the process ended no client."""
    registry: Registry[Thing] = Registry()
    first, second, late = Thing(), Thing(), Thing()
    registry.add(first)
    registry.add(second)
    steps = iter(registry)
    seen = [next(steps)]
    registry.add(late)
    registry.discard(second)
    assert [*seen, *steps] == [first, second]
    assert set(registry) == {first, late}
