"""The assignors of the brokers: everything is assigned once, evenly, and little moves."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.testing.broker.groups.assignors import (
    Partitions,
    Subscriber,
    Targets,
    assign_range,
    assign_uniform,
)
from tests.work import growth_of

A, B, C = b"a", b"b", b"c"


def members(
    *subscriptions: tuple[str, set[bytes]], owned: Targets | None = None
) -> list[Subscriber]:
    return [
        Subscriber(name, None, frozenset(topics), frozenset((owned or {}).get(name, set())))
        for name, topics in subscriptions
    ]


def shown(targets: Targets) -> dict[str, str]:
    return {
        member: " ".join(f"{topic.decode()}{index}" for topic, index in sorted(target))
        for member, target in targets.items()
    }


def test_range_cuts_each_topic() -> None:
    three = members(("c2", {A, B}), ("c1", {A, B}), ("c3", {B}))
    assert shown(assign_range(three, {A: 3, B: 4, C: 1})) == {
        "c1": "a0 a1 b0 b1",
        "c2": "a2 b2",
        "c3": "b3",
    }


def test_range_begins_with_static_members() -> None:
    static = Subscriber("z", "one", frozenset({A}), frozenset())
    targets = assign_range([*members(("a", {A})), static], {A: 1})
    assert shown(targets) == {"a": "", "z": "a0"}


def test_uniform_balances_and_keeps() -> None:
    topics = {A, B}
    first = assign_uniform(members(("c1", topics)), {A: 3, B: 2})
    assert len(first["c1"]) == 5
    second = assign_uniform(members(("c1", topics), ("c2", topics), owned=first), {A: 3, B: 2})
    assert [len(second[name]) for name in ("c1", "c2")] == [3, 2]
    assert second["c1"] < first["c1"]
    third = assign_uniform(
        members(("c1", topics), ("c2", topics), ("c3", topics), owned=second), {A: 3, B: 2}
    )
    assert sorted(map(len, third.values())) == [1, 2, 2]
    assert all(third[name] <= second[name] for name in ("c1", "c2"))


def test_nobody_and_nothing() -> None:
    for assign in (assign_range, assign_uniform):
        assert assign([], {A: 1}) == {}
        assert assign(members(("c1", set())), {A: 1}) == {"c1": set()}
        assert assign(members(("c1", {A})), {}) == {"c1": set()}


topics_of_members = st.lists(st.sets(st.sampled_from([A, B, C])), min_size=1, max_size=6)
sizes = st.fixed_dictionaries({A: st.integers(0, 6), B: st.integers(0, 6), C: st.integers(0, 6)})


def check(targets: Targets, subscribed: list[Subscriber], partitions: Partitions) -> None:
    """Check that what somebody wants is owned by one who wants it."""
    topics = {topic for member in subscribed for topic in member.topics}
    everything = sorted(
        (t, i) for t, count in partitions.items() if t in topics for i in range(count)
    )
    assert sorted(one for target in targets.values() for one in target) == everything
    for member in subscribed:
        assert {topic for topic, _ in targets[member.member_id]} <= member.topics


@settings(max_examples=150, deadline=None)
@given(topics_of_members, sizes, topics_of_members)
def test_every_partition_has_one_owner(
    before: list[set[bytes]], partitions: Partitions, after: list[set[bytes]]
) -> None:
    old = members(*((f"m{place}", topics) for place, topics in enumerate(before)))
    for assign in (assign_range, assign_uniform):
        targets = assign(old, partitions)
        check(targets, old, partitions)
        new = members(*((f"m{place}", topics) for place, topics in enumerate(after)), owned=targets)
        moved = assign(new, partitions)
        check(moved, new, partitions)
        again = members(*((f"m{place}", topics) for place, topics in enumerate(after)), owned=moved)
        assert assign(again, partitions) == moved


@settings(max_examples=100, deadline=None)
@given(topics_of_members, sizes)
def test_uniform_is_as_even_as_the_subscriptions_let_it_be(
    wanted: list[set[bytes]], partitions: Partitions
) -> None:
    subscribed = members(*((f"m{place}", topics) for place, topics in enumerate(wanted)))
    targets = assign_uniform(subscribed, partitions)
    for giver in subscribed:
        for taker in subscribed:
            gap = len(targets[giver.member_id]) - len(targets[taker.member_id])
            movable = [one for one in targets[giver.member_id] if one[0] in taker.topics]
            assert gap <= 1 or not movable


@pytest.mark.parametrize(
    ("assign", "alike"), [(assign_uniform, True), (assign_uniform, False), (assign_range, False)]
)
def test_twice_the_group_is_not_much_more_than_twice_the_work(
    assign: Callable[..., object], alike: bool
) -> None:
    def assigning(size: int) -> Callable[[], object]:
        chance = random.Random(7)
        topics = [b"t%04d" % number for number in range(size)]
        members = []
        for number in range(size):
            subscribed = frozenset(topics if alike else chance.sample(topics, 4))
            # The first members have all of their topics; the others have just joined.
            had = frozenset((topic, place) for topic in subscribed for place in range(4))
            target = had if number < size // 8 else frozenset()
            members.append(Subscriber(f"m{number:04}", None, subscribed, target))
        return lambda: assign(members, dict.fromkeys(topics, 4))

    assert growth_of(assigning, 40) < 2.5
