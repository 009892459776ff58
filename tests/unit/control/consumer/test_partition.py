"""The state of one consumed partition: what belongs to a state ends with it."""

from __future__ import annotations

from kafka_fast.control.consumer.consumer_messages import generation
from kafka_fast.control.consumer.partition import (
    AWAITING_WAY,
    NOWHERE,
    RUNNING,
    AssignedPartitions,
    FetchState,
    Position,
)
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.types import TopicPartition

T0, T1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
NODE = Node(1, "kafka", 9092)


def test_a_state_has_a_beginning() -> None:
    partition = AssignedPartitions().add(T0, 0, 1.0)
    assert (partition.state, partition.since) == (FetchState.ASSIGNED, 1.0)
    partition.enter(FetchState.AWAITS_LINK, 2.0, node=NODE)
    partition.enter(FetchState.AWAITS_LINK, 3.0, node=NODE)
    assert (partition.state, partition.since) == (FetchState.AWAITS_LINK, 2.0), "it is in it still"


def test_what_belongs_to_a_state_ends_with_it() -> None:
    partition = AssignedPartitions().add(T0, 0, 1.0)
    partition.fetch(5, NODE, 1.0)
    assert (partition.link_id, partition.node, partition.is_running) == (5, NODE, True)
    partition.begin_stop(2.0)
    assert (partition.link_id, partition.node, partition.is_running) == (5, NODE, True)
    error = KafkaError("refused")
    partition.back_off(9.0, lambda now: None, 3.0, error)
    assert (partition.link_id, partition.node, partition.is_running) == (NOWHERE, None, False)
    assert (partition.until, partition.error) == (9.0, error)
    partition.enter(FetchState.AWAITS_LEADER, 4.0)
    assert (partition.until, partition.then, partition.error) == (NEVER, None, None)


def test_each_start_and_each_seek_is_a_generation_of_its_own() -> None:
    partition = AssignedPartitions().add(T0, 0, 1.0)
    assert partition.generation == generation(0, 0)
    partition.fetch(5, NODE, 1.0)
    assert partition.generation == generation(0, 1)
    partition.enter(FetchState.STOPPED, 1.0)
    partition.fetch(5, NODE, 1.0)
    assert partition.generation == generation(0, 2)
    partition.seeks, partition.starts = 1, 0
    assert partition.generation == generation(1, 0)


def test_a_position_that_moves_is_neither_told_nor_validated() -> None:
    partition = AssignedPartitions().add(T0, 0, 1.0)
    partition.is_position_told, partition.validated_epoch = True, 7
    partition.move(Position(42, 7))
    assert (partition.position, partition.is_position_told, partition.validated_epoch) == (
        Position(42, 7),
        False,
        -1,
    )


def test_partitions_are_found_by_name_stream_topic_and_state() -> None:
    partitions = AssignedPartitions()
    first, second = partitions.add(T0, 0, 1.0), partitions.add(T1, 1, 1.0)
    other = partitions.add(OTHER, 2, 1.0)
    assert list(partitions) == [first, second, other]
    assert T1 in partitions
    assert partitions[T1] is partitions.get(T1) is partitions.of_stream(1) is second
    assert partitions.of_topic("t") == [first, second]
    second.enter(FetchState.AWAITS_LINK, 1.0)
    first.enter(FetchState.AWAITS_LEADER, 1.0)
    other.fetch(5, NODE, 1.0)
    assert partitions.in_state(*AWAITING_WAY) == [first, second]
    assert partitions.in_state(*RUNNING) == [other]
    assert partitions.in_state(FetchState.ASSIGNED) == []


def test_a_partition_that_is_gone_is_found_nowhere() -> None:
    partitions = AssignedPartitions()
    partition = partitions.add(T0, 0, 1.0)
    partition.enter(FetchState.FAILED, 1.0)
    partitions.remove(partition)
    assert list(partitions) == partitions.in_state(*FetchState) == []
    assert (partitions.get(T0), partitions.of_stream(0)) == (None, None)
