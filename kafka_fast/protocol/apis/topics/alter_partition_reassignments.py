"""AlterPartitionReassignments (45): move replicas to other brokers (KIP-455).

Version 1 can refuse to change how many replicas a partition has (KIP-860).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, string


class ReassignablePartition(Struct):
    """An entry of `ReassignableTopic.partitions`."""

    partition_index: int = int32("0+")
    replicas: list[int] | None = array(int32, "0+", nullable="0+", default=None)


class ReassignableTopic(Struct):
    """An entry of `AlterPartitionReassignmentsRequest.topics`."""

    name: str = string("0+")
    partitions: list[ReassignablePartition] = array(ReassignablePartition, "0+")


class AlterPartitionReassignmentsRequest(Request, api_key=45, versions="0-1", flexible="0+"):
    """The replicas that each partition shall have; null ends a move that is under way."""

    timeout_ms: int = int32("0+", default=60000)
    allow_replication_factor_change: bool = bool_("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic, "0+")


class ReassignablePartitionResponse(Struct):
    """An entry of `ReassignableTopicResponse.partitions`."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class ReassignableTopicResponse(Struct):
    """An entry of `AlterPartitionReassignmentsResponse.responses`."""

    name: str = string("0+")
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse, "0+")


class AlterPartitionReassignmentsResponse(Response, api_key=45, versions="0-1", flexible="0+"):
    """One error code per partition."""

    throttle_time_ms: int = int32("0+")
    allow_replication_factor_change: bool = bool_("1+", default=True, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse, "0+")
