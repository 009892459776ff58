"""ElectLeaders (43): make other replicas the leaders of partitions.

What the versions changed:
    1: elections of replicas that are not in sync, and an error of the whole answer (KIP-460).
    2: flexible.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    """An entry of `ElectLeadersRequest.topic_partitions`."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ElectLeadersRequest(Request, api_key=43, versions="0-2", flexible="2+"):
    """Partitions, or null for all; 0 elects preferred replicas, 1 any that is alive."""

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable="0+")
    timeout_ms: int = int32("0+", default=60000)


class PartitionResult(Struct):
    """An entry of `ReplicaElectionResult.partition_result`."""

    partition_id: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class ReplicaElectionResult(Struct):
    """An entry of `ElectLeadersResponse.replica_election_results`."""

    topic: str = string("0+")
    partition_result: list[PartitionResult] = array(PartitionResult, "0+")


class ElectLeadersResponse(Response, api_key=43, versions="0-2", flexible="2+"):
    """One error code per partition."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult, "0+")
