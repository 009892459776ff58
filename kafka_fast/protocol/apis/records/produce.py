"""Produce (0): append record batches to partitions.

What the versions changed:
    3: record batch v2, transactional id. 7: zstd. 8: errors of single records (KIP-467).
    10: leader hints in the answer (KIP-951). 12: the broker adds the partition to the
    transaction itself (KIP-890). 13: topic ids in place of names (KIP-516).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Buffer,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)


class PartitionProduceData(Struct):
    """An entry of `TopicProduceData.partition_data`."""

    index: int = int32("0+")
    records: Buffer | None = records("0+", nullable="0+")


class TopicProduceData(Struct):
    """An entry of `ProduceRequest.topic_data`."""

    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData, "0+")


class ProduceRequest(Request, api_key=0, versions="3-13", flexible="9+"):
    """Batches for the partitions that one broker leads, each partition at most once."""

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: list[TopicProduceData] = array(TopicProduceData, "0+")


class BatchIndexAndErrorMessage(Struct):
    """An entry of `PartitionProduceResponse.record_errors`."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    """What `PartitionProduceResponse.current_leader` holds."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Struct):
    """An entry of `TopicProduceResponse.partition_responses`."""

    index: int = int32("0+")
    error_code: int = int16("0+")
    base_offset: int = int64("0+")
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0, tagged="10+")


class TopicProduceResponse(Struct):
    """An entry of `ProduceResponse.responses`."""

    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse, "0+")


class NodeEndpoint(Struct):
    """An entry of `ProduceResponse.node_endpoints`."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


class ProduceResponse(Response, api_key=0, versions="3-13", flexible="9+"):
    """Base offset or error of each partition; a request with acks=0 has no answer."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0, tagged="10+")
