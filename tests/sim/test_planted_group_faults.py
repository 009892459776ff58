"""The checker of groups is checked: bugs planted into the shipped code must be found within seeds.

Each of them is a mistake that a client for Kafka groups has been known to make.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast.consumer.membership import Membership
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.group.classic import member as classic
from kafka_fast.control.group.classic.member import ClassicMember
from kafka_fast.net.intake import Intake
from kafka_fast.testing.group_checker import Wrong
from kafka_fast.testing.simulation.group_world import run_group_seed
from kafka_fast.testing.simulation.virtual_consumer import VirtualConsumer

WORLDS = 60


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def show(*kinds: Wrong) -> None:
    """Run worlds until one has a fault of these kinds."""
    for seed in range(WORLDS):
        if any(fault.kind in kinds for fault in run_group_seed(seed).faults):
            return
    raise AssertionError(f"{WORLDS} worlds have not shown it")


def test_committing_what_a_poll_is_about_to_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = VirtualConsumer._poll

    def commit_after(self: Any, deadline: float, most: int) -> Any:
        records = poll(self, deadline, most)
        self._membership.commit_in_background()
        return records

    monkeypatch.setattr(VirtualConsumer, "_poll", commit_after)
    show(Wrong.COMMIT_AHEAD)


def test_keeping_partitions_over_an_eager_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(self: Any) -> None:
        self._state = classic.State.PREPARING

    monkeypatch.setattr(ClassicMember, "_prepare", keep)
    show(Wrong.DOUBLE_OWNER)


def test_handing_over_what_was_fetched_before_a_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_fast.net.intake.seeks_of", lambda generation: 0)
    monkeypatch.setattr(Intake, "move", lambda self, partition, offset: 0)
    show(Wrong.FALSE_START, Wrong.REPEATED, Wrong.STUCK)


def test_beginning_where_the_log_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    set_committed = Positions.set_committed
    monkeypatch.setattr(
        Positions,
        "set_committed",
        lambda self, partition, committed, now: set_committed(self, partition, None, now),
    )
    show(Wrong.FALSE_START)


def test_not_committing_when_a_consumer_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Membership, "_commit_before_revocation", lambda self, owned, deadline: None)
    show(Wrong.UNCOMMITTED)


def test_never_telling_that_a_partition_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassicMember, "handle_revoked", lambda self, partitions, now: None)
    show(Wrong.STUCK)
