"""Fetch: records from an offset on, at once or when enough of them have come.

sessions.open_context ─► partitions ─► one pass of _Reading ─► enough? ─► sessions' finish ─► answer
                                    ▲                     │ no
                                    └──── new records, leaders, or the end of the wait
"""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    FencedLeaderEpoch,
    InconsistentTopicId,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.records.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.partitions.leaders import LeaderHints, led_partition
from kafka_fast.testing.broker.partitions.log import Piece
from kafka_fast.testing.broker.partitions.replicas import closest_replica, end_at
from kafka_fast.testing.broker.received_request import ReceivedRequest, Waiting
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.sessions import IDS_FROM_VERSION, Context, Wanted

_HINTS_FROM_VERSION = 16  # KIP-951
_FOLLOWERS_FROM_VERSION = 11  # since then replicas that do not lead are read from (KIP-392)
_MAX_BYTES = 55 * 1024 * 1024  # Kafka's fetch.max.bytes of the broker
_READ_COMMITTED = 1
_NO_EPOCH = -1


class _Reading:
    """One pass over the partitions of a request, while its byte budget lasts."""

    def __init__(self, request: ReceivedRequest) -> None:
        self.request = request
        self.hints = LeaderHints(request.state)
        self.left = min(request.body.max_bytes, _MAX_BYTES)
        self.size = 0  # bytes of records read
        self.urgent = False  # an error, or where to read instead: the answer does not wait
        self.answers: list[tuple[Wanted, PartitionData]] = []
        self._read: list[tuple[PartitionData, list[Piece]]] = []  # not yet put together

    def collect_answers(self, partitions: list[Wanted]) -> None:
        """Collect the answers as of now, without the records."""
        unknown = []
        for requested in partitions:
            missing = self._missing(requested)
            if missing is not None:
                self.urgent = True
                unknown.append((requested, _refused(requested.asked.partition, missing.code)))
            else:
                self.answers.append((requested, self._partition(requested)))
        self.answers += unknown  # at the end, as in Kafka

    def finish(self) -> None:
        """Put the records into the answers."""
        for data, pieces in self._read:
            data.records = b"".join(pieces)

    def _missing(self, requested: Wanted) -> type[BrokerError] | None:
        """Return the error if the partition does not exist, or not for this user."""
        if requested.topic is None:
            return UnknownTopicId
        if not self.request.allows(Operation.READ, ResourceType.TOPIC, requested.topic):
            return TopicAuthorizationFailed
        topic = self.request.state.topics.get(requested.topic)
        if topic is None or not 0 <= requested.asked.partition < len(topic.partitions):
            return UnknownTopicOrPartition
        return None

    def _partition(self, requested: Wanted) -> PartitionData:
        try:
            return self._look_into(requested)
        except BrokerError as error:
            self.urgent = True
            refused = _refused(requested.asked.partition, error.code)
            if (
                isinstance(error, NotLeaderOrFollower | FencedLeaderEpoch)
                and self.request.version >= _HINTS_FROM_VERSION
            ):
                refused.current_leader = self.hints.for_fetch(self._find(requested))
            return refused

    def _find(self, requested: Wanted) -> Partition:
        return self.request.state.partition(requested.topic or "", requested.asked.partition)

    def _look_into(self, requested: Wanted) -> PartitionData:
        request, asked = self.request, requested.asked
        topic = request.state.topics[requested.topic or ""]
        planned = request.planned_error(topic.name, asked.partition)
        if planned is not None:
            self.urgent = True
            return _refused(asked.partition, planned.code)
        if request.version >= IDS_FROM_VERSION and topic.topic_id != requested.topic_id:
            raise InconsistentTopicId(f"{topic.name} was made anew since the session began")
        partition = led_partition(
            request,
            topic,
            asked.partition,
            asked.current_leader_epoch,
            or_followed=request.version >= _FOLLOWERS_FROM_VERSION,
        )
        data = self._described(asked, partition)
        closest = self._closest(partition, asked)
        if closest is not None:
            self.urgent = True
            data.preferred_read_replica = closest
        elif not self._diverges(asked, partition, data):
            self._read_records(asked, partition, data)
        return data

    def _described(self, asked: FetchPartition, partition: Partition) -> PartitionData:
        """Return the answer without records, which says where the log stands."""
        log = partition.log
        end = end_at(partition, self.request.node_id)
        return PartitionData(
            partition_index=asked.partition,
            error_code=0,
            high_watermark=end,
            last_stable_offset=min(log.last_stable_offset, end),
            log_start_offset=log.start_offset,
            aborted_transactions=None,
            records=b"",
        )

    def _closest(self, partition: Partition, asked: FetchPartition) -> int | None:
        request = self.request
        if request.version < _FOLLOWERS_FROM_VERSION or partition.leader != request.node_id:
            return None
        return closest_replica(request.state, partition, request.body.rack_id, asked.fetch_offset)

    def _diverges(self, asked: FetchPartition, partition: Partition, data: PartitionData) -> bool:
        """Tell whether the client's log diverges from this one, and put into `data` where."""
        if asked.last_fetched_epoch == _NO_EPOCH:
            return False
        epoch, end = partition.log.end_of_epoch(asked.last_fetched_epoch)
        if epoch == _NO_EPOCH or asked.fetch_offset < partition.log.start_offset:
            raise OffsetOutOfRange(f"epoch {asked.last_fetched_epoch}, {asked.fetch_offset}")
        if epoch >= asked.last_fetched_epoch and end >= asked.fetch_offset:
            return False
        self.urgent = True
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
        return True

    def _read_records(
        self, asked: FetchPartition, partition: Partition, data: PartitionData
    ) -> None:
        log, offset = partition.log, asked.fetch_offset
        if not log.start_offset <= offset <= data.high_watermark:
            raise OffsetOutOfRange(f"{offset} is not in the log")
        upper = data.high_watermark
        if self.request.body.isolation_level == _READ_COMMITTED:
            upper = data.last_stable_offset
            data.aborted_transactions = []
        if offset >= upper:
            return
        if asked.partition_max_bytes < 0:
            raise UnknownServerError(f"{asked.partition_max_bytes} bytes asked for")
        limit = max(0, min(asked.partition_max_bytes, self.left))
        pieces = log.read(offset, upper, limit, at_least_one=self.size == 0)
        size = sum(map(len, pieces))
        self.left -= size
        self.size += size
        if data.aborted_transactions is not None:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
                for one in log.transactions.aborted_from(offset)
            ]
        self._read.append((data, pieces))


