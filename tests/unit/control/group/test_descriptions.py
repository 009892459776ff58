"""What outsiders are told of a group: whom it is asked of, how often, and what is made of it."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.control.group.descriptions import GroupDescription
from kafka_fast.control.requests.targets import CoordinatorKind
from kafka_fast.errors import KafkaError, MalformedError
from kafka_fast.testing.broker.versions import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    KAFKA_2_1,
    KAFKA_3_9,
)
from tests.unit.control.group.world import Member, World

PROTOCOLS = ["classic", "consumer"]


class Asked:
    """Questions about group g, by the control plane of one consumer."""

    def __init__(self, world: World, member: Member) -> None:
        self.world = world
        self.member = member
        self.group: Any = member.control.group
        self.answers: list[GroupDescription | KafkaError] = []

    def ask(self) -> Any:
        return self.group.descriptions.describe_group(self.answers.append)

    def answer(self) -> GroupDescription | KafkaError:
        self.ask()
        self.world.run_until(lambda: bool(self.answers))
        return self.answers.pop()


def joined(protocol: str, topics: str | list[str], **options: Any) -> tuple[World, Asked]:
    """Return a world with a group of one member, and somebody who asks about it."""
    world = World(nodes=2, **options)
    for topic in ("t", "u"):
        world.cluster.create_topic(topic, 2)
    member = world.join("m", topics, group_protocol=protocol)
    world.run_until(lambda: bool(member.owned))
    return world, Asked(world, member)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_names(protocol: str) -> None:
    _, asked = joined(protocol, ["t", "not-there"])
    assert asked.answer() == GroupDescription("Stable", frozenset({"t", "not-there"}), 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern(protocol: str) -> None:
    _, asked = joined(protocol, "[tu]")
    assert asked.answer() == GroupDescription("Stable", frozenset("tu"), 1)


@pytest.mark.parametrize("versions", [KAFKA_2_1, KAFKA_3_9])
def test_brokers_before_kip_848(versions: Any) -> None:
    world = World(nodes=2)
    world.cluster.faults.limit_versions(versions)
    world.cluster.create_topic("t", 2)
    member = world.join("m", ["t"])
    world.run_until(lambda: bool(member.owned))
    assert Asked(world, member).answer() == GroupDescription("Stable", frozenset("t"), 1)


def test_a_broker_whose_new_groups_are_switched_off() -> None:
    """As Kafka 3.9 is by default: it offers ConsumerGroupDescribe all the same."""
    world, asked = joined("classic", ["t"])
    world.cluster.faults.error(CONSUMER_GROUP_DESCRIBE, errors.UnsupportedVersion)
    assert asked.answer() == GroupDescription("Stable", frozenset("t"), 1)


@pytest.mark.parametrize("versions", [None, KAFKA_2_1])
def test_a_group_that_nobody_knows(versions: Any) -> None:
    """Newer brokers answer with an error, older ones with a state."""
    world = World(nodes=2)
    if versions is not None:
        world.cluster.faults.limit_versions(versions)
    description = Asked(world, world.join("outsider", None)).answer()
    assert description == GroupDescription("Dead")
    assert isinstance(description, GroupDescription)
    assert not description.exists


def test_a_group_that_only_commits() -> None:
    world, _ = joined("classic", ["t"])
    world.leave(world.members[0])
    outsider = Asked(world, world.join("outsider", None))
    assert outsider.answer() == GroupDescription("Empty")


@pytest.mark.parametrize("api", [CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS])
@pytest.mark.parametrize("error", [errors.NotCoordinator, errors.CoordinatorLoadInProgress])
def test_what_passes_is_tried_again(api: int, error: type[errors.BrokerError]) -> None:
    world, asked = joined("classic", ["t"])
    rule = world.cluster.faults.error(api, error, count=3)
    assert asked.answer() == GroupDescription("Stable", frozenset("t"), 1)
    assert rule.strikes == 3


def test_the_coordinator_may_move() -> None:
    world, asked = joined("classic", ["t"])
    world.cluster.move_coordinator("g", 3 - world.cluster.coordinator("g"))
    description = asked.answer()
    assert isinstance(description, GroupDescription)
    assert description.topics == {"t"}


@pytest.mark.parametrize("api", [CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS])
def test_what_does_not_pass_is_the_answer(api: int) -> None:
    world, asked = joined("classic", ["t"])
    world.cluster.faults.error(api, errors.GroupAuthorizationFailed, count=1)
    assert isinstance(asked.answer(), errors.GroupAuthorizationFailed)


def test_an_empty_answer_is_no_answer() -> None:
    world, asked = joined("classic", ["t"])
    empty = [3]

    def forget(answer: Any, node_id: int) -> None:
        if empty[0]:
            empty[0] -= 1
            answer.groups = []

    world.cluster.faults.script(CONSUMER_GROUP_DESCRIBE, forget)
    world.cluster.faults.script(DESCRIBE_GROUPS, forget)
    assert isinstance(asked.answer(), GroupDescription)


@pytest.mark.parametrize("field", ["member_metadata", "member_assignment"])
def test_a_blob_that_cannot_be_read_is_an_error(field: str) -> None:
    world, asked = joined("classic", ["t"])

    def ruin(answer: Any, node_id: int) -> None:
        setattr(answer.groups[0].members[0], field, b"\x00\x01\x7f")

    world.cluster.faults.script(DESCRIBE_GROUPS, ruin)
    assert isinstance(asked.answer(), MalformedError)


def test_groups_that_are_no_consumers_have_no_topics() -> None:
    world, asked = joined("classic", ["t"])

    def change(answer: Any, node_id: int) -> None:
        answer.groups[0].protocol_type = "connect"

    world.cluster.faults.script(DESCRIBE_GROUPS, change)
    assert asked.answer() == GroupDescription("Stable", frozenset(), 1)


def test_who_gives_up_hears_nothing() -> None:
    world, asked = joined("classic", ["t"])
    cancel = asked.ask()
    cancel()
    cancel()
    world.run(1.0)
    assert asked.answers == []


def test_a_coordinator_that_will_never_be_there() -> None:
    world, asked = joined("classic", ["t"])
    world.cluster.pause(1)
    world.cluster.pause(2)
    asked.ask()
    asked.member.control.requester.coordinators.refuse_coordinator(
        CoordinatorKind.GROUP, "g", errors.GroupAuthorizationFailed(), world.now
    )
    assert isinstance(asked.answers.pop(), errors.GroupAuthorizationFailed)
