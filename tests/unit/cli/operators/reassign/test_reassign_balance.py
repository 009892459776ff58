"""How `kafka-fast reassign plan` spreads replicas over brokers and racks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast import TopicPartition
from kafka_fast.cli.operators.reassign.balance import balanced
from kafka_fast.errors import UsageError


def counts(number: int, replicas: int) -> dict[TopicPartition, int]:
    return {TopicPartition("orders", partition): replicas for partition in range(number)}


def test_racks_alternate() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    plan = balanced(counts(4, 2), racks)
    assert list(plan.values()) == [(1, 3), (3, 2), (2, 4), (4, 1)]


def test_without_racks() -> None:
    plan = balanced(counts(6, 2), {1: None, 2: None, 3: None})
    assert Counter(brokers[0] for brokers in plan.values()) == {1: 2, 2: 2, 3: 2}
    assert Counter(broker for brokers in plan.values() for broker in brokers) == {1: 4, 2: 4, 3: 4}
    # The partitions that a broker leads have their followers on different brokers.
    assert len(set(plan.values())) == 6


def test_one_broker_without_a_rack() -> None:
    """Racks that are half known would crowd the replicas where they are known."""
    racks = {1: "a", 2: "a", 3: None}
    assert balanced(counts(6, 2), racks) == balanced(counts(6, 2), dict.fromkeys(racks))


def test_topics_begin_at_different_brokers() -> None:
    partitions = {TopicPartition(name, 0): 1 for name in ("a", "b", "c")}
    assert list(balanced(partitions, dict.fromkeys([1, 2, 3])).values()) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("replicas", [0, 4])
def test_too_many_replicas(replicas: int) -> None:
    with pytest.raises(UsageError, match="there are 3 brokers"):
        balanced(counts(1, replicas), dict.fromkeys([1, 2, 3]))


@given(
    racks=st.dictionaries(
        st.integers(0, 50), st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9
    ),
    number=st.integers(0, 40),
    data=st.data(),
)
def test_every_plan(racks: dict[int, str | None], number: int, data: st.DataObject) -> None:
    replicas = data.draw(st.integers(1, len(racks)))
    plan = balanced(counts(number, replicas), racks)
    leaders = Counter(brokers[0] for brokers in plan.values())
    for brokers in plan.values():
        assert len(set(brokers)) == len(brokers) == replicas
        assert set(brokers) <= set(racks)
        if None not in racks.values():
            expected = min(replicas, len(set(racks.values())))
            assert len({racks[broker] for broker in brokers}) == expected
    if plan:
        assert max(leaders.values()) - min(leaders[broker] for broker in racks) <= 1
