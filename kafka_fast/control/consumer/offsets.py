"""Two calls to a partition's leader: offsets by time, and the ends of leader epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.leader_call import LeaderCall
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_fast.protocol.schema import Request
from kafka_fast.types import TopicPartition

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
CONSUMER_REPLICA_ID = -1


class TimeAnswer(NamedTuple):
    """The first offset at or after a time."""

    offset: int
    """-1 if there is none."""
    timestamp: int
    """The timestamp of that record; -1 for the special values."""
    leader_epoch: int
    """The leader epoch of that record; -1 if unknown."""


def list_offsets_request(
    times: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int],
    *,
    isolation_level: int,
    timeout_ms: int,
) -> ListOffsetsRequest:
    """Return a request for offsets by time.

    Args:
        times: a Unix time in ms, or a special value, for each partition.
        epochs: the leader epochs that are known.
        isolation_level: 1: the latest offset is the last stable one (read_committed); 0: it is the
            high watermark.
        timeout_ms: how long a broker may read remote storage.
    """
    return ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA_ID,
        isolation_level=isolation_level,
        timeout_ms=timeout_ms,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition,
                        current_leader_epoch=epochs.get(TopicPartition(topic, partition), -1),
                        timestamp=times[TopicPartition(topic, partition)],
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(times).items()
        ],
    )


def time_answers(answer: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, int, TimeAnswer]]:
    """Yield partition, error code and answer for each partition of a response."""
    for topic in answer.topics:
        for part in topic.partitions:
            time_answer = TimeAnswer(part.offset, part.timestamp, part.leader_epoch)
            yield TopicPartition(topic.name, part.partition_index), part.error_code, time_answer


class OffsetsByTime(LeaderCall[int, TimeAnswer]):
    """ListOffsets: the detail is a time, Unix ms or a special value."""

    request_class = ListOffsetsRequest
    response_class = ListOffsetsResponse

    def __init__(
        self,
        context: Context[ConsumerSettings],
        *,
        on_result: Callable[[TopicPartition, int, TimeAnswer, float], None],
        on_error: Callable[[TopicPartition, int, KafkaError, float], None],
    ) -> None:
        """Keep the isolation level and the timeout for the requests; see `LeaderCall`."""
        super().__init__(context, on_result=on_result, on_error=on_error)
        settings = context.settings
        # In read_committed the latest offset is the last stable one.
        self._isolation_level = int(settings.is_read_committed)
        self._timeout_ms = settings.request_timeout_ms  # for brokers that read remote storage

    def request(
        self, wanted: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
    ) -> Request:
        """Return the request; `wanted` has a Unix time in ms, or a special value, for each."""
        return list_offsets_request(
            wanted, epochs, isolation_level=self._isolation_level, timeout_ms=self._timeout_ms
        )

    def answers(
        self, answer: ListOffsetsResponse
    ) -> Iterable[tuple[TopicPartition, int, TimeAnswer]]:
        """Return partition, error code and answer for each partition of a response."""
        return time_answers(answer)


class EpochAnswer(NamedTuple):
    """The end of the largest epoch that is not above the one asked for."""

    epoch: int
    """-1: the leader knows no such epoch."""
    end_offset: int
    """-1: the leader knows no such epoch, which does not mean a truncation."""


class EpochEnds(LeaderCall[int, EpochAnswer]):
    """OffsetForLeaderEpoch: the detail is an epoch."""

    request_class = OffsetForLeaderEpochRequest
    response_class = OffsetForLeaderEpochResponse

    def request(
        self, wanted: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
    ) -> Request:
        """Return the request; `wanted` has the epoch for each partition."""
        return OffsetForLeaderEpochRequest(
            replica_id=CONSUMER_REPLICA_ID,
            topics=[
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=partition,
                            current_leader_epoch=epochs[TopicPartition(topic, partition)],
                            leader_epoch=wanted[TopicPartition(topic, partition)],
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(wanted).items()
            ],
        )

    def answers(
        self, answer: OffsetForLeaderEpochResponse
    ) -> Iterable[tuple[TopicPartition, int, EpochAnswer]]:
        """Return partition, error code and answer for each partition of a response."""
        for topic in answer.topics:
            for part in topic.partitions:
                epoch_answer = EpochAnswer(part.leader_epoch, part.end_offset)
                yield TopicPartition(topic.topic, part.partition), part.error_code, epoch_answer
