"""ListOffsets: the first and the next offset of a log, and offsets by timestamp."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kafka_fast.errors import (
    BrokerError,
    InvalidRequest,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_fast.record import read_batches
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.partitions._spans import first_reaching
from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.partitions.leaders import led_partition
from kafka_fast.testing.broker.partitions.log import PartitionLog
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_EARLIEST_PENDING_UPLOAD = -6
_EPOCH_FROM_VERSION = 4
_READ_COMMITTED = 1

# Special timestamp -> the first version that has it.
_FROM_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}


class _Found(NamedTuple):
    offset: int = -1
    timestamp: int = -1


@answers(ListOffsetsRequest)
def answer(request: ReceivedRequest) -> ListOffsetsResponse:
    """Return one offset for each partition asked about."""
    body: ListOffsetsRequest = request.body
    named = Counter(
        (topic.name, one.partition_index) for topic in body.topics for one in topic.partitions
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _partition(request, topic.name, one, named[topic.name, index] > 1)
                    for index, one in {one.partition_index: one for one in topic.partitions}.items()
                ],
            )
            for topic in body.topics
        ]
    )


def _partition(
    request: ReceivedRequest, topic: str, asked: ListOffsetsPartition, twice: bool
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    try:
        if twice:
            raise InvalidRequest(f"{topic}-{index} is named twice")
        planned = request.planned_error(topic, index)
        if planned is not None:
            return _refused(index, planned.code)
        request.check_topic(Operation.DESCRIBE, topic)
        if topic not in request.state.topics:
            raise UnknownTopicOrPartition(f"no topic {topic!r}")
        partition = led_partition(
            request, request.state.topics[topic], index, asked.current_leader_epoch
        )
        if asked.timestamp < 0 and request.version < _FROM_VERSION.get(asked.timestamp, 1 << 15):
            raise UnsupportedVersion(f"timestamp {asked.timestamp}")
        committed = request.body.isolation_level == _READ_COMMITTED
        timed_offset = _find(partition.log, asked.timestamp, committed)
    except BrokerError as error:
        return _refused(index, error.code)
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=0,
        offset=timed_offset.offset,
        timestamp=timed_offset.timestamp,
        leader_epoch=_epoch(request, partition, timed_offset.offset),
    )


def _epoch(request: ReceivedRequest, partition: Partition, offset: int) -> int:
    if offset < 0 or request.version < _EPOCH_FROM_VERSION:
        return -1
    return partition.log.epoch_at(offset)


def _find(log: PartitionLog, timestamp: int, committed: bool) -> _Found:
    upper = log.last_stable_offset if committed else log.end_offset
    if timestamp == _LATEST:
        return _Found(upper)
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return _Found(log.start_offset)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _Found()
    if timestamp == _MAX_TIMESTAMP:
        latest = log.batch_of_max_timestamp()
        if latest is None:
            return _Found()
        timestamp = latest.max_timestamp
    timed_offset = _first(log, timestamp)
    return timed_offset if timed_offset.offset < upper else _Found()


def _first(log: PartitionLog, timestamp: int) -> _Found:
    """Return the first record at `timestamp` or later; a batch may have lost the one it claims."""
    for stored in log.batches_reaching(timestamp):
        for batch in read_batches(stored.data):
            timed_offset = first_reaching(batch.records(check_crc=False), timestamp)
            if timed_offset is not None and timed_offset[0] >= log.start_offset:
                return _Found(*timed_offset)
    return _Found()


def _refused(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index, error_code=code, offset=-1, timestamp=-1, leader_epoch=-1
    )
