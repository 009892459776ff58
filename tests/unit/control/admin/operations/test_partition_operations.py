"""Operations on partitions: each version of their requests, and what answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import ElectionType, PartitionReassignment
from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.partitions import (
    AlterPartitionReassignments,
    ElectAllLeaders,
    ElectLeaders,
    ListPartitionReassignments,
)
from kafka_fast.control.requests.meanings import Done, FindAgain, Retry
from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    ElectionNotNeeded,
    ErrorCode,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
    UsageError,
)
from kafka_fast.protocol.apis.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafka_fast.protocol.apis.topics.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kafka_fast.protocol.apis.topics.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.unit.control.admin.operations.trying import meanings, refused, sent, values, versions

ZERO, ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def elected(*codes: int, said: str | None = None) -> ElectLeadersResponse:
    results = [
        PartitionResult(partition_id=number, error_code=code, error_message=said if code else None)
        for number, code in enumerate(codes)
    ]
    return ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="t", partition_result=results)]
    )


# ---- elections ----


def test_elections_are_asked_for() -> None:
    for version in versions(ElectLeaders):
        kind = ElectionType.UNCLEAN if version else ElectionType.PREFERRED
        some = sent(ElectLeaders(kind, [ZERO, ONE, OTHER]), version)
        assert {one.topic: one.partitions for one in some.topic_partitions} == {
            "t": [0, 1],
            "u": [0],
        }
        everything = sent(ElectAllLeaders(kind), version)
        assert everything.topic_partitions is None
        for request in (some, everything):
            assert request.timeout_ms == 30000
            assert request.election_type == (1 if version else 0)


def test_old_brokers_elect_preferred_leaders_only() -> None:
    some: Any = ElectLeaders(ElectionType.UNCLEAN, [ZERO])
    everything: Any = ElectAllLeaders(ElectionType.UNCLEAN)
    for operation in (some, everything):
        assert "need Kafka 2.4" in str(operation.unsupported(operation.items[0], 0))
        assert operation.unsupported(operation.items[0], 1) is None
    assert ElectLeaders(ElectionType.PREFERRED, [ZERO]).unsupported(ZERO, 0) is None
    assert ElectAllLeaders(ElectionType.PREFERRED).unsupported(ONLY, 0) is None


def test_there_are_two_types_of_elections() -> None:
    bad: Any = "preferred"
    with pytest.raises(UsageError, match="'preferred'"):
        ElectLeaders(bad, [ZERO])
    with pytest.raises(UsageError, match="'preferred'"):
        ElectAllLeaders(bad)


def test_results_of_elections() -> None:
    operation = ElectLeaders(ElectionType.PREFERRED, [ZERO, ONE])
    codes = [
        0,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    ]
    read = meanings(operation, elected(*codes), 2)
    assert read[ZERO] == Done(None)
    error = refused(read[ONE])
    assert isinstance(error, ElectionNotNeeded)
    assert "ElectLeaders of t-1: the partition has its leader already" in str(error)
    assert isinstance(refused(read[TopicPartition("t", 2)]), PreferredLeaderNotAvailable)
    absent = refused(read[TopicPartition("t", 3)])
    assert isinstance(absent, UnknownTopicOrPartition)
    assert "there is no such partition" in str(absent)
    assert isinstance(read[TopicPartition("t", 4)], Retry)
    whole = ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for meaning in meanings(operation, whole, 2).values():
        assert isinstance(refused(meaning), ClusterAuthorizationFailed)


def test_results_of_all_elections() -> None:
    operation = ElectAllLeaders(ElectionType.PREFERRED)
    codes = [0, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    results = values(operation, elected(*codes, said="the broker's words"), 0)[ONLY]
    assert list(results) == [ZERO, TopicPartition("t", 2)]
    assert results[ZERO] is None
    assert "of t-2: the broker's words" in str(results[TopicPartition("t", 2)])
    moved = ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER)
    assert isinstance(meanings(operation, moved, 1)[ONLY], FindAgain)
    each_moved = elected(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER)
    assert isinstance(meanings(operation, each_moved, 1)[ONLY], FindAgain)


# ---- reassignments ----


def test_moves_are_asked_for() -> None:
    for version in versions(AlterPartitionReassignments):
        operation = AlterPartitionReassignments(
            {ZERO: (2, 3), ONE: None, OTHER: [1]}, allow_replication_factor_change=version == 0
        )
        request = sent(operation, version)
        assert {
            (topic.name, one.partition_index): one.replicas
            for topic in request.topics
            for one in topic.partitions
        } == {("t", 0): [2, 3], ("t", 1): None, ("u", 0): [1]}
        assert request.allow_replication_factor_change == (version == 0)
        assert request.timeout_ms == 30000


def test_old_brokers_may_change_how_many_replicas_there_are() -> None:
    operation = AlterPartitionReassignments({ZERO: [1]}, allow_replication_factor_change=False)
    assert "since Kafka 4.1" in str(operation.unsupported(ZERO, 0))
    assert operation.unsupported(ZERO, 1) is None
    free = AlterPartitionReassignments({ZERO: [1]}, allow_replication_factor_change=True)
    assert free.unsupported(ZERO, 0) is None
    with pytest.raises(UsageError, match="t-0 needs a replica"):
        AlterPartitionReassignments({ZERO: []}, allow_replication_factor_change=True)


def test_results_of_moves() -> None:
    operation = AlterPartitionReassignments(
        {ZERO: [1], ONE: None}, allow_replication_factor_change=True
    )
    answer = AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name="t",
                partitions=[
                    ReassignablePartitionResponse(partition_index=0, error_message=None),
                    ReassignablePartitionResponse(
                        partition_index=1,
                        error_code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                        error_message=None,
                    ),
                ],
            )
        ],
    )
    read = meanings(operation, answer, 1)
    assert read[ZERO] == Done(None)
    assert isinstance(refused(read[ONE]), NoReassignmentInProgress)
    whole = AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=None
    )
    assert all(isinstance(one, FindAgain) for one in meanings(operation, whole, 0).values())


def test_moves_are_listed() -> None:
    some = sent(ListPartitionReassignments([ZERO, ONE, ZERO, OTHER]), 0)
    assert {one.name: one.partition_indexes for one in some.topics} == {"t": [0, 1], "u": [0]}
    operation = ListPartitionReassignments(None)
    assert sent(operation, 0).topics is None
    move = OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]
    )
    answer = ListPartitionReassignmentsResponse(
        error_message=None, topics=[OngoingTopicReassignment(name="t", partitions=[move])]
    )
    assert values(operation, answer, 0)[ONLY] == {ONE: PartitionReassignment((1, 2, 3), (3,), (1,))}
    refusal = ListPartitionReassignmentsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None
    )
    error = refused(meanings(operation, refusal, 0)[ONLY])
    assert "needs DESCRIBE on the cluster" in str(error)
