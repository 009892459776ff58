"""What a member says that it waits for, at every step on its way to partitions."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from kafka_fast.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from kafka_fast.testing.broker.versions import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    JOIN_GROUP,
    SYNC_GROUP,
)
from tests.unit.control.group.world import Member, World

WARNING, INFO = logging.WARNING, logging.INFO


def said(member: Member) -> tuple[int, str] | None:
    """Return level and text of what a member waits for."""
    assert member.control.group is not None
    waiting = member.control.group.why_waiting()
    return None if waiting is None else (waiting.level, waiting.text)


def check(member: Member, level: int, text: str) -> None:
    """Check what a member waits for; `text` is a pattern behind the name of the group."""
    reason = said(member)
    assert reason is not None
    assert (reason[0], bool(re.search(f"^waiting for group 'g': {text}", reason[1]))) == (
        level,
        True,
    ), reason


def make(partitions: int = 1, **given: Any) -> World:
    world = World(**given)
    if partitions:
        world.cluster.create_topic("t", partitions)
    return world


def test_a_group_that_waits_for_its_members() -> None:
    world = make(2)
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.delay(5, api=JOIN_GROUP)
    other = world.join("b", ["t"])
    world.run(1.0)
    check(other, INFO, r"its coordinator, .*node 1.*, answers JoinGroup once all members have")
    assert one.owned


@pytest.mark.parametrize(
    ("api", "error", "normal", "text"),
    [
        (JOIN_GROUP, CoordinatorLoadInProgress, 12.0, "its coordinator, .*, answers COORDINATOR_L"),
        (FIND_COORDINATOR, CoordinatorNotAvailable, 4.0, "it has no coordinator yet: COORDINATOR_"),
    ],
)
def test_a_coordinator_that_is_new_is_a_warning_only_when_that_lasts(
    api: int, error: type[BrokerError], normal: float, text: str
) -> None:
    world = make()
    world.cluster.faults.error(api, error)
    member = world.join("a", ["t"])
    world.run(normal)
    check(member, INFO, text)
    world.run(5.0)
    check(member, WARNING, text)


def test_a_coordinator_that_has_come_into_its_office_meanwhile() -> None:
    world = make()
    world.cluster.faults.error(JOIN_GROUP, NotCoordinator, count=2)
    world.cluster.faults.delay(5, api=JOIN_GROUP, skip=3)  # the third one gives the member its id
    member = world.join("a", ["t"])
    world.run(1.0)
    check(member, INFO, r"its coordinator, .*node 1.*, answers JoinGroup once all members have")


def test_a_member_that_waits_for_the_leaders_plan() -> None:
    world = make(2)
    world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.delay(5, api=SYNC_GROUP)
    other = world.join("b", ["t"])
    world.run_until(lambda: "assign" in (said(other) or (0, ""))[1])
    check(other, INFO, r"its leader, member 'a-.*', has yet to assign the partitions")


def test_a_leader_that_waits_for_the_coordinator_to_take_its_plan() -> None:
    world = make()
    world.cluster.faults.delay(5, api=SYNC_GROUP)
    member = world.join("a", ["t"])
    world.run_until(lambda: "confirm" in (said(member) or (0, ""))[1])
    check(member, INFO, r"its coordinator, .*, has yet to confirm what this member has assigned")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_is_one_too_many(protocol: str) -> None:
    world = make(group_protocol=protocol)
    members = [world.join(name, ["t"]) for name in ("a", "b")]
    world.run_until(lambda: world.stable("t"))
    world.run(20)
    (spare,) = (member for member in members if not member.owned)
    check(spare, INFO, r"(generation|epoch) \d+ has no partition for this member")


def test_a_coordinator_that_has_yet_to_take_a_member_in() -> None:
    world = make(group_protocol="consumer")
    world.cluster.faults.delay(5, api=CONSUMER_GROUP_HEARTBEAT)
    member = world.join("a", ["t"])
    world.run(1.0)
    check(member, INFO, r"its coordinator, .*node 1.*, has yet to answer the heartbeat by which")


def test_a_group_without_a_coordinator() -> None:
    world = make()
    world.cluster.faults.delay(5, api=FIND_COORDINATOR)
    member = world.join("a", ["t"])
    world.run(1.0)
    check(member, WARNING, "its coordinator is looked for")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pattern_that_matches_nothing(protocol: str) -> None:
    world = make(0, group_protocol=protocol)
    member = world.join("a", "n.thing")
    world.run(1.0)
    check(member, WARNING, r"no topic matches the pattern 'n.thing' \(yet\)")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_is_told_elsewhere_is_no_warning_again(protocol: str) -> None:
    world = make(0, group_protocol=protocol, allow_auto_create_topics=False)
    member = world.join("a", ["absent"])
    world.run(10.0)
    check(member, logging.DEBUG, r"the brokers answer UNKNOWN_TOPIC_OR_PARTITION \(3\)")
