"""Produce: one batch for each partition, appended or refused partition by partition."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    InvalidRequiredAcks,
    NotLeaderOrFollower,
    UnsupportedVersion,
)
from kafka_fast.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_fast.testing.broker.append import append_batch, the_one_batch
from kafka_fast.testing.broker.leaders import LeaderHints, led_partition
from kafka_fast.testing.broker.request import CloseConnectionError, Request
from kafka_fast.testing.broker.topics import Topic

_ACKS = (-1, 0, 1)
_IDS_FROM_VERSION = 13
_HINTS_FROM_VERSION = 10  # KIP-951


def answer(request: Request) -> ProduceResponse | None:
    """Append what can be appended and say so, or nothing with acks=0.

    Raises:
        CloseConnectionError: a batch failed with acks=0, which leaves no other way to tell.
    """
    body: ProduceRequest = request.body
    hints = LeaderHints(request.state)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=data.name,
                topic_id=data.topic_id,
                partition_responses=_topic(request, data, hints),
            )
            for data in body.topic_data
        ],
        node_endpoints=[],
    )
    if request.version >= _HINTS_FROM_VERSION:
        response.node_endpoints = hints.produce_endpoints()
    if body.acks != 0:
        return response
    failed = [p for t in response.responses for p in t.partition_responses if p.error_code]
    if failed:
        raise CloseConnectionError(f"acks=0 and error {failed[0].error_code}")
    return None


def _topic(
    request: Request, data: TopicProduceData, hints: LeaderHints
) -> list[PartitionProduceResponse]:
    return [_partition(request, data, one, hints) for one in data.partition_data]


def _partition(
    request: Request, topic: TopicProduceData, data: PartitionProduceData, hints: LeaderHints
) -> PartitionProduceResponse:
    try:
        return _append(request, topic, data)
    except BrokerError as error:
        failed = PartitionProduceResponse(
            index=data.index,
            error_code=error.code,
            error_message=str(error.args[0]) if error.args and error.args[0] else None,
            base_offset=-1,
            log_append_time_ms=-1,
            log_start_offset=-1,
        )
        if isinstance(error, NotLeaderOrFollower) and request.version >= _HINTS_FROM_VERSION:
            found = _find(request, topic)
            failed.current_leader = hints.for_produce(found.partitions[data.index])
        return failed


def _find(request: Request, data: TopicProduceData) -> Topic:
    if request.version >= _IDS_FROM_VERSION:
        return request.state.topic_by_id(data.topic_id)
    request.state.partition(data.name, 0)
    return request.state.topics[data.name]


def _append(
    request: Request, topic_data: TopicProduceData, data: PartitionProduceData
) -> PartitionProduceResponse:
    body: ProduceRequest = request.body
    topic = _find(request, topic_data)
    batch = the_one_batch(data.records, request.version)
    if body.transactional_id is not None or batch.is_transactional:
        raise UnsupportedVersion("the embedded broker has no transactions")
    if body.acks not in _ACKS:
        raise InvalidRequiredAcks(f"acks={body.acks}")
    partition = led_partition(request, topic, data.index)
    planned = request.planned_error(topic.name, data.index)
    if planned is not None and not planned.applied:
        return PartitionProduceResponse(
            index=data.index, error_code=planned.code, base_offset=-1, log_start_offset=-1
        )
    unix_ms = request.state.unix_ms(request.now)
    appended = append_batch(partition, topic.config, batch, body.acks, unix_ms)
    request.state.changes += 1
    if planned is not None:
        return PartitionProduceResponse(
            index=data.index, error_code=planned.code, base_offset=-1, log_start_offset=-1
        )
    return PartitionProduceResponse(
        index=data.index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=partition.log.start_offset,
    )
