"""Commits of a group's member, on the embedded broker in virtual time."""

from __future__ import annotations

from typing import Any

from kafka_fast.testing.broker.versions import KAFKA_2_1
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.control.group.world import World


def test_a_commit_whose_answer_is_late_lets_the_control_plane_sleep() -> None:
    """Regression: its deadline had passed, and was due again and again until the answer came."""
    world = World()
    world.cluster.create_topic("t", 1)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    found: list[Any] = []
    group = member.control.group
    assert group is not None
    world.cluster.pause(1)
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(0)}
    group.commits.commit(offsets, found.append, world.now, deadline=world.now + 0.5)
    world.run(2.0)  # says so if there is no end to it
    assert found == []
    assert group.commits.next_deadline() == float("inf")
    world.cluster.resume(1, world.now)
    world.run(1.0)
    assert found == [None]


def test_committed_offsets_of_a_broker_that_cannot_wait_for_transactions() -> None:
    """Regression: with read_committed nothing could be read in groups of brokers before 2.5."""
    world = World(**{"isolation.level": "read_committed"})
    world.cluster.faults.limit_versions(KAFKA_2_1)
    world.cluster.create_topic("t", 1)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    found: list[Any] = []
    group = member.control.group
    assert group is not None
    group.committed.fetch([TopicPartition("t", 0)], found.append, world.now)
    world.run(1.0)
    assert found == [{TopicPartition("t", 0): None}]
