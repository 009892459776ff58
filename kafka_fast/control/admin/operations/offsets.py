"""The operation on offsets of partitions: ListOffsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.types.offsets import IsolationLevel, ListedOffset, OffsetSpec
from kafka_fast.control.arguments import checked_choice, mapping_of
from kafka_fast.control.consumer.offsets import list_offsets_request, time_answers
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.leader_call import PARTITIONS_PER_REQUEST
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import Leaders
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.protocol.apis.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafka_fast.times import query_ms
from kafka_fast.types import TopicPartition

FIRST_VERSIONS: Mapping[int, tuple[int, str]] = {
    OffsetSpec.MAX_TIMESTAMP: (7, "3.0"),
    OffsetSpec.EARLIEST_LOCAL: (8, "3.4"),
    OffsetSpec.LATEST_TIERED: (9, "3.9"),
    OffsetSpec.EARLIEST_PENDING_UPLOAD: (11, "4.2"),
}
"""The first version of the API, and of Kafka, that knows a special value."""


class ListOffsets(Operation[TopicPartition, ListedOffset]):
    """ListOffsets: offsets by their place in the log, or by time."""

    name = "list_offsets"
    permission = "DESCRIBE on the topic"
    request_class = ListOffsetsRequest
    response_class = ListOffsetsResponse

    def __init__(
        self,
        offsets: Mapping[TopicPartition, OffsetSpec | int | datetime],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> None:
        """Take what is looked up.

        Args:
            offsets: an `OffsetSpec` for each partition, or a time: Unix ms, or a datetime.
            isolation_level: whose latest offset is meant.

        Raises:
            TypeError: what is looked up has another type.
            UsageError: the isolation level is none; or a time is none, has no time zone, or is most
                likely in another unit.
        """
        offsets = mapping_of(offsets, "offsets")
        super().__init__(Leaders(), offsets)
        self._isolation_level = checked_choice(IsolationLevel, isolation_level, "isolation_level")
        self._times = {
            partition: int(spec)
            if isinstance(spec, OffsetSpec)
            else query_ms(spec, f"the offset of {partition}")
            for partition, spec in offsets.items()
        }

    def unsupported(self, item: TopicPartition, version: int) -> KafkaError | None:
        """Refuse what a broker is too old for."""
        first, release = FIRST_VERSIONS.get(self._times[item], (0, ""))
        if version >= first:
            return None
        spec = OffsetSpec(self._times[item]).name
        return UnsupportedVersionError(
            f"{self.describe(item)}: brokers know {spec} since Kafka {release}"
        )

    def max_items(self, version: int) -> int:
        """Return how many partitions one answer may be about."""
        return PARTITIONS_PER_REQUEST

    def build(self, items: Sequence[TopicPartition], version: int) -> ListOffsetsRequest:
        """Ask for the offsets."""
        return list_offsets_request(
            {item: self._times[item] for item in items},
            {},
            isolation_level=self._isolation_level,
            timeout_ms=self.timeout_ms,
        )

    def outcomes(
        self, answer: ListOffsetsResponse, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterator[tuple[TopicPartition, Meaning[ListedOffset]]]:
        """Return the offset of each partition."""
        for partition, code, told in time_answers(answer):
            if code:
                yield partition, self.refusal(partition, code)
            else:
                timestamp = None if told.timestamp < 0 else told.timestamp
                epoch = None if told.leader_epoch < 0 else told.leader_epoch
                yield partition, Done(ListedOffset(told.offset, timestamp, epoch))
