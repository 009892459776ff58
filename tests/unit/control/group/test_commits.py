"""Commits of a group's member, on the embedded broker in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.group.classic.classic_member import ClassicMemberState
from kafka_fast.control.group.commits import OFFSETS_PER_REQUEST
from kafka_fast.errors import (
    CommitFailedError,
    KafkaTimeoutError,
    OffsetMetadataTooLarge,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.versions import (
    KAFKA_2_1,
    KAFKA_3_9,
    OFFSET_COMMIT,
    OFFSET_FETCH,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.control.group.consumer_protocol.groups import make, two_members
from tests.unit.control.group.world import Member, World


def test_a_commit_whose_answer_is_late_lets_the_control_plane_sleep() -> None:
    """Regression: its deadline had passed, and was due again and again until the answer came."""
    world = World()
    world.cluster.create_topic("t", 1)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    answers: list[Any] = []
    group = member.control.group
    assert group is not None
    world.cluster.pause(1)
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(0)}
    group.commits.commit(offsets, answers.append, deadline=world.now + 0.5)
    world.run(2.0)  # says so if there is no end to it
    assert answers == []
    assert member.control.requester.next_deadline() == float("inf")
    world.cluster.resume(1, world.now)
    world.run(1.0)
    assert answers == [None]


def test_committed_offsets_of_a_broker_that_cannot_wait_for_transactions() -> None:
    """Regression: with read_committed nothing could be read in groups of brokers before 2.5."""
    world = World(**{"isolation.level": "read_committed"})
    world.cluster.faults.limit_versions(KAFKA_2_1)
    world.cluster.create_topic("t", 1)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    answers: list[Any] = []
    group = member.control.group
    assert group is not None
    group.committed.fetch([TopicPartition("t", 0)], answers.append)
    world.run(1.0)
    assert answers == [{TopicPartition("t", 0): None}]


@pytest.mark.parametrize("versions", [None, KAFKA_3_9])
def test_a_committed_offset_is_of_the_topic_that_there_is(versions: Any) -> None:
    world = World()
    if versions is not None:
        world.cluster.faults.limit_versions(versions)
    world.cluster.create_topic("t", 1)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    mine = TopicPartition("t", 0)
    world.commit(member, {mine: 5})
    world.run(1.0)
    world.cluster.faults.delay(1.0, api=OFFSET_FETCH, count=1)
    answers: list[Any] = []
    group = member.control.group
    assert group is not None
    group.committed.fetch([mine], answers.append)
    world.run(0.1)
    world.cluster.delete_topic("t")
    world.cluster.create_topic("t", 1)
    member.control.cluster.request_refresh("test", "t")
    world.run(0.5)
    assert not answers, "the answer about the former topic is on its way"
    world.commit(member, {mine: 7})
    world.run(5.0)
    assert answers == [{mine: OffsetAndMetadata(7)}]


def test_commits_are_refused_once_others_own_the_partitions() -> None:
    world = make(max_poll_interval_ms=20_000)
    one, two = two_members(world)
    mine = next(iter(one.owned))
    good = world.commit(one, {mine: 5})
    world.run(1.0)
    assert good == [None]
    world.cluster.faults.error(8, 14, count=1000)
    late = world.commit(one, {mine: 6})
    world.run(1.0)
    assert late == []
    one.next_poll = world.now + 100.0
    one.core.plane.set_alive_until(world.now)  # stuck: heartbeats end, the group moves on
    world.run_until(lambda: len(two.owned) == 4, 40.0)
    world.cluster.faults.clear()
    world.run(5.0)
    assert isinstance(late[0], CommitFailedError)
    assert world.cluster.committed("g")[mine] == 5


def test_a_commit_under_an_epoch_that_has_passed_is_sent_again() -> None:
    world = make()
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.error(8, 113, count=2)
    outcome = world.commit(one, {TopicPartition("t", 0): 7})
    world.run(5.0)
    assert outcome == [None]
    assert world.cluster.committed("g") == {("t", 0): 7}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_are_given_up_when_their_commits_are_through(protocol: str) -> None:
    """A commit that is still being tried must not land on what the next owner commits."""
    world = make(group_protocol=protocol)
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    rule = world.cluster.faults.error(8, 14)
    outcome = world.commit(one, dict.fromkeys(one.owned, 5))
    two = world.join("b", ["t"])
    world.run(10.0)
    assert not two.owned
    assert outcome == []
    rule.cancel()
    world.run_until(lambda: world.stable("t") and bool(two.owned), 20.0)
    assert outcome == [None]


def with_topic_gone(protocol: str, versions: Any = None) -> tuple[World, Member]:
    """Return a member that reads two topics, one of which, "u", has just been deleted."""
    world = make(2, group_protocol=protocol, allow_auto_create_topics=False)
    if versions is not None:
        world.cluster.faults.limit_versions(versions)
    world.cluster.create_topic("u", 1)
    member = world.join("a", ["t", "u"])
    world.run_until(lambda: world.stable("t", "u"))
    world.cluster.delete_topic("u")
    return world, member


BOTH = {TopicPartition("t", 0): OffsetAndMetadata(3), TopicPartition("u", 0): OffsetAndMetadata(4)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_last_commit_does_not_wait_for_a_topic_that_is_gone(protocol: str) -> None:
    world, member = with_topic_gone(protocol)
    group, outcomes = member.control.group, []  # type: ignore[var-annotated]
    assert group is not None
    group.commits.commit(BOTH, outcomes.append, deadline=world.now + 30, skips_unknown=True)
    world.run(0.2)
    assert outcomes == [None]
    assert world.cluster.committed("g") == {("t", 0): 3}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_is_committed_behind_a_topic_that_is_gone(protocol: str) -> None:
    """Regression: it waited until the commit before it had reached its deadline, a minute."""
    world, member = with_topic_gone(protocol)
    group, outcomes = member.control.group, []  # type: ignore[var-annotated]
    assert group is not None
    other = {TopicPartition("t", 0): OffsetAndMetadata(5)}
    for offsets in (BOTH, other):
        group.commits.commit(offsets, outcomes.append, deadline=world.now + 60)
    world.run(5.0)
    assert outcomes == [None, None]
    assert world.cluster.committed("g") == {("t", 0): 5}


def test_a_commit_for_a_topic_that_is_not_read_says_at_its_deadline_what_was_wrong() -> None:
    """Nobody asks for the metadata of such a topic: that may create it."""
    world, member = with_topic_gone("classic")
    outcome = world.commit(member, {TopicPartition("typo", 0): 5, TopicPartition("t", 0): 6})
    world.run(61.0)
    assert isinstance(outcome[0], KafkaTimeoutError)
    assert "typo-0" in str(outcome[0])
    assert world.cluster.committed("g") == {("t", 0): 6}


def test_a_commit_by_name_for_a_topic_that_is_gone_is_refused() -> None:
    """Without ids nobody can tell whether the topic has ever been there."""
    world, member = with_topic_gone("classic", KAFKA_2_1)
    outcome = world.commit(member, {TopicPartition("u", 0): 5, TopicPartition("t", 0): 6})
    world.run(5.0)
    assert isinstance(outcome[0], UnknownTopicOrPartition)
    assert world.cluster.committed("g") == {("t", 0): 6}


def test_a_topic_that_the_coordinator_hears_of_late_is_waited_for() -> None:
    world = make(2)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.error(OFFSET_COMMIT, UnknownTopicOrPartition.code, count=3)
    outcome = world.commit(member, {TopicPartition("t", 0): 6})
    world.run(5.0)
    assert outcome == [None]
    assert world.cluster.committed("g") == {("t", 0): 6}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_commit_that_is_tried_again_is_not_of_a_topic_that_was_made_anew(
    protocol: str, is_told: bool
) -> None:
    """Regression: it was sent with the id, or under the name, that now was another topic's."""
    world = make(2, group_protocol=protocol)
    world.cluster.create_topic("u", 1)
    member = world.join("a", ["t", "u"])
    world.run_until(lambda: world.stable("t", "u"))
    rule = world.cluster.faults.error(8, 14)
    outcome = world.commit(member, {TopicPartition("t", 0): 7, TopicPartition("u", 0): 1})
    world.run(1.0)
    assert outcome == []
    world.cluster.delete_topic("t")
    world.cluster.create_topic("t", 2)
    if is_told:
        member.control.cluster.request_refresh("a test asks", "t")
        world.run(1.0)
    rule.cancel()
    world.run(5.0)
    assert outcome == [None]
    assert world.cluster.committed("g") == {("u", 0): 1}


