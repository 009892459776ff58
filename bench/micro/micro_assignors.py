"""What an assignment costs in a large group, one row for each assignor and kind of group.

    pytest bench/micro/micro_assignors.py

200 members and 5,000 partitions. Members want the same topics, or a random tenth or half of them.
A group is new, or half of its members have joined just now and own nothing yet. The hardest kind is
`nested`: each member wants all topics of the one before and one more, and owners are random.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from kafka_fast.control.group.assignors import GroupMember, GroupTopics, PartitionReplicas
from kafka_fast.control.group.assignors.builtin import BUILT_IN
from kafka_fast.types import TopicPartition

MEMBERS = 200
PARTITIONS = 5000
LIMIT = 2.0
"""Seconds that an assignment may take. On the machine of RESULTS.md the worst row takes 0.25."""


class Shape(NamedTuple):
    """How many topics there are, and which of them each member wants."""

    topics: int
    wanted: Callable[[list[str], int, random.Random], list[str]]


def share(part: float) -> Callable[[list[str], int, random.Random], list[str]]:
    """Let each member want a random part of the topics."""
    return lambda topics, member, chance: chance.sample(topics, int(part * len(topics)))


SHAPES: Mapping[str, Shape] = {
    "same topics": Shape(50, lambda topics, member, chance: topics),
    "a tenth of 50": Shape(50, share(0.1)),
    "half of 50": Shape(50, share(0.5)),
    "a tenth of 500": Shape(500, share(0.1)),
    "half of 500": Shape(500, share(0.5)),
    "a tenth of 5000": Shape(5000, share(0.1)),
    "half of 5000": Shape(5000, share(0.5)),
    "nested": Shape(200, lambda topics, member, chance: topics[: member + 1]),
}
HISTORIES = ("new", "half have joined", "random owners")


def make_group(shape: Shape, history: str) -> tuple[GroupTopics, list[GroupMember]]:
    """Return a group of this shape, and what its members own."""
    chance = random.Random(7)
    names = [f"topic-{number:04}" for number in range(shape.topics)]
    topics = {
        name: [PartitionReplicas(number) for number in range(PARTITIONS // shape.topics)]
        for name in names
    }
    subscriptions = {f"{n:03}": frozenset(shape.wanted(names, n, chance)) for n in range(MEMBERS)}
    owned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    if history != "new":
        owners = (
            list(subscriptions)[: MEMBERS // 2]
            if history == "half have joined"
            else list(subscriptions)
        )
        for name, partitions in topics.items():
            takers = [member for member in owners if name in subscriptions[member]]
            for partition in partitions if takers else ():
                owned[chance.choice(takers)].append(TopicPartition(name, partition.partition))
    members = [
        GroupMember(member, subscriptions[member], owned=frozenset(owned[member]), generation=1)
        for member in subscriptions
    ]
    return topics, members


@pytest.mark.benchmark(timer=time.process_time)  # of this process: others may use the machine
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BUILT_IN)
def test_report(benchmark: Any, name: str, shape: str, history: str) -> None:
    """All assignors, for pytest-benchmark's table; none takes longer than LIMIT."""
    topics, members = make_group(SHAPES[shape], history)
    assignor = BUILT_IN[name]()
    assigned = benchmark.pedantic(assignor.assign, args=(topics, members), rounds=3)
    assert sum(map(len, assigned.values())) == PARTITIONS
    assert benchmark.stats.stats.min < LIMIT
