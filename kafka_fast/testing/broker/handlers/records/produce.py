"""Produce: one batch for each partition, appended or refused partition by partition.

A partition that a request names twice counts once: as in Kafka the last one named is appended and
answered, and the others are not heard of again.
"""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    CorruptMessage,
    InvalidRequiredAcks,
    InvalidTopicException,
    MessageTooLarge,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    error_name,
)
from kafka_fast.protocol.apis.records.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_fast.record import RecordBatch
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.partitions.append import (
    RefusedRecordsError,
    append_batch,
    the_one_batch,
)
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, Topic
from kafka_fast.testing.broker.partitions.leaders import LeaderHints, led_partition
from kafka_fast.testing.broker.received_request import CloseConnectionError, ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_ACKS = (-1, 0, 1)
_IDS_FROM_VERSION = 13
_HINTS_FROM_VERSION = 10  # KIP-951


@answers(ProduceRequest)
def answer(request: ReceivedRequest) -> ProduceResponse | None:
    """Append what can be appended and say so, or nothing with acks=0.

    Raises:
        CloseConnectionError: a batch failed with acks=0, which leaves no other way to tell.
    """
    body: ProduceRequest = request.body
    hints = LeaderHints(request.state)
    response = ProduceResponse(
        responses=[_topic(request, data, hints) for data in _last_named(body.topic_data)]
    )
    response.node_endpoints = hints.produce_endpoints()
    if body.acks != 0:
        return response
    failed = [p for t in response.responses for p in t.partition_responses if p.error_code]
    if failed:
        name = error_name(failed[0].error_code)
        raise CloseConnectionError(f"a Produce request with acks=0 met {name}")
    return None


def _last_named(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Return the topics, each once; of a partition that is named twice the last data count."""
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = merged.setdefault((topic.name, topic.topic_id), {})
        partitions.update((one.index, one) for one in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]


def _topic(
    request: ReceivedRequest, data: TopicProduceData, hints: LeaderHints
) -> TopicProduceResponse:
    answers = []
    for one in data.partition_data:
        one_answer = PartitionProduceResponse(index=one.index, base_offset=-1)
        _partition(request, data, one, one_answer, hints)
        answers.append(one_answer)
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def _partition(
    request: ReceivedRequest,
    topic_data: TopicProduceData,
    data: PartitionProduceData,
    made: PartitionProduceResponse,
    hints: LeaderHints,
) -> None:
    """Append the partition's batch and fill in the answer."""
    try:
        topic = _find(request, topic_data, data.index)
        partition = topic.partitions[data.index]
        if topic.is_internal:
            raise InvalidTopicException(f"{topic.name} is the brokers' own")
        batch = _acceptable(request, data)
        try:
            led_partition(request, topic, data.index)
            _append(request, topic, partition, batch, made)
        except NotLeaderOrFollower:
            if request.version >= _HINTS_FROM_VERSION:
                made.current_leader = hints.for_produce(partition)
            raise
        except (CorruptMessage, MessageTooLarge):
            raise
        except BrokerError:  # refused by the log itself, which says where it starts
            made.log_start_offset = partition.log.start_offset
            raise
    except BrokerError as error:
        made.error_code = error.code
        made.error_message = error.args[0]
        if isinstance(error, RefusedRecordsError):
            made.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in error.records.items()
            ]


def _find(request: ReceivedRequest, data: TopicProduceData, index: int) -> Topic:
    if request.version >= _IDS_FROM_VERSION:
        topic = request.state.topic_by_id(data.topic_id)
        request.check_topic(Operation.WRITE, topic.name)
        return _with_partition(topic, index)
    request.check_topic(Operation.WRITE, data.name)
    if data.name in request.state.topics:
        return _with_partition(request.state.topics[data.name], index)
    raise UnknownTopicOrPartition(f"no topic {data.name!r}")


def _with_partition(topic: Topic, index: int) -> Topic:
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopicOrPartition(f"topic {topic.name!r} has no partition {index}")
    return topic


def _acceptable(request: ReceivedRequest, data: PartitionProduceData) -> RecordBatch:
    body: ProduceRequest = request.body
    batch = the_one_batch(data.records, request.version)
    if body.transactional_id is not None or batch.is_transactional:
        raise UnsupportedVersion("the embedded broker has no transactions")
    if body.acks not in _ACKS:
        raise InvalidRequiredAcks(f"acks={body.acks}")
    return batch


def _append(
    request: ReceivedRequest,
    topic: Topic,
    partition: Partition,
    batch: RecordBatch,
    made: PartitionProduceResponse,
) -> None:
    planned = request.planned_error(topic.name, partition.index)
    if planned is None or planned.applied:
        unix_ms = request.state.unix_ms(request.now)
        appended = append_batch(partition, topic.config, batch, request.body.acks, unix_ms)
        request.state.changes += 1
        made.base_offset = appended.base_offset
        made.log_append_time_ms = appended.log_append_time
        made.log_start_offset = partition.log.start_offset
    if planned is not None:
        made.error_code = planned.code
        made.base_offset = -1
