"""Fetch: records from an offset on, at once or when enough of them have come.

Sessions (KIP-227) are optional for a broker: every answer has session id 0, as that of a broker
whose session cache is full, so clients send their whole list each time.
"""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafka_fast.testing.broker.leaders import LeaderHints, led_partition
from kafka_fast.testing.broker.log import Piece
from kafka_fast.testing.broker.request import Request, Waiting
from kafka_fast.testing.broker.topics import Partition, Topic

_IDS_FROM_VERSION = 13
_HINTS_FROM_VERSION = 16  # KIP-951
_FOLLOWERS_FROM_VERSION = 11  # since then replicas that do not lead are read from (KIP-392)
_FULL_FETCH_EPOCHS = (0, -1)  # a new session is asked for, or none
_MAX_BYTES = 55 * 1024 * 1024  # Kafka's fetch.max.bytes of the broker
_READ_COMMITTED = 1


class _Reading:
    """One pass over the partitions of a request, while its byte budget lasts."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.hints = LeaderHints(request.state)
        self.left = min(request.body.max_bytes, _MAX_BYTES)
        self.size = 0  # bytes of records read
        self.read: list[tuple[PartitionData, list[Piece]]] = []  # records not yet put together
        self.failed = False  # a partition has an error: the answer does not wait

    def look(self) -> FetchResponse:
        """Return the answer as of now, without the records."""
        body: FetchRequest = self.request.body
        response = FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=asked.topic,
                    topic_id=asked.topic_id,
                    partitions=[
                        self._partition(asked, one)
                        for one in {one.partition: one for one in asked.partitions}.values()
                    ],
                )
                for asked in body.topics
            ]
        )
        if self.request.version >= _HINTS_FROM_VERSION:
            response.node_endpoints = self.hints.fetch_endpoints()
        return response

    def finish(self) -> None:
        """Put the records into the answer."""
        for data, pieces in self.read:
            data.records = b"".join(pieces)

    def _partition(self, asked: FetchTopic, one: FetchPartition) -> PartitionData:
        try:
            return self._read(asked, one)
        except BrokerError as error:
            self.failed = True
            return self._failed(asked, one, error)

    def _read(self, asked: FetchTopic, one: FetchPartition) -> PartitionData:
        topic = self._find(asked)
        planned = self.request.planned_error(topic.name, one.partition)
        if planned is not None:
            self.failed = True
            return _refused(one.partition, planned.code)
        partition = led_partition(
            self.request,
            topic,
            one.partition,
            one.current_leader_epoch,
            or_followed=self.request.version >= _FOLLOWERS_FROM_VERSION,
        )
        log = partition.log
        if not log.start_offset <= one.fetch_offset <= log.end_offset:
            raise OffsetOutOfRange(f"{one.fetch_offset} is not in the log")
        if one.partition_max_bytes < 0:
            raise UnknownServerError(f"{one.partition_max_bytes} bytes asked for")
        limit = max(0, min(one.partition_max_bytes, self.left))
        pieces = log.read(one.fetch_offset, limit, at_least_one=self.size == 0)
        size = sum(map(len, pieces))
        self.left -= size
        self.size += size
        data = PartitionData(
            partition_index=one.partition,
            error_code=0,
            high_watermark=log.end_offset,
            last_stable_offset=log.end_offset,
            log_start_offset=log.start_offset,
            aborted_transactions=(
                [] if self.request.body.isolation_level == _READ_COMMITTED else None
            ),
        )
        self.read.append((data, pieces))
        return data

    def _find(self, asked: FetchTopic) -> Topic:
        if self.request.version >= _IDS_FROM_VERSION:
            return self.request.state.topic_by_id(asked.topic_id)
        topic = self.request.state.topics.get(asked.topic)
        if topic is None:
            raise UnknownTopicOrPartition(f"no topic {asked.topic!r}")
        return topic

    def _failed(self, asked: FetchTopic, one: FetchPartition, error: BrokerError) -> PartitionData:
        refused = _refused(one.partition, error.code)
        if (
            isinstance(error, NotLeaderOrFollower | FencedLeaderEpoch)
            and self.request.version >= _HINTS_FROM_VERSION
        ):
            partition: Partition = self._find(asked).partitions[one.partition]
            refused.current_leader = self.hints.for_fetch(partition)
        return refused


def answer(request: Request) -> FetchResponse | Waiting:
    """Answer at once if there is enough, an error or no time to wait; else when there is."""
    body: FetchRequest = request.body
    if body.session_epoch not in _FULL_FETCH_EPOCHS:
        return FetchResponse(error_code=FetchSessionIdNotFound.code, responses=[])
    response = _enough(request, body.max_wait_ms <= 0 or not body.topics)
    if response is not None:
        return response

    def retry(now: float, last_chance: bool) -> FetchResponse | None:
        return _enough(request, last_chance)

    return Waiting(request.now + body.max_wait_ms / 1000, retry)


def _enough(request: Request, whatever_there_is: bool) -> FetchResponse | None:
    reading = _Reading(request)
    response = reading.look()
    if not (whatever_there_is or reading.failed or reading.size >= request.body.min_bytes):
        return None
    reading.finish()
    return response


def _refused(index: int, code: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        records=b"",
    )
