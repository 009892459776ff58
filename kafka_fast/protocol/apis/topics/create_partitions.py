"""CreatePartitions (37): give topics more partitions.

What the versions changed:
    2: flexible. 3: quota on changes (KIP-599).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, string


class CreatePartitionsAssignment(Struct):
    """An entry of `CreatePartitionsTopic.assignments`."""

    broker_ids: list[int] = array(int32, "0+")


class CreatePartitionsTopic(Struct):
    """An entry of `CreatePartitionsRequest.topics`."""

    name: str = string("0+")
    count: int = int32("0+")
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, "0+", nullable="0+"
    )


class CreatePartitionsRequest(Request, api_key=37, versions="0-3", flexible="2+"):
    """New counts of partitions; null assignments leave the choice of brokers to the cluster."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = bool_("0+")


class CreatePartitionsTopicResult(Struct):
    """An entry of `CreatePartitionsResponse.results`."""

    name: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class CreatePartitionsResponse(Response, api_key=37, versions="0-3", flexible="2+"):
    """One error code per topic."""

    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+")
