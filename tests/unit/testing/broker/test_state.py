"""Topics, leaders and nodes of the embedded cluster."""

from __future__ import annotations

import random

import pytest

from kafka_fast import errors
from kafka_fast.testing.broker.partitions.cluster_topics import (
    NO_LEADER,
    TopicConfig,
    check_topic_name,
)
from kafka_fast.testing.broker.state import ClusterState, Node, Settings


def cluster(nodes: int = 3, **settings: object) -> ClusterState:
    members = [Node(node_id, "127.0.0.1", 9000 + node_id) for node_id in range(1, nodes + 1)]
    return ClusterState(members, Settings(**settings), random.Random(1))  # type: ignore[arg-type]


def test_a_topic_takes_the_defaults_and_spreads_its_leaders() -> None:
    state = cluster(partitions=4, replication_factor=2)
    state.add_topic(state.plan_topic("t"))
    partitions = state.topics["t"].partitions
    assert [p.leader for p in partitions] == [1, 2, 3, 1]
    assert [p.replicas for p in partitions] == [[1, 2], [2, 3], [3, 1], [1, 2]]
    assert state.topic_by_id(state.topics["t"].topic_id).name == "t"


def test_planning_changes_nothing() -> None:
    state = cluster()
    state.plan_topic("t")
    assert not state.topics
    assert state.changes == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"partitions": 0}, errors.InvalidPartitions),
        ({"partitions": -2}, errors.InvalidPartitions),
        ({"replication_factor": 4}, errors.InvalidReplicationFactor),
        ({"replication_factor": 0}, errors.InvalidReplicationFactor),
        ({"assignment": {1: [1]}}, errors.InvalidReplicaAssignment),
        ({"assignment": {0: [1, 1]}}, errors.InvalidReplicaAssignment),
        ({"assignment": {0: [9]}}, errors.InvalidReplicaAssignment),
        ({"assignment": {0: [1], 1: [1, 2]}}, errors.InvalidReplicaAssignment),
        ({"config": {"no.such": "1"}}, errors.InvalidConfig),
        ({"config": {"max.message.bytes": "x"}}, errors.InvalidConfig),
        ({"config": {"min.insync.replicas": "0"}}, errors.InvalidConfig),
        ({"config": {"cleanup.policy": "compress"}}, errors.InvalidConfig),
        ({"config": {"retention.ms": "9" * 5000}}, errors.InvalidConfig),
    ],
)
def test_bad_topics_are_refused(
    arguments: dict[str, object], error: type[errors.BrokerError]
) -> None:
    with pytest.raises(error):
        cluster().plan_topic("t", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "a b", "x" * 250])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(errors.InvalidTopicException):
        check_topic_name(name)
    check_topic_name("x" * 249)


def test_names_that_collide_in_metrics_are_refused() -> None:
    state = cluster()
    state.add_topic(state.plan_topic("a.b"))
    with pytest.raises(errors.InvalidTopicException, match="collides"):
        state.plan_topic("a_b")
    with pytest.raises(errors.TopicAlreadyExists):
        state.plan_topic("a.b")


def test_a_deleted_topic_is_gone_by_name_and_id() -> None:
    state = cluster()
    state.add_topic(state.plan_topic("t"))
    topic_id = state.topics["t"].topic_id
    state.delete_topic("t")
    with pytest.raises(errors.UnknownTopicId):
        state.topic_by_id(topic_id)
    with pytest.raises(errors.UnknownTopicOrPartition):
        state.partition("t", 0)
    with pytest.raises(errors.UnknownTopicOrPartition):
        state.delete_topic("t")


def test_a_dead_leader_is_followed_by_the_next_replica_in_sync() -> None:
    state = cluster(partitions=1, replication_factor=2)
    state.add_topic(state.plan_topic("t"))
    partition = state.partition("t", 0)
    state.node_died(1)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, [2])
    state.node_died(2)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (NO_LEADER, 2, [2])
    state.node_returned(1)  # not in sync when the last leader died: may not lead
    assert partition.leader == NO_LEADER
    state.node_returned(2)
    assert (partition.leader, partition.leader_epoch) == (2, 3)
    assert state.controller_id == 1


def test_a_leader_moves_to_any_live_node() -> None:
    state = cluster(partitions=1, replication_factor=1)
    state.add_topic(state.plan_topic("t"))
    partition = state.partition("t", 0)
    state.move_leader(partition, 3)
    assert (partition.leader, partition.leader_epoch, partition.replicas) == (3, 1, [3])
    assert partition.isr == [3]
    state.node_died(2)
    with pytest.raises(ValueError, match="does not run"):
        state.move_leader(partition, 2)


def test_settings_are_read_over_the_defaults() -> None:
    config = TopicConfig.from_texts({"message.timestamp.type": "LogAppendTime"})
    assert config.log_append_time
    assert config.max_message_bytes == 1048588
    assert config.texts["retention.bytes"] == "-1"


def test_producer_ids_are_never_given_twice() -> None:
    state = cluster()
    assert len({state.new_producer_id() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("policy", "limit"), [("delete", 5), ("compact", -1), ("compact,delete", 5)]
)
def test_retention_is_of_topics_that_delete(policy: str, limit: int) -> None:
    config = TopicConfig.from_texts({"cleanup.policy": policy, "retention.bytes": "5"})
    assert config.retention_bytes == limit
