"""The requester under faults: every seed, and every planted fault is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.requests import requester as module
from kafka_fast.control.requests.open_call import Item, OpenCall
from kafka_fast.control.requests.requester import Requester
from kafka_fast.control.requests.router import Router
from kafka_fast.control.requests.targets import OneNode
from tests.sim.seeds import check, check_processes
from tests.sim.worlds.requests import request_world
from tests.sim.worlds.requests.request_calls import CreateTopics

PLANTED_SEEDS = range(400)


def test_every_call_ends_once_in_time_and_at_the_right_node(seeds: Sequence[int]) -> None:
    """Whatever happens to brokers and connections."""
    check(request_world.judge, seeds)


def test_a_seed_decides_everything() -> None:
    """No decision hangs on the order of a set."""
    check_processes("tests.sim.worlds.requests.request_world.run", range(3))


def test_the_worlds_are_not_idle() -> None:
    """There are answers, refusals and retries to judge."""
    counts: Counter[str] = Counter()
    for seed in range(5):
        counts += request_world.run(seed).counts
    assert counts["done"] > 300
    assert counts["failed:"] > 20
    assert counts["sent"] > counts["done"]


def found(text: str) -> None:
    """Fail unless the checker finds this fault in one of some seeds."""
    faults = (fault for seed in PLANTED_SEEDS for fault in request_world.run(seed).faults)
    assert any(text in fault for fault in faults)


def test_an_answer_that_nobody_waits_for_any_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_items(call: OpenCall[Any, Any], sent: Any) -> list[Item[Any]]:
        for item, _ in sent.items:
            call.items.setdefault(item.key, item)
        return [item for item, _ in sent.items]

    monkeypatch.setattr(module, "_still_open", all_items)
    found("given up")


def test_a_call_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Item, "end_round", lambda self: None)
    found("never ended")


def test_a_deadline_that_passes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requester, "_expire", lambda self, call, now: None)
    found("deadline")


def test_an_answer_of_another_node_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OneNode, "node", lambda self, cluster, key: 1)
    found("answered by node 1")


def test_an_order_that_is_repeated_blindly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateTopics, "is_repeatable", True)
    found("although it may have been done")


def test_retries_without_a_backoff_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Requester.__init__

    def begin_without(self: Requester, *args: Any) -> None:
        begin(self, *args)
        self._backoff = Backoff(0, 0, lambda: 0.5)

    monkeypatch.setattr(Requester, "__init__", begin_without)
    found("sent again after")


def test_a_pause_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Router, "handle_throttle", lambda self, link, throttle_ms, now: None)
    found("asked for a pause")


def test_a_thread_that_spins_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requester, "next_deadline", lambda self: 0.0)
    found("busy")
