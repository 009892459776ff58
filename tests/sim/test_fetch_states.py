"""The drawing of a partition's states is what happens: worlds take these ways, and no others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast.control.consumer.partition import AssignedPartition, FetchState
from tests.sim.worlds.groups.group_world import run_group_seed

S = FetchState

STARTED = {S.AWAITS_VALIDATION, S.AWAITS_LEADER, S.AWAITS_LINK, S.FETCHING}
"""Where a position leads to."""

PLACED = {S.AWAITS_OFFSET, S.FAILED, *STARTED}
"""Where a committed offset, or a seek, leads to."""

NEXT: dict[FetchState, set[FetchState]] = {
    S.ASSIGNED: {S.AWAITS_COMMITTED, S.AWAITS_OFFSET, S.FAILED},
    S.AWAITS_COMMITTED: {S.AWAITS_COMMITTED_ANEW, *PLACED},
    S.AWAITS_COMMITTED_ANEW: PLACED,
    S.AWAITS_OFFSET: {S.RECREATED, *PLACED},
    S.AWAITS_VALIDATION: {S.RECREATED, S.TRUNCATED, S.BACKING_OFF, *PLACED},
    S.AWAITS_LEADER: {S.RECREATED, *PLACED},
    S.AWAITS_LINK: {S.RECREATED, *PLACED},
    S.FETCHING: {S.STOPPING, S.STOPPED},
    S.STOPPING: {S.STOPPED},
    S.STOPPED: {S.BACKING_OFF, S.TRUNCATED, S.RECREATED, *PLACED},
    S.BACKING_OFF: {S.TRUNCATED, S.RECREATED, *PLACED},
    S.TRUNCATED: {S.RECREATED, *PLACED},
    S.RECREATED: PLACED,
    S.FAILED: {S.RECREATED, *PLACED},
}
"""Each step of the drawing in `partition`, and of the sentence under it."""

USUAL = {
    (S.ASSIGNED, S.AWAITS_COMMITTED),
    (S.AWAITS_COMMITTED, S.AWAITS_OFFSET),
    (S.AWAITS_COMMITTED, S.AWAITS_VALIDATION),
    (S.AWAITS_OFFSET, S.FETCHING),
    (S.AWAITS_VALIDATION, S.FETCHING),
    (S.AWAITS_LINK, S.FETCHING),
    (S.FETCHING, S.STOPPING),
    (S.FETCHING, S.STOPPED),
    (S.STOPPED, S.BACKING_OFF),
    (S.BACKING_OFF, S.FETCHING),
    (S.RECREATED, S.AWAITS_OFFSET),
}
"""Steps that these worlds must have shown."""

WORLDS = 40


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_partitions_go_the_ways_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    enter = AssignedPartition.enter
    seen: Counter[tuple[FetchState, FetchState]] = Counter()

    def count(self: Any, state: FetchState, now: float, **more: Any) -> None:
        if state is not self.state:
            seen[self.state, state] += 1
        enter(self, state, now, **more)

    monkeypatch.setattr(AssignedPartition, "enter", count)
    for seed in range(WORLDS):
        run_group_seed(seed)
    others = {(before.name, after.name) for before, after in seen if after not in NEXT[before]}
    assert not others
    assert seen.keys() >= USUAL
