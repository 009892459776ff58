"""DeleteRecords: moves the start of a log."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    OffsetOutOfRange,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.partitions.leaders import led_partition
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_UP_TO_THE_END = -1


@answers(DeleteRecordsRequest)
def answer(request: ReceivedRequest) -> DeleteRecordsResponse:
    """Delete what can be deleted and say where each log starts now."""
    body: DeleteRecordsRequest = request.body
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_partition(request, topic.name, one) for one in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _partition(
    request: ReceivedRequest, topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    index = asked.partition_index
    try:
        planned = request.planned_error(topic, index)
        if planned is not None:
            return _refused(index, planned.code)
        request.check_topic(Operation.DELETE, topic)
        if topic not in request.state.topics:
            raise UnknownTopicOrPartition(f"no topic {topic!r}")
        log = led_partition(request, request.state.topics[topic], index).log
        if not request.state.topics[topic].config.may_delete:
            raise PolicyViolation(f"{topic!r} has not cleanup.policy=delete")
        before = log.end_offset if asked.offset == _UP_TO_THE_END else asked.offset
        if not 0 <= before <= log.end_offset:
            raise OffsetOutOfRange(f"{before} is not within 0 and {log.end_offset}")
    except BrokerError as error:
        return _refused(index, error.code)
    if before > log.start_offset:
        log.delete_before(before)
        request.state.changes += 1
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=log.start_offset)


def _refused(index: int, code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)