def test_a_commit_by_name_is_not_of_a_topic_that_is_known_to_be_made_anew() -> None:
    world = World()
    world.cluster.faults.limit_versions(KAFKA_3_9)
    world.cluster.create_topic("t", 1)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    rule = world.cluster.faults.error(8, 14)
    outcome = world.commit(member, {TopicPartition("t", 0): 7})
    world.run(1.0)
    world.cluster.delete_topic("t")
    world.cluster.create_topic("t", 1)
    member.control.cluster.request_refresh("a test asks", "t")
    world.run(1.0)
    rule.cancel()
    world.run(5.0)
    assert outcome == [None]
    assert world.cluster.committed("g") == {}


@pytest.mark.parametrize("seed", range(5))
def test_a_commit_between_two_generations_waits_for_the_next_one(seed: int) -> None:
    """Regression: what a cooperative member committed while it joined was refused.

    It keeps its partitions then; but the generation was over when the coordinator read the commit.
    """
    world = World(
        seed=seed, partition_assignment_strategy="cooperative-sticky", heartbeat_interval_ms=50
    )
    world.cluster.create_topic("t", 4)
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    group = one.control.group
    assert group is not None
    world.join("b", ["t"])
    outcomes: list[Any] = []
    for number in range(300):
        world.run(0.0005)
        if group.member.state is ClassicMemberState.JOINING:  # type: ignore[attr-defined]
            outcomes.append(world.commit(one, dict.fromkeys(one.owned, number)))
    assert outcomes
    world.run(5.0)
    assert outcomes == [[None]] * len(outcomes)
    world.run_until(lambda: world.stable("t"))
    assert len(one.owned) == 2


