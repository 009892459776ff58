"""DeleteRecords (21): move the start of logs."""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    """An entry of `DeleteRecordsTopic.partitions`."""

    partition_index: int = int32("0+")
    offset: int = int64("0+")


class DeleteRecordsTopic(Struct):
    """An entry of `DeleteRecordsRequest.topics`."""

    name: str = string("0+")
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition, "0+")


class DeleteRecordsRequest(Request, api_key=21, versions="0-2", flexible="2+"):
    """The first offset that stays, of each partition; -1 is the high watermark."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic, "0+")
    timeout_ms: int = int32("0+")


class DeleteRecordsPartitionResult(Struct):
    """An entry of `DeleteRecordsTopicResult.partitions`."""

    partition_index: int = int32("0+")
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


class DeleteRecordsTopicResult(Struct):
    """An entry of `DeleteRecordsResponse.topics`."""

    name: str = string("0+")
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult, "0+")


class DeleteRecordsResponse(Response, api_key=21, versions="0-2", flexible="2+"):
    """Where each log starts now."""

    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult, "0+")
