"""OffsetForLeaderEpoch: where a leader epoch ended, so that readers notice truncation (KIP-320)."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, UnknownTopicOrPartition
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.partitions.leaders import led_partition
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(OffsetForLeaderEpochRequest)
def answer(request: ReceivedRequest) -> OffsetForLeaderEpochResponse:
    """Return the end of each epoch asked about."""
    body: OffsetForLeaderEpochRequest = request.body
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_partition(request, topic.topic, one) for one in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _partition(
    request: ReceivedRequest, topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    epoch_end = EpochEndOffset(partition=asked.partition)
    try:
        planned = request.planned_error(topic, asked.partition)
        if planned is not None:
            epoch_end.error_code = planned.code
            return epoch_end
        request.check_topic(Operation.DESCRIBE, topic)
        if topic not in request.state.topics:
            raise UnknownTopicOrPartition(f"no topic {topic!r}")
        partition = led_partition(
            request, request.state.topics[topic], asked.partition, asked.current_leader_epoch
        )
    except BrokerError as error:
        epoch_end.error_code = error.code
        return epoch_end
    epoch_end.leader_epoch, epoch_end.end_offset = partition.log.end_of_epoch(asked.leader_epoch)
    return epoch_end
