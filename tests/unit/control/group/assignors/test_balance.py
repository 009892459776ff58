"""The sticky assignors against an oracle that tries everything, and how their work grows.

The oracle deals one partition after the other, in every way that the subscriptions allow. For each
combination of loads it keeps the fewest moves. So it knows the most even loads that there are, and
the fewest moves that lead to them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.control.group.assignors import (
    Assignor,
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)
from kafka_fast.control.group.assignors.builtin import BUILT_IN
from kafka_fast.control.group.assignors.sticky import balance
from kafka_fast.types import TopicPartition
from tests.work import growth_of


class Problem(NamedTuple):
    """Who wants what, and who had what."""

    counts: Mapping[str, int]
    subscriptions: Mapping[str, frozenset[str]]
    owners: Mapping[TopicPartition, str]

    @property
    def topics(self) -> GroupTopics:
        """The topics as assignors get them."""
        return {
            topic: [PartitionReplicas(number) for number in range(count)]
            for topic, count in self.counts.items()
        }

    @property
    def members(self) -> list[GroupMember]:
        """The members as assignors get them, with what they own."""
        return [
            GroupMember(
                member,
                topics,
                owned=frozenset(
                    partition for partition, owner in self.owners.items() if owner == member
                ),
                generation=1,
            )
            for member, topics in self.subscriptions.items()
        ]

    def partitions(self) -> Iterator[TopicPartition]:
        """Yield the partitions that anybody wants."""
        for topic, count in self.counts.items():
            if any(topic in topics for topics in self.subscriptions.values()):
                for number in range(count):
                    yield TopicPartition(topic, number)

    def solve(self) -> dict[str, list[TopicPartition]]:
        """Return what the sticky assignors make of it."""
        claims = {member.member_id: (1, member.owned) for member in self.members}
        return balance(self.topics, self.members, claims)


class Quality(NamedTuple):
    """What counts, the more important thing first. Less is better."""

    spread: int  # the sum of the squares of the loads: least when they are as even as can be
    moves: int  # owned partitions that went to somebody else


def quality_of(problem: Problem, assignment: Mapping[str, list[TopicPartition]]) -> Quality:
    spread = sum(len(partitions) ** 2 for partitions in assignment.values())
    moved = [
        partition
        for member, partitions in assignment.items()
        for partition in partitions
        if problem.owners.get(partition, member) != member
    ]
    return Quality(spread, len(moved))


def best_of(problem: Problem) -> Quality:
    """Return the best quality that there is: the oracle."""
    members = list(problem.subscriptions)
    fewest: dict[tuple[int, ...], int] = {tuple(0 for _ in members): 0}  # moves by loads
    for partition in problem.partitions():
        before, fewest = fewest, {}
        for (loads, moves), (place, member) in product(before.items(), enumerate(members)):
            if partition.topic in problem.subscriptions[member]:
                after = (*loads[:place], loads[place] + 1, *loads[place + 1 :])
                cost = moves + (problem.owners.get(partition, member) != member)
                fewest[after] = min(cost, fewest.get(after, cost))
    return min(Quality(sum(load**2 for load in loads), moves) for loads, moves in fewest.items())


@st.composite
def problems(draw: Callable[..., object]) -> Problem:
    """Draw few members and partitions; owners are drawn among those who want the topic."""
    counts = draw(st.dictionaries(st.sampled_from("ABCDE"), st.integers(1, 4), min_size=1))
    assert isinstance(counts, dict)
    topics = st.frozensets(st.sampled_from(sorted(counts)), min_size=1)
    names = st.sampled_from(["c1", "c2", "c3", "c4"])
    subscriptions = draw(st.dictionaries(names, topics, min_size=1))
    assert isinstance(subscriptions, dict)
    problem = Problem(counts, subscriptions, {})
    owners: dict[TopicPartition, str] = {}
    for partition in problem.partitions():
        takers = sorted(name for name in subscriptions if partition.topic in subscriptions[name])
        owner = draw(st.sampled_from([None, takers[0], *takers]))  # the first one often has more
        if isinstance(owner, str):
            owners[partition] = owner
    return problem._replace(owners=owners)


@given(problems())
@settings(deadline=None, max_examples=300)
def test_no_assignment_is_more_even_or_moves_less(problem: Problem) -> None:
    assignment = problem.solve()
    dealt = sorted(partition for partitions in assignment.values() for partition in partitions)
    assert dealt == sorted(problem.partitions())
    for member, partitions in assignment.items():
        assert {partition.topic for partition in partitions} <= problem.subscriptions[member]
    assert quality_of(problem, assignment) == best_of(problem)


def test_a_path_over_others_is_found_where_no_member_can_give_directly() -> None:
    """c1 has too much of A, which only c2 wants as well; c2 can make room by giving B to c3."""
    subscriptions = {"c1": frozenset("A"), "c2": frozenset("AB"), "c3": frozenset("B")}
    owners = {TopicPartition("A", n): "c1" for n in range(3)}
    owners |= {TopicPartition("B", n): "c2" for n in range(2)}
    problem = Problem({"A": 3, "B": 2}, subscriptions, owners)
    assignment = problem.solve()
    assert {name: len(partitions) for name, partitions in assignment.items()} == {
        "c1": 2,
        "c2": 2,
        "c3": 1,
    }
    assert quality_of(problem, assignment) == best_of(problem) == Quality(9, 2)


def test_topics_are_spread_over_all_members() -> None:
    """Like Java's, a first assignment deals each topic's partitions out in turn."""
    subscriptions = {name: frozenset("AB") for name in ("c1", "c2")}
    assignment = Problem({"A": 2, "B": 2}, subscriptions, {}).solve()
    assert {name: [str(partition) for partition in some] for name, some in assignment.items()} == {
        "c1": ["A-0", "B-0"],
        "c2": ["A-1", "B-1"],
    }


# ---- how the work grows ----


def group_of(size: int, *, seed: int = 7) -> Problem:
    """Return a group of `size` members with different subscriptions, half of which are new."""
    chance = random.Random(seed)
    topics = [f"t{number:04}" for number in range(2 * size)]
    subscriptions = {f"c{n:04}": frozenset(chance.sample(topics, 6)) for n in range(size)}
    owners = {}
    for topic, number in product(topics, range(3)):
        old = [
            name
            for name in subscriptions
            if topic in subscriptions[name] and name < f"c{size // 2:04}"
        ]
        if old:
            owners[TopicPartition(topic, number)] = chance.choice(old)
    return Problem(dict.fromkeys(topics, 3), subscriptions, owners)


def row_of(size: int) -> Problem:
    """Return members that want one topic in common with each neighbour; the first ones have it all.

    What the last member gets passes through the hands of all others.
    """
    subscriptions = {f"c{n:04}": frozenset({f"t{n:04}", f"t{n + 1:04}"}) for n in range(size)}
    owners = {TopicPartition(f"t{n:04}", p): f"c{n:04}" for n in range(size) for p in range(4)}
    return Problem({f"t{n:04}": 4 for n in range(size + 1)}, subscriptions, owners)


def apart(size: int) -> Problem:
    """Return members that want one topic each, and nothing of others."""
    subscriptions = {f"c{n:04}": frozenset({f"t{n:04}"}) for n in range(size)}
    return Problem({f"t{n:04}": n % 7 + 1 for n in range(size)}, subscriptions, {})


@pytest.mark.parametrize("make", [group_of, row_of, apart])
@pytest.mark.parametrize("name", BUILT_IN)
def test_twice_the_group_is_not_much_more_than_twice_the_work(
    name: str, make: Callable[[int], Problem]
) -> None:
    def assigning(size: int) -> Callable[[], object]:
        problem = make(size)
        topics, members, assignor = problem.topics, problem.members, make_assignor(name)
        return lambda: assignor.assign(topics, members)

    assert growth_of(assigning, 32) < 3


def make_assignor(name: str) -> Assignor:
    return BUILT_IN[name]()


def test_racks_do_not_make_the_work_of_range_grow_faster() -> None:
    racks = "xyz"

    def assigning(size: int) -> Callable[[], object]:
        members = [
            GroupMember(f"c{number:04}", frozenset("t"), rack_id=racks[number % 3])
            for number in range(size)
        ]
        topics = {"t": [PartitionReplicas(n, frozenset(racks[n % 2])) for n in range(10 * size)]}
        assignor = make_assignor("range")
        return lambda: assignor.assign(topics, members)

    assert growth_of(assigning, 32) < 2.5