@answers(FetchRequest)
def answer(request: ReceivedRequest) -> FetchResponse | Waiting:
    """Answer at once if there is enough, an error or no time to wait; else when there is."""
    body: FetchRequest = request.body
    begun = request.sessions.open_context(
        body, request.version, request.state.topic_names, request.now
    )
    if isinstance(begun, FetchResponse):
        return begun
    context = begun
    at_once = body.max_wait_ms <= 0 or not context.partitions
    response = _enough(request, context, request.now, at_once)
    if response is not None:
        return response

    def retry(now: float, last_chance: bool) -> FetchResponse | None:
        return _enough(request, context, now, last_chance)

    return Waiting(request.now + body.max_wait_ms / 1000, retry)


def _enough(
    request: ReceivedRequest, context: Context, now: float, whatever_there_is: bool
) -> FetchResponse | None:
    body: FetchRequest = request.body
    reading = _Reading(request)
    reading.collect_answers(context.partitions)
    enough = reading.size >= min(body.min_bytes, body.max_bytes, _MAX_BYTES)
    if not (whatever_there_is or reading.urgent or enough):
        return None
    reading.finish()
    response = context.finish(reading.answers, now)
    if request.version >= _HINTS_FROM_VERSION:
        response.node_endpoints = reading.hints.fetch_endpoints()
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
