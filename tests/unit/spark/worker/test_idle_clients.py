"""Clients without a task: few, found by key, closed in time."""

from __future__ import annotations

import math
import time

from kafka_fast.spark.worker.idle_clients import IdleClients
from tests.unit.spark.source.fakes import Clock

MOST = 3


def test_the_last_one_with_a_key_is_taken() -> None:
    clients = IdleClients[str](MOST, lambda _: None, Clock())
    for key, name in (("a", "first"), ("a", "second"), ("b", "other")):
        assert clients.put(key, name, math.inf) == []
    assert len(clients) == 3
    assert clients.clients() == ["first", "second", "other"]
    assert clients.take_client("a") == "second"
    assert clients.take_client("a") == "first"
    assert clients.take_client("a") is None
    assert len(clients) == 1


def test_what_is_too_much_is_what_was_idle_longest() -> None:
    clients = IdleClients[int](MOST, lambda _: None, Clock())
    surplus = [clients.put("a", number, math.inf) for number in range(MOST + 2)]
    assert surplus == [[], [], [], [0], [1]]
    assert len(clients) == MOST


def test_each_is_closed_when_it_is_due() -> None:
    closed: list[str] = []
    clock = Clock()
    clients = IdleClients[str](MOST, closed.extend, clock)
    for name, timeout in (("late", 20.0), ("soon", 10.0), ("never", math.inf)):
        clients.put(name, name, timeout)
    for now, gone in ((1_009.0, []), (1_010.0, ["soon"]), (1_020.0, ["soon", "late"])):
        clock.now = now
        clients.close_due()
        assert closed == gone
    assert len(clients) == 1


def test_a_timer_closes_without_another_call() -> None:
    closed: list[str] = []
    clients = IdleClients[str](MOST, closed.extend, time.monotonic)
    clients.put("a", "forever", math.inf)
    assert clients.timer is None
    clients.put("a", "short", 0.02)
    assert clients.timer is not None
    assert clients.timer.daemon
    clients.timer.join(timeout=10)
    assert closed == ["short"]


def test_a_forked_child_has_none() -> None:
    closed: list[str] = []
    clients = IdleClients[str](MOST, closed.extend, Clock())
    clients.put("a", "parents", math.inf)
    clients.drop_inherited()
    assert clients.take_client("a") is None
    assert closed == []
