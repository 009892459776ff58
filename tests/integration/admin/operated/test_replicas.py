"""Replicas and their leaders on three nodes: moved under a throttle, between disks, and elected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka_fast import Admin, Producer, TopicPartition
from kafka_fast.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewTopic,
    OffsetSpec,
    TopicPartitionReplica,
)
from kafka_fast.errors import ElectionNotNeeded, NoReassignmentInProgress
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.calls.stage import Stage
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.broker]

RATE = 1
"""Bytes a second: a move that stands still."""
RECORDS = 200
SIZE = 10_000


def replicas(admin: Admin, partition: TopicPartition) -> tuple[int, ...]:
    infos = admin.describe_topics([partition.topic])[partition.topic].partitions
    return infos[partition.partition].replicas


def leader(admin: Admin, partition: TopicPartition) -> int | None:
    infos = admin.describe_topics([partition.topic])[partition.topic].partitions
    return infos[partition.partition].leader


def new_topic(stage: Stage, *nodes: int) -> TopicPartition:
    """Create a topic with a partition on these nodes, and some megabytes in it."""
    name = stage.new_name("replicas")
    configs = {"min.insync.replicas": "1"}
    new = NewTopic(name, assignments={0: list(nodes)}, configs=configs)
    stage.admin.create_topics([new]).raise_first()
    stage.admin.wait_until_topics_visible([name])
    write(stage, name)
    return TopicPartition(name, 0)


def write(stage: Stage, name: str) -> None:
    with Producer({**stage.properties, "acks": "all"}) as producer:
        for _ in range(RECORDS):
            producer.send(name, b"x" * SIZE, partition=0)


@contextmanager
def throttled(admin: Admin, partition: TopicPartition) -> Iterator[None]:
    """Let replicas of a topic be copied at RATE."""
    topic = ConfigResource(ConfigResourceType.TOPIC, partition.topic)
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(node)) for node in (1, 2, 3)]
    sides = ("leader", "follower")
    rates = [f"{side}.replication.throttled.rate" for side in sides]
    lists = [f"{side}.replication.throttled.replicas" for side in sides]

    def alter(op: AlterConfigOpType) -> None:
        is_set = op is AlterConfigOpType.SET
        of_topic = [AlterConfigOp(name, "*" if is_set else None, op) for name in lists]
        of_broker = [AlterConfigOp(name, str(RATE) if is_set else None, op) for name in rates]
        changes = {topic: of_topic, **dict.fromkeys(brokers, of_broker)}
        admin.incremental_alter_configs(changes).raise_first()

    def is_known() -> bool:
        settings = admin.describe_configs([topic, *brokers]).raise_first()
        # Brokers have no such settings before they are set.
        rates_known = all(name in settings[one] for one in brokers for name in rates)
        return rates_known and all(settings[topic][name].value == "*" for name in lists)

    alter(AlterConfigOpType.SET)
    eventually(is_known, "the throttle on every broker")
    yield
    alter(AlterConfigOpType.DELETE)


def test_a_throttled_move_is_seen_given_up_and_done_without_the_throttle(
    stage: Stage, admin: Admin
) -> None:
    here = new_topic(stage, 1, 2)
    with throttled(admin, here):
        admin.alter_partition_reassignments({here: [3, 2]}).raise_first()
        moving = admin.list_partition_reassignments([here])[here]
        assert set(moving.replicas) == {1, 2, 3}
        assert (moving.adding_replicas, moving.removing_replicas) == ((3,), (1,))
        admin.alter_partition_reassignments({here: None}).raise_first()
        eventually(lambda: set(replicas(admin, here)) == {1, 2}, "the replicas from before")
        admin.alter_partition_reassignments({here: [3, 2]}).raise_first()
        assert here in admin.list_partition_reassignments()
    eventually(lambda: replicas(admin, here) == (3, 2), "the move")
    eventually(lambda: here not in admin.list_partition_reassignments(), "its end")
    refused = admin.alter_partition_reassignments({here: None})
    assert isinstance(refused.errors[here], NoReassignmentInProgress)
    assert admin.list_offsets({here: OffsetSpec.LATEST})[here].offset == RECORDS


def test_the_replicas_of_all_nodes_change_their_disks(stage: Stage, admin: Admin) -> None:
    here = new_topic(stage, 1, 2, 3)
    copies = [TopicPartitionReplica(here.topic, 0, node) for node in (1, 2, 3)]
    before = admin.describe_replica_log_dirs(copies).raise_first()
    folders = admin.describe_log_dirs().raise_first()
    targets: dict[TopicPartitionReplica, str] = {}
    for copy in copies:
        (targets[copy],) = set(folders[copy.broker_id]) - {before[copy].current_log_dir}
    admin.alter_replica_log_dirs(targets).raise_first()

    def places() -> dict[TopicPartitionReplica, str | None]:
        told = admin.describe_replica_log_dirs(copies).raise_first()
        return {copy: info.current_log_dir for copy, info in told.items()}

    eventually(lambda: places() == targets, "all three on the other disk")
    sizes = [
        admin.describe_log_dirs([copy.broker_id])[copy.broker_id][path].replicas[here].size
        for copy, path in targets.items()
    ]
    assert min(sizes) >= RECORDS * SIZE


def test_the_preferred_leader_comes_back(stage: Stage, admin: Admin, operated: RealKafka) -> None:
    here, other = new_topic(stage, 1, 2), new_topic(stage, 2, 3)
    operated.node(1).stop()
    eventually(lambda: leader(admin, here) == 2, "another leader")
    operated.heal()
    operated.wait_isr(here.topic)
    result = admin.elect_leaders(ElectionType.PREFERRED, partitions=[here, other])
    assert result[here] is None
    assert isinstance(result.errors[other], ElectionNotNeeded)
    eventually(lambda: leader(admin, here) == 1, "the preferred leader")


def test_a_leader_is_elected_that_has_not_all_records(
    stage: Stage, admin: Admin, operated: RealKafka
) -> None:
    here = new_topic(stage, 1, 2)
    operated.node(2).kill()

    def isr() -> tuple[int, ...]:
        return admin.describe_topics([here.topic])[here.topic].partitions[0].isr

    eventually(lambda: isr() == (1,), "node 2 to fall out of sync")
    write(stage, here.topic)  # which only node 1 has
    operated.node(1).kill()
    operated.node(2).start()  # there is a quorum again
    eventually(lambda: leader(admin, here) is None, "the loss of the leader")
    admin.elect_leaders(ElectionType.UNCLEAN, partitions=[here]).raise_first()
    eventually(lambda: leader(admin, here) == 2, "the leader that is left")
    assert admin.list_offsets({here: OffsetSpec.LATEST})[here].offset == RECORDS