def test_very_many_offsets_are_committed_in_pieces() -> None:
    world = World()
    world.cluster.create_topic("t", 2 * OFFSETS_PER_REQUEST + 1)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    asked: list[int] = []
    world.cluster.faults.script(OFFSET_COMMIT, lambda response, node: asked.append(1))
    offsets = {TopicPartition("t", n): n for n in range(2 * OFFSETS_PER_REQUEST + 1)}
    assert wait_for(world, world.commit(member, offsets)) == [None]
    assert len(asked) == 3
    assert world.cluster.committed("g") == {("t", n): n for n in range(len(offsets))}


def test_a_piece_that_cannot_be_committed_fails_the_commit_at_its_end() -> None:
    world = World()
    world.cluster.create_topic("t", 2 * OFFSETS_PER_REQUEST)
    member = world.join("m", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.error(OFFSET_COMMIT, OffsetMetadataTooLarge, count=1)
    offsets = {TopicPartition("t", n): n for n in range(2 * OFFSETS_PER_REQUEST)}
    (error,) = wait_for(world, world.commit(member, offsets))
    assert "OFFSET_METADATA_TOO_LARGE" in str(error)
    assert len(world.cluster.committed("g")) == len(offsets) - 1, "the others are committed"


def wait_for(world: World, outcome: list[Any]) -> list[Any]:
    world.run_until(lambda: bool(outcome))
    return outcome
