"""Plays of the calls about topics, their partitions, their replicas, and settings."""

from __future__ import annotations

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicPartitionReplica,
)
from tests.integration.admin.calls.stage import RECORDS, Stage, play
from tests.waiting import eventually


@play
def create_topics(stage: Stage) -> None:
    name, other = stage.new_name(), stage.new_name()
    stage.admin.create_topics([NewTopic(other, 1, stage.replication)], validate_only=True)
    new = NewTopic(name, 3, stage.replication, configs={"retention.ms": "1000"})
    stage.admin.create_topics([new]).raise_first()
    stage.admin.wait_until_topics_visible([name])
    described = stage.admin.describe_topics([name])[name]
    assert [one.partition for one in described.partitions] == [0, 1, 2]
    assert {len(one.replicas) for one in described.partitions} == {stage.replication}
    topic = ConfigResource(ConfigResourceType.TOPIC, name)
    assert stage.admin.describe_configs([topic])[topic]["retention.ms"].value == "1000"
    assert other not in stage.admin.list_topics()


@play
def list_topics(stage: Stage) -> None:
    name = stage.new_topic()
    assert stage.admin.list_topics()[name].name == name


@play
def describe_topics(stage: Stage) -> None:
    name, absent = stage.new_topic(), stage.new_name("absent")
    described = stage.admin.describe_topics([name, absent])
    assert [one.partition for one in described[name].partitions] == [0, 1]
    assert list(described.errors) == [absent]


@play
def wait_until_topics_visible(stage: Stage) -> None:
    name = stage.new_name()
    stage.admin.create_topics([NewTopic(name, 2, stage.replication)]).raise_first()
    stage.admin.wait_until_topics_visible([name])
    assert all(
        one.leader is not None for one in stage.admin.describe_topics([name])[name].partitions
    )


@play
def delete_topics(stage: Stage) -> None:
    name, other = stage.new_topic(), stage.new_topic()
    stage.admin.delete_topics([name]).raise_first()
    eventually(lambda: name not in stage.admin.list_topics(), "the topic to be gone")
    assert other in stage.admin.list_topics()


@play
def create_partitions(stage: Stage) -> None:
    name = stage.new_topic()
    stage.admin.create_partitions({name: NewPartitions(3)}).raise_first()
    stage.admin.wait_until_topics_visible([name])
    eventually(lambda: len(stage.admin.describe_topics([name])[name].partitions) == 3)


@play
def delete_records(stage: Stage) -> None:
    here = TopicPartition(stage.topic_with_records(), 0)
    assert stage.admin.delete_records({here: 4})[here] == 4
    assert stage.admin.list_offsets({here: OffsetSpec.EARLIEST})[here].offset == 4


@play
def list_offsets(stage: Stage) -> None:
    here = TopicPartition(stage.topic_with_records(), 0)
    assert stage.admin.list_offsets({here: OffsetSpec.EARLIEST})[here].offset == 0
    assert stage.admin.list_offsets({here: OffsetSpec.LATEST})[here].offset == RECORDS


@play
def elect_leaders(stage: Stage) -> None:
    stage.new_topic()
    stage.admin.elect_leaders(ElectionType.PREFERRED).raise_first()


@play
def alter_partition_reassignments(stage: Stage) -> None:
    name = stage.new_topic()
    here = TopicPartition(name, 0)

    def replicas() -> tuple[int, ...]:
        return stage.admin.describe_topics([name])[name].partitions[0].replicas

    others = replicas()[::-1]
    stage.admin.alter_partition_reassignments({here: others}).raise_first()
    eventually(lambda: replicas() == others, "the other order")


@play
def list_partition_reassignments(stage: Stage) -> None:
    here = TopicPartition(stage.new_topic(), 0)
    assert stage.admin.list_partition_reassignments([here]) == {}


# ---- where replicas are ----


@play
def describe_log_dirs(stage: Stage) -> None:
    here = TopicPartition(stage.topic_with_records(), 0)
    brokers = stage.admin.describe_log_dirs().raise_first()
    sizes = [
        one.replicas[here].size
        for folders in brokers.values()
        for one in folders.values()
        if here in one.replicas
    ]
    assert len(sizes) == stage.replication
    assert max(sizes) > 0


def _first_replica(stage: Stage) -> TopicPartitionReplica:
    name = stage.topic_with_records()
    leader = stage.admin.describe_topics([name])[name].partitions[0].leader
    assert leader is not None
    return TopicPartitionReplica(name, 0, leader)


@play
def describe_replica_log_dirs(stage: Stage) -> None:
    here = _first_replica(stage)
    told = stage.admin.describe_replica_log_dirs([here])[here]
    assert told.current_log_dir is not None
    assert told.future_log_dir is None


@play
def alter_replica_log_dirs(stage: Stage) -> None:
    here = _first_replica(stage)
    before = stage.admin.describe_replica_log_dirs([here])[here].current_log_dir
    (other,) = set(stage.admin.describe_log_dirs([here.broker_id])[here.broker_id]) - {before}
    stage.admin.alter_replica_log_dirs({here: other}).raise_first()

    def place() -> str | None:
        return stage.admin.describe_replica_log_dirs([here])[here].current_log_dir

    eventually(lambda: place() == other, "the move")


# ---- settings ----


def _value(stage: Stage, topic: ConfigResource, name: str) -> str | None:
    return stage.admin.describe_configs([topic])[topic][name].value


def _new_topic(stage: Stage) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, stage.new_topic())


@play
def describe_configs(stage: Stage) -> None:
    assert _value(stage, _new_topic(stage), "cleanup.policy") == "delete"


@play
def incremental_alter_configs(stage: Stage) -> None:
    topic = _new_topic(stage)
    ops = [AlterConfigOp("segment.ms", "7000"), AlterConfigOp("retention.ms", "8000")]
    stage.admin.incremental_alter_configs({topic: ops[:1]}).raise_first()
    stage.admin.incremental_alter_configs({topic: ops[1:]}).raise_first()
    eventually(lambda: _value(stage, topic, "retention.ms") == "8000", "the second change")
    assert _value(stage, topic, "segment.ms") == "7000"


@play
def alter_configs(stage: Stage) -> None:
    topic = _new_topic(stage)
    before = _value(stage, topic, "segment.ms")
    stage.admin.alter_configs({topic: {"segment.ms": "7000"}}).raise_first()
    eventually(lambda: _value(stage, topic, "segment.ms") == "7000", "the first change")
    stage.admin.alter_configs({topic: {"retention.ms": "8000"}}).raise_first()
    eventually(lambda: _value(stage, topic, "retention.ms") == "8000", "the second change")
    assert _value(stage, topic, "segment.ms") == before


@play
def list_config_resources(stage: Stage) -> None:
    metrics = ConfigResource(ConfigResourceType.CLIENT_METRICS, stage.new_name())
    if stage.has("3.7"):
        ops = [AlterConfigOp("interval.ms", "60000")]
        stage.admin.incremental_alter_configs({metrics: ops}).raise_first()
    eventually(lambda: metrics in stage.admin.list_config_resources([metrics.type]))
