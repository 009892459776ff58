"""ListOffsets (2): offsets by timestamp.

What the versions changed:
    2: isolation level. 4: leader epochs. 7: maximum timestamp (KIP-734). 8 and 9: local and
    tiered log (KIP-405). 10: timeout for tiered lookups (KIP-1075). 11: earliest pending upload.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
)


class ListOffsetsPartition(Struct):
    """An entry of `ListOffsetsTopic.partitions`."""

    partition_index: int = int32("0+")
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64("0+")


class ListOffsetsTopic(Struct):
    """An entry of `ListOffsetsRequest.topics`."""

    name: str = string("0+")
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition, "0+")


class ListOffsetsRequest(Request, api_key=2, versions="1-11", flexible="6+"):
    """Timestamps, or -1 latest, -2 earliest, and the other special values."""

    replica_id: int = int32("0+")
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic, "0+")
    timeout_ms: int = int32("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    """An entry of `ListOffsetsTopicResponse.partitions`."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    """An entry of `ListOffsetsResponse.topics`."""

    name: str = string("0+")
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse, "0+")


class ListOffsetsResponse(Response, api_key=2, versions="1-11", flexible="6+"):
    """The first offset at or after each timestamp."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse, "0+")
