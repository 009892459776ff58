"""KIP-848 groups in virtual time: what waits for a clock, and what a new coordinator knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kafka_fast.testing.broker.groups.settings import GroupSettings
from tests.unit.testing.broker.memory import Client, World

UNKNOWN = errors.UnknownMemberId.code


def world(nodes: int = 1, **groups: int) -> World:
    made = World(nodes=nodes, replication_factor=nodes, groups=GroupSettings(**groups))
    client = made.connect()
    for _ in range(2):
        client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    made.cluster.create_topic("t", 4)
    return made


class Member:
    """One member that does as it is told, unless the test says otherwise."""

    def __init__(self, here: World, name: str, **first: object) -> None:
        self.here = here
        self.member_id = name
        self.first = first
        self.epoch = 0
        self.owned: set[int] = set()
        self.client: Client
        self.reconnect()

    def reconnect(self) -> None:
        self.client = self.here.connect(self.here.cluster.coordinator("g"))

    def ask(self, **changes: object) -> ConsumerGroupHeartbeatResponse:
        topic = self.here.cluster.state.topics.get("t")
        owned = []
        if topic is not None and self.owned:
            owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=topic.topic_id, partitions=sorted(self.owned)
                )
            ]
        values: dict[str, object] = {
            "group_id": "g",
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "topic_partitions": owned,
        }
        if self.epoch == 0:
            values.update(rebalance_timeout_ms=10_000, subscribed_topic_names=["t"])
            values.update(self.first)
        values.update(changes)
        answer: ConsumerGroupHeartbeatResponse = self.client.ask(
            ConsumerGroupHeartbeatRequest(**values), 1
        )
        return answer

    def beat(self, **changes: object) -> int:
        answer = self.ask(**changes)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                topics = answer.assignment.topic_partitions
                self.owned = {index for topic in topics for index in topic.partitions}
        return answer.error_code


def settle(*members: Member) -> None:
    for _ in range(6):
        for member in members:
            assert member.beat() == 0


def test_a_new_target_waits_for_the_interval() -> None:
    here = world()
    first, second = Member(here, "a"), Member(here, "b")
    first.beat()
    second.beat()
    settle(first, second)
    assert (first.epoch, second.epoch, second.owned) == (2, 2, set())
    here.run_until(0.999)
    settle(first, second)
    assert second.owned == set()
    here.run_until(1.0)
    settle(first, second)
    assert (first.epoch, second.epoch) == (3, 3)
    assert (first.owned, second.owned) == ({0, 1}, {2, 3})


def test_sessions_end() -> None:
    here = world()
    first, second = Member(here, "a"), Member(here, "b")
    first.beat()
    second.beat()
    for second_of_time in range(5, 50, 5):
        here.run_until(float(second_of_time))
        assert first.beat() == 0
    assert second.beat() == UNKNOWN
    settle(first)
    assert first.owned == {0, 1, 2, 3}


def test_revocations_have_a_time() -> None:
    here = world(consumer_assignment_interval_ms=0)
    first, second = Member(here, "a"), Member(here, "b")
    first.beat()
    second.beat()
    kept = set(first.owned)
    assert first.ask().assignment is not None
    here.run_until(9.9)
    assert first.beat() == 0
    assert first.owned == kept
    here.run_until(10.0)
    assert first.beat() == UNKNOWN
    settle(second)
    assert second.owned == {0, 1, 2, 3}


def test_a_static_member_that_is_away_too_long_is_removed() -> None:
    here = world(consumer_assignment_interval_ms=0)
    static, other = Member(here, "a", instance_id="one"), Member(here, "b")
    static.beat()
    other.beat()
    settle(static, other)
    assert static.ask(member_epoch=-2, instance_id="one").error_code == 0
    for second in range(5, 45, 5):
        here.run_until(float(second))
        assert other.beat() == 0
    assert len(other.owned) == 2
    here.run_until(45.0)
    settle(other)
    assert other.owned == {0, 1, 2, 3}


def test_a_group_moves_as_it_is() -> None:
    here = world(nodes=2, consumer_assignment_interval_ms=0)
    first, second = Member(here, "a"), Member(here, "b")
    first.beat()
    second.beat()
    settle(first, second)
    before = [(member.epoch, member.owned) for member in (first, second)]
    here.run_until(40.0)
    here.cluster.move_coordinator("g", 3 - here.cluster.coordinator("g"))
    assert first.beat() == errors.NotCoordinator.code
    for member in (first, second):
        member.reconnect()
    here.run_until(80.0)
    settle(first, second)
    assert [(member.epoch, member.owned) for member in (first, second)] == before


def test_a_killed_coordinator_loses_no_member() -> None:
    here = world(nodes=2)
    member = Member(here, "a")
    member.beat()
    here.cluster.kill(here.cluster.coordinator("g"))
    here.settle()
    member.reconnect()
    assert member.beat() == 0
    here.run_until(here.now + 45.0)
    assert member.beat() == UNKNOWN


def test_a_topic_that_was_made_anew_is_assigned_anew() -> None:
    here = world(consumer_assignment_interval_ms=0)
    member = Member(here, "a")
    member.beat()
    here.cluster.delete_topic("t")
    settle(member)
    assert (member.epoch, member.owned) == (3, set())
    here.cluster.create_topic("t", 2)
    settle(member)
    assert (member.epoch, member.owned) == (4, {0, 1})


def test_partitions_that_are_added_are_assigned() -> None:
    here = world(consumer_assignment_interval_ms=0)
    member = Member(here, "a")
    member.beat()
    here.cluster.add_partitions("t", 6)
    settle(member)
    assert (member.epoch, member.owned) == (3, {0, 1, 2, 3, 4, 5})


def test_a_regex_is_looked_up_after_the_answer() -> None:
    here = world(consumer_assignment_interval_ms=0)
    member = Member(here, "a", subscribed_topic_names=None, subscribed_topic_regex="t|u")
    member.beat()
    assert (member.epoch, member.owned) == (1, set())
    member.beat()
    assert (member.epoch, member.owned) == (2, {0, 1, 2, 3})
    here.cluster.create_topic("u", 1)
    member.beat()
    assert member.epoch == 2
    here.run_until(10.1)
    member.beat()
    member.beat()
    assert member.epoch == 3


def test_a_refused_member_leaves_no_group_behind() -> None:
    here = world()
    member = Member(here, "a", subscribed_topic_regex="(")
    assert member.beat() == errors.InvalidRegularExpression.code
    assert "g" not in here.cluster.state.groups
    assert member.ask(member_epoch=1).error_code == errors.GroupIdNotFound.code


def test_a_group_can_be_full() -> None:
    here = world(max_size=1)
    first, second = Member(here, "a"), Member(here, "b")
    assert first.beat() == 0
    assert second.beat() == errors.GroupMaxSizeReached.code
    assert first.beat() == 0


def test_the_same_inputs_give_the_same_groups() -> None:
    def run() -> list[object]:
        here = world(nodes=3)
        members = [Member(here, name) for name in "abcde"]
        log: list[object] = []
        for second in range(12):
            here.run_until(float(second))
            for member in members[: second + 1]:
                member.beat()
                log.append((member.member_id, member.epoch, tuple(sorted(member.owned))))
        return log

    assert run() == run()


PRINT_DIGEST = """
import hashlib
from tests.unit.testing.broker.groups.test_consumer import Member, settle, world
here = world(consumer_assignment_interval_ms=0)
members = [Member(here, name) for name in "abcde"]
for member in members:
    member.beat()
settle(*members)
log = [(member.member_id, member.epoch, sorted(member.owned)) for member in members]
print(hashlib.sha256(repr(log).encode()).hexdigest())
"""


def test_the_same_groups_in_another_process() -> None:
    """String hashes differ from process to process: no decision may hang on the order of a set."""
    digests = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())}
        run = subprocess.run(
            [sys.executable, "-c", PRINT_DIGEST],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64
