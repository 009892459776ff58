"""The leader's work: members and topics in, assignments out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.control.group.assignors import Assignor, GroupMember, GroupTopics
from kafka_fast.control.group.assignors.builtin import make_assignors
from kafka_fast.control.group.classic.classic_messages import read_assignment
from kafka_fast.control.group.classic.leader import GroupLeader, moving
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.errors import KafkaError, MalformedError
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse, JoinGroupResponseMember
from kafka_fast.protocol.consumer import (
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from kafka_fast.protocol.schema import encode_versioned
from kafka_fast.types import TopicPartition
from tests.unit.control.metadata.metadata_answers import answer, broker, topic

NOW = 10.0
PATIENCE = 300.0


class Breaking(Assignor):
    """A user's assignor with a mistake."""

    name = "breaking"
    is_cooperative = False

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> dict[str, list[TopicPartition]]:
        raise ZeroDivisionError("a mistake")


def make(partitions: int | None, *assignors: Assignor) -> tuple[GroupLeader, Cluster]:
    """Return a leader, and its cluster with topic t of so many partitions; None: unknown yet."""
    settings = consumer_settings({"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"})
    cluster = Cluster(settings, lambda: 0.5)
    cluster.want_topic("t", NOW)
    if partitions is not None:
        learn(cluster, partitions)
    known = {assignor.name: assignor for assignor in assignors or make_assignors(("range",))}
    subscription = SubscribedTopics(cluster, settings)
    return GroupLeader(known, subscription, cluster, patience=PATIENCE), cluster


def learn(cluster: Cluster, partitions: int) -> None:
    """Have the cluster answer that topic t has so many partitions."""
    now = NOW + partitions  # past the pace of questions
    cluster.request_refresh("test")
    assert cluster.poll_request(now) is not None
    cluster.handle_response(answer(topic("t", [(1, 0)] * partitions), brokers=[broker(1)]), now)


def joined(*member_ids: str, protocol_name: str = "range", skip: bool = False) -> JoinGroupResponse:
    """Return what the coordinator tells its leader: these members all read t."""
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
    members = [
        JoinGroupResponseMember(member_id=member_id, metadata=metadata) for member_id in member_ids
    ]
    return JoinGroupResponse(protocol_name=protocol_name, members=members, skip_assignment=skip)


def assign(
    leader: GroupLeader, told: JoinGroupResponse
) -> dict[str, frozenset[TopicPartition]] | None:
    """Let a leader plan a generation; return who gets what, or None: metadata are missing."""
    plan = leader.planning(told)()
    if not leader.take_plan(plan, NOW):
        return None
    return {
        assignment.member_id: read_assignment(assignment.assignment)[0]
        for assignment in plan.assignments or ()
    }


def test_everybody_gets_a_share() -> None:
    leader, _ = make(4)
    assignments = assign(leader, joined("a", "b"))
    assert assignments is not None
    assert {member: len(partitions) for member, partitions in assignments.items()} == {
        "a": 2,
        "b": 2,
    }


def test_a_node_that_is_away_keeps_its_rack() -> None:
    """Regression: each restart of a broker with a rack made the group rebalance, twice."""
    leader, cluster = make(2)
    racks = {1: "a", 2: "b"}
    for now, away in enumerate((None, 2, None), start=20):
        brokers = [broker(node) for node in racks if node != away]
        for one in brokers:
            one.rack = racks[one.node_id]
        cluster.request_refresh("test")
        assert cluster.poll_request(float(now)) is not None
        cluster.handle_response(answer(topic("t", [(1, 0)] * 2), brokers=brokers), float(now))
        if now == 20:
            assign(leader, joined("a"))
        assert not leader.is_outdated
    assert cluster.racks() == {1: "a", 2: "b"}
    racks[2] = "c"
    brokers[1].rack = "c"
    cluster.request_refresh("test")
    assert cluster.poll_request(30.0) is not None
    cluster.handle_response(answer(topic("t", [(1, 0)] * 2), brokers=brokers), 30.0)
    assert leader.is_outdated


def test_nothing_is_assigned_by_metadata_that_are_still_to_come() -> None:
    leader, cluster = make(None)
    assert assign(leader, joined("a")) is None
    learn(cluster, 2)
    assert assign(leader, joined("a")) == {"a": {TopicPartition("t", 0), TopicPartition("t", 1)}}


def test_a_topic_that_has_grown_asks_for_another_assignment() -> None:
    leader, cluster = make(2)
    assert not leader.is_outdated
    assign(leader, joined("a"))
    assert not leader.is_outdated
    learn(cluster, 3)
    assert leader.is_outdated
    leader.forget_assignment()
    assert not leader.is_outdated, "another member leads"


def test_a_leader_that_returns_only_watches() -> None:
    """KIP-814: the group keeps the assignment that it has."""
    leader, cluster = make(2)
    assert assign(leader, joined("a", skip=True)) == {}
    learn(cluster, 3)
    assert leader.is_outdated


def test_a_members_bytes_that_are_no_metadata() -> None:
    leader, _ = make(2)
    told = joined("a")
    told.members.append(JoinGroupResponseMember(member_id="b", metadata=b"\0"))
    with pytest.raises(MalformedError, match="'b'"):
        assign(leader, told)


def test_an_assignor_that_fails() -> None:
    leader, _ = make(2, Breaking())
    with pytest.raises(KafkaError, match="'breaking' has failed: ZeroDivisionError") as caught:
        assign(leader, joined("a", protocol_name="breaking"))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_assignor_that_nobody_has() -> None:
    leader, _ = make(2)
    with pytest.raises(KafkaError, match="'other'"):
        assign(leader, joined("a", protocol_name="other"))


def test_what_another_member_owns_is_not_given_away_at_once() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    members = [
        GroupMember("a", frozenset({"t"}), owned=frozenset({first, second})),
        GroupMember("b", frozenset({"t"})),
    ]
    assert moving({"a": [first], "b": [second]}, members) == {second: members[0]}


@pytest.mark.parametrize(
    ("strategy", "instance_id", "skip", "patience"),
    [
        ("cooperative-sticky", "one", False, PATIENCE),
        ("cooperative-sticky", None, False, math.inf),
        ("cooperative-sticky", "one", True, PATIENCE),
        ("sticky", "one", False, math.inf),
        ("sticky", "one", True, math.inf),
    ],
)
def test_what_a_static_member_is_to_give_up_is_not_waited_for_for_ever(
    strategy: str, instance_id: str | None, skip: bool, patience: float
) -> None:
    leader, _ = make(2, *make_assignors((strategy,)))
    told = joined("a", "b", protocol_name=strategy, skip=skip)
    both = ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=[0, 1])
    owner = ConsumerProtocolSubscription(topics=["t"], owned_partitions=[both], generation_id=1)
    told.members[0].metadata = encode_versioned(owner, 3)
    told.members[0].group_instance_id = instance_id
    assignments = assign(leader, told)
    assert assignments is not None
    assert leader.settled_by == NOW + patience
    if strategy == "cooperative-sticky" and not skip:
        assert [len(assignments[member_id]) for member_id in ("a", "b")] == [1, 0]
    leader.forget_assignment()
    assert leader.settled_by == math.inf
