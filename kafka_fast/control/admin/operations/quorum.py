"""Operations on the quorum of controllers: describe it, add voters and remove them (KRaft)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import ONLY, Operation
from kafka_fast.control.admin.types.cluster import (
    QuorumInfo,
    QuorumReplica,
    RaftVoterEndpoint,
    directory_id_bytes,
)
from kafka_fast.control.admin.types.topic_ids import topic_id_text
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import ErrorCode, UsageError
from kafka_fast.protocol.apis.cluster.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from kafka_fast.protocol.apis.cluster.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from kafka_fast.protocol.apis.cluster.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
STATIC_QUORUM: Mapping[int, str] = {
    ErrorCode.UNSUPPORTED_VERSION: "the cluster's quorum is a static one: its voters can be "
    "changed with the feature kraft.version at level 1"
}


class DescribeMetadataQuorum(Operation[str, QuorumInfo]):
    """DescribeQuorum; a broker has the leader of the quorum answer."""

    name = "describe_metadata_quorum"
    permission = "DESCRIBE on the cluster"
    since = "3.3"
    at_controllers = True
    request_class = DescribeQuorumRequest
    response_class = DescribeQuorumResponse

    def __init__(self) -> None:
        """Take nothing: there is one quorum."""
        super().__init__(AnyNode(), [ONLY])

    def build(self, items: Sequence[str], version: int) -> DescribeQuorumRequest:
        """Ask for the partition of the metadata."""
        partition = DescribeQuorumRequestPartitionData(partition_index=METADATA_PARTITION)
        topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        return DescribeQuorumRequest(topics=[topic])

    def outcomes(
        self, answer: DescribeQuorumResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[QuorumInfo]]]:
        """Return the quorum."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
            return
        endpoints = {
            node.node_id: tuple(
                RaftVoterEndpoint(one.name, one.host, one.port) for one in node.listeners
            )
            for node in answer.nodes
        }
        for topic in answer.topics:
            for partition in topic.partitions:
                if topic.topic_name != METADATA_TOPIC:
                    continue
                if partition.error_code:
                    code, said = partition.error_code, partition.error_message
                    yield ONLY, self.refusal(ONLY, code, said)
                else:
                    yield ONLY, Done(_quorum(partition, endpoints))


def _quorum(
    partition: DescribeQuorumResponsePartitionData,
    endpoints: Mapping[int, tuple[RaftVoterEndpoint, ...]],
) -> QuorumInfo:
    return QuorumInfo(
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(map(_replica, partition.current_voters)),
        tuple(map(_replica, partition.observers)),
        endpoints,
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    fetched, caught_up = state.last_fetch_timestamp, state.last_caught_up_timestamp
    return QuorumReplica(
        state.replica_id,
        topic_id_text(state.replica_directory_id),
        state.log_end_offset,
        fetched if fetched >= 0 else None,
        caught_up if caught_up >= 0 else None,
    )


class AddRaftVoter(Operation[str, None]):
    """AddRaftVoter; a broker forwards it to the leader of the quorum."""

    name = "add_raft_voter"
    permission = "ALTER on the cluster"
    since = "3.9"
    at_controllers = True
    words = STATIC_QUORUM
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.DUPLICATE_VOTER: "an earlier try, of which no answer came, may have added it"
    }
    request_class = AddRaftVoterRequest
    response_class = AddRaftVoterResponse

    def __init__(
        self,
        voter_id: int,
        *,
        directory_id: str,
        endpoints: Iterable[RaftVoterEndpoint],
        cluster_id: str | None,
    ) -> None:
        """Take the controller.

        Args:
            voter_id: its node id.
            directory_id: id of its metadata directory, as text.
            endpoints: its listeners for other controllers.
            cluster_id: of the cluster that is meant; None: whichever.

        Raises:
            UsageError: the directory id is none, or there are no endpoints.
        """
        super().__init__(AnyNode(), [ONLY])
        self._voter_id = voter_id
        self._directory_id = directory_id_bytes(directory_id)
        self._endpoints = tuple(endpoints)
        self._cluster_id = cluster_id
        if not self._endpoints:
            raise UsageError(f"voter {voter_id} needs at least one endpoint")

    def describe(self, item: str) -> str:
        """Return the request with its voter."""
        return f"{self.api} of voter {self._voter_id}"

    def build(self, items: Sequence[str], version: int) -> AddRaftVoterRequest:
        """Ask for its vote."""
        return AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout_ms=self.timeout_ms,
            voter_id=self._voter_id,
            voter_directory_id=self._directory_id,
            listeners=[
                Listener(name=one.name, host=one.host, port=one.port) for one in self._endpoints
            ],
        )

    def outcomes(
        self, answer: AddRaftVoterResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return whether it has a vote."""
        yield ONLY, self.done_or_refusal(ONLY, answer.error_code, answer.error_message)


class RemoveRaftVoter(Operation[str, None]):
    """RemoveRaftVoter; a broker forwards it to the leader of the quorum."""

    name = "remove_raft_voter"
    permission = "ALTER on the cluster"
    since = "3.9"
    at_controllers = True
    words = STATIC_QUORUM
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.VOTER_NOT_FOUND: "an earlier try, of which no answer came, may have removed it"
    }
    request_class = RemoveRaftVoterRequest
    response_class = RemoveRaftVoterResponse

    def __init__(self, voter_id: int, *, directory_id: str, cluster_id: str | None) -> None:
        """Take the controller.

        Args:
            voter_id: its node id.
            directory_id: id of its metadata directory, as text.
            cluster_id: of the cluster that is meant; None: whichever.

        Raises:
            UsageError: the directory id is none.
        """
        super().__init__(AnyNode(), [ONLY])
        self._voter_id = voter_id
        self._directory_id = directory_id_bytes(directory_id)
        self._cluster_id = cluster_id

    def describe(self, item: str) -> str:
        """Return the request with its voter."""
        return f"{self.api} of voter {self._voter_id}"

    def build(self, items: Sequence[str], version: int) -> RemoveRaftVoterRequest:
        """Ask for the end of its vote."""
        return RemoveRaftVoterRequest(
            cluster_id=self._cluster_id,
            voter_id=self._voter_id,
            voter_directory_id=self._directory_id,
        )

    def outcomes(
        self, answer: RemoveRaftVoterResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return whether its vote has ended."""
        yield ONLY, self.done_or_refusal(ONLY, answer.error_code, answer.error_message)
