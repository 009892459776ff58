"""Operations on the quorum of controllers: their requests, and what answers mean."""

from __future__ import annotations

import pytest

from kafka_fast.admin import QuorumReplica, RaftVoterEndpoint
from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.quorum import (
    METADATA_TOPIC,
    AddRaftVoter,
    DescribeMetadataQuorum,
    RemoveRaftVoter,
)
from kafka_fast.control.requests.meanings import Refresh
from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    DuplicateVoter,
    ErrorCode,
    UnsupportedVersion,
    UsageError,
    VoterNotFound,
)
from kafka_fast.protocol.apis.cluster.add_raft_voter import AddRaftVoterResponse
from kafka_fast.protocol.apis.cluster.describe_quorum import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from kafka_fast.protocol.apis.cluster.remove_raft_voter import RemoveRaftVoterResponse
from tests.unit.control.admin.operations.trying import meanings, refused, sent, values, versions

DIRECTORY = bytes(range(16))
DIRECTORY_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def quorum_answer(
    version: int, topic: str = METADATA_TOPIC, code: int = 0
) -> DescribeQuorumResponse:
    voter = ReplicaState(replica_id=1, log_end_offset=9)
    if version >= 1:
        voter.last_fetch_timestamp = 5
    if version >= 2:
        voter.replica_directory_id = DIRECTORY
    partition = DescribeQuorumResponsePartitionData(
        error_code=code,
        error_message=None,
        leader_id=1,
        leader_epoch=4,
        high_watermark=8,
        current_voters=[voter],
        observers=[ReplicaState(replica_id=2, log_end_offset=-1)],
    )
    answer = DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponseTopicData(topic_name=topic, partitions=[partition])],
    )
    if version >= 2:
        listener = Listener(name="CONTROLLER", host="c", port=9093)
        answer.nodes = [Node(node_id=1, listeners=[listener])]
    return answer


def test_the_quorum_is_described() -> None:
    for version in versions(DescribeMetadataQuorum):
        operation = DescribeMetadataQuorum()
        (topic,) = sent(operation, version).topics
        assert topic.topic_name == "__cluster_metadata"
        assert [one.partition_index for one in topic.partitions] == [0]
        quorum = values(operation, quorum_answer(version), version)[ONLY]
        assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (1, 4, 8)
        directory = DIRECTORY_TEXT if version >= 2 else None
        fetched = 5 if version >= 1 else None
        assert quorum.voters == (QuorumReplica(1, directory, 9, fetched, None),)
        assert quorum.observers == (QuorumReplica(2, None, -1, None, None),)
        endpoints = {1: (RaftVoterEndpoint("CONTROLLER", "c", 9093),)} if version >= 2 else {}
        assert quorum.endpoints == endpoints


def test_errors_of_the_whole_answer_and_of_the_partition() -> None:
    operation = DescribeMetadataQuorum()
    whole = DescribeQuorumResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None
    )
    assert isinstance(refused(meanings(operation, whole, 2)[ONLY]), ClusterAuthorizationFailed)
    moved = quorum_answer(2, code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert isinstance(meanings(operation, moved, 2)[ONLY], Refresh)


def test_a_foreign_or_empty_answer_is_none() -> None:
    operation = DescribeMetadataQuorum()
    assert meanings(operation, quorum_answer(2, topic="other"), 2) == {}
    assert meanings(operation, DescribeQuorumResponse(error_message=None), 2) == {}


def add(directory_id: str = DIRECTORY_TEXT) -> AddRaftVoter:
    endpoint = RaftVoterEndpoint("CONTROLLER", "c", 9093)
    return AddRaftVoter(4, directory_id=directory_id, endpoints=[endpoint], cluster_id="k")


def test_a_voter_is_added() -> None:
    for version in versions(AddRaftVoter):
        request = sent(add(), version)
        assert (request.cluster_id, request.voter_id, request.timeout_ms) == ("k", 4, 30000)
        assert request.voter_directory_id == DIRECTORY
        assert [(one.name, one.host, one.port) for one in request.listeners] == [
            ("CONTROLLER", "c", 9093)
        ]
        assert request.ack_when_committed
        assert values(add(), AddRaftVoterResponse(error_message=None), version) == {ONLY: None}


def test_a_voter_is_removed() -> None:
    operation = RemoveRaftVoter(4, directory_id=DIRECTORY_TEXT, cluster_id=None)
    request = sent(operation, 0)
    assert (request.cluster_id, request.voter_id) == (None, 4)
    assert request.voter_directory_id == DIRECTORY
    assert values(operation, RemoveRaftVoterResponse(error_message=None), 0) == {ONLY: None}
    answer = RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message="none")
    error = refused(meanings(operation, answer, 0)[ONLY])
    assert isinstance(error, VoterNotFound)
    assert str(error).endswith("RemoveRaftVoter of voter 4: none")


def test_what_a_voter_lacks() -> None:
    answer = AddRaftVoterResponse(error_code=ErrorCode.DUPLICATE_VOTER, error_message="twice")
    error = refused(meanings(add(), answer, 1)[ONLY])
    assert isinstance(error, DuplicateVoter)
    assert str(error).endswith("AddRaftVoter of voter 4: twice")
    static = AddRaftVoterResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None)
    error = refused(meanings(add(), static, 1)[ONLY])
    assert isinstance(error, UnsupportedVersion)
    assert "kraft.version at level 1" in str(error)


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match="no directory id"):
        add("short")
    with pytest.raises(UsageError, match="no directory id"):
        RemoveRaftVoter(4, directory_id="", cluster_id=None)
    with pytest.raises(UsageError, match="at least one endpoint"):
        AddRaftVoter(4, directory_id=DIRECTORY_TEXT, endpoints=[], cluster_id=None)
