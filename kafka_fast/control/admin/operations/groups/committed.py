"""Operations on the offsets that groups of consumers have committed: list, alter, delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

from kafka_fast.control.admin.operation import NO_SUCH_PARTITION, Operation, OperationResults
from kafka_fast.control.arguments import mapping_of, offset_to_read, partitions_of
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning, Retry
from kafka_fast.control.requests.targets import (
    Coordinator,
    CoordinatorKind,
    CoordinatorOfEach,
)
from kafka_fast.errors import (
    ErrorCode,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
)
from kafka_fast.protocol.apis.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_fast.protocol.apis.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition

FIRST_FETCH_WITH_STABLE = 7
FIRST_FETCH_WITH_GROUPS = 8
LAST_FETCH_WITH_NAMES = 9
LAST_COMMIT_WITH_NAMES = 9
"""Later versions know topics by their ids only. A group's topics may not exist any more."""

GROUPS_PER_FETCH = 20
OFFSETS_PER_COMMIT = 2000
"""More would make an answer that keeps the control thread from other work."""


V = TypeVar("V")

CommittedByGroup: TypeAlias = OperationResults[TopicPartition, OffsetAndMetadata | None]


class ListGroupOffsets(Operation[str, CommittedByGroup]):
    """OffsetFetch: what groups have committed. The items are the groups' ids."""

    name = "list_consumer_group_offsets"
    noun = "group"
    permission = "DESCRIBE on the group"
    request_class = OffsetFetchRequest
    response_class = OffsetFetchResponse

    def __init__(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool
    ) -> None:
        """Take what is asked about.

        Args:
            groups: the partitions of each group; None: all that it has committed offsets of.
            require_stable: whether to wait for open transactions that commit offsets.
        """
        groups = mapping_of(groups, "groups with their partitions")
        super().__init__(CoordinatorOfEach(CoordinatorKind.GROUP), groups)
        self._partitions = {
            group_id: None if partitions is None else list(dict.fromkeys(partitions_of(partitions)))
            for group_id, partitions in groups.items()
        }
        self._require_stable = require_stable

    def max_version(self, items: Sequence[str]) -> int:
        """Ask by names."""
        return LAST_FETCH_WITH_NAMES

    def max_items(self, version: int) -> int:
        """Return how many groups one request takes."""
        return GROUPS_PER_FETCH if version >= FIRST_FETCH_WITH_GROUPS else 1

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse to wait for transactions if the broker cannot."""
        if self._require_stable and version < FIRST_FETCH_WITH_STABLE:
            return UnsupportedVersionError(
                f"{self.describe(item)}: brokers wait for open transactions (require_stable) "
                "since Kafka 2.5 (KIP-447)"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> OffsetFetchRequest:
        """Ask for the offsets."""
        request = OffsetFetchRequest(require_stable=self._require_stable)
        if version < FIRST_FETCH_WITH_GROUPS:
            (request.group_id,) = items
            partitions = self._partitions[request.group_id]
            if partitions is None:
                request.topics = None
            else:
                request.topics = [
                    OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                    for topic, numbers in by_topic(partitions).items()
                ]
            return request
        request.groups = [self._group(item) for item in items]
        return request

    def _group(self, group_id: str) -> OffsetFetchRequestGroup:
        partitions = self._partitions[group_id]
        if partitions is None:
            return OffsetFetchRequestGroup(group_id=group_id, topics=None)
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
        return OffsetFetchRequestGroup(group_id=group_id, topics=topics)

    def outcomes(
        self, answer: OffsetFetchResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[CommittedByGroup]]]:
        """Return what each group has committed, partition by partition."""
        if source.version < FIRST_FETCH_WITH_GROUPS:
            for item in items:
                yield item, self._meaning_for(item, answer.error_code, answer.topics)
            return
        for group in answer.groups:
            if group.group_id in self._partitions:
                meaning = self._meaning_for(group.group_id, group.error_code, group.topics)
                yield group.group_id, meaning

    def _meaning_for(self, group_id: str, code: int, topics: Any) -> Meaning[CommittedByGroup]:
        """Return what a group has committed.

        Args:
            group_id: the group.
            code: the error of all its partitions.
            topics: with their partitions, from the answer.
        """
        if code:
            return self.refusal(group_id, code)
        offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for topic in topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    words = described(part.error_code, self.api)
                    text = f"{self.api} of {partition} in group {group_id!r}: {words}"
                    errors[partition] = broker_error(part.error_code, text)
                    if part.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                        return Retry(errors[partition])
                elif part.committed_offset < 0:
                    offsets[partition] = None
                else:
                    offsets[partition] = OffsetAndMetadata(
                        part.committed_offset, part.committed_leader_epoch, part.metadata or ""
                    )
        return of_partitions(self.api, self._partitions[group_id], offsets, errors)


def of_partitions(
    api: str,
    partitions: Sequence[TopicPartition] | None,
    offsets: dict[TopicPartition, V],
    errors: dict[TopicPartition, KafkaError],
) -> Meaning[OperationResults[TopicPartition, V]]:
    """Return the offsets of a group, in the order in which they were asked for.

    Args:
        api: that has answered.
        partitions: those that were asked about; None: all that there are.
        offsets: of the partitions that have one.
        errors: of the others.
    """
    keys = sorted({**offsets, **errors}) if partitions is None else list(partitions)
    for key in keys:
        if key not in offsets and key not in errors:
            return Retry(ProtocolError(f"the answer to {api} leaves {key} out"))
    return Done(OperationResults(keys, offsets, errors))


class OffsetsOperation(Operation[TopicPartition, None]):
    """What the operations on one group's offsets have in common. The items are partitions."""

    final = frozenset(NO_SUCH_PARTITION)
    words = NO_SUCH_PARTITION

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Take what is changed.

        Args:
            group_id: the group.
            partitions: those whose offsets are changed.
        """
        super().__init__(Coordinator(CoordinatorKind.GROUP, group_id), partitions_of(partitions))
        self._group_id = group_id

    def describe(self, item: TopicPartition) -> str:
        """Return the request, the partition and the group."""
        return f"{self.api} of {item} in group {self._group_id!r}"


class AlterGroupOffsets(OffsetsOperation):
    """OffsetCommit, in place of a group that has no members."""

    name = "alter_consumer_group_offsets"
    permission = "READ on the group, and READ on the topic"
    words: ClassVar = {
        **NO_SUCH_PARTITION,
        ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, and only they commit its offsets",
    }
    request_class = OffsetCommitRequest
    response_class = OffsetCommitResponse

    def __init__(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        """Take the offsets.

        Args:
            group_id: the group; one that does not exist is made.
            offsets: where the group goes on, by partition.

        Raises:
            TypeError: an offset is none.
            UsageError: there can be no such offset.
        """
        offsets = mapping_of(offsets, "offsets")
        super().__init__(group_id, offsets)
        self._offsets = {
            partition: offset_to_read(at, partition) for partition, at in offsets.items()
        }

    def max_version(self, items: Sequence[TopicPartition]) -> int:
        """Name the topics."""
        return LAST_COMMIT_WITH_NAMES

    def max_items(self, version: int) -> int:
        """Return how many offsets one request takes."""
        return OFFSETS_PER_COMMIT

    def build(self, items: Sequence[TopicPartition], version: int) -> OffsetCommitRequest:
        """Commit the offsets, as no member."""
        return OffsetCommitRequest(
            group_id=self._group_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        self._part(TopicPartition(topic, partition)) for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(items).items()
            ],
        )

    def _part(self, partition: TopicPartition) -> OffsetCommitRequestPartition:
        at = self._offsets[partition]
        return OffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=at.offset,
            committed_leader_epoch=at.leader_epoch,
            committed_metadata=at.metadata,
        )

    def outcomes(
        self, answer: OffsetCommitResponse, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return which offsets were committed."""
        for topic in answer.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                yield partition, self.done_or_refusal(partition, part.error_code)


class DeleteGroupOffsets(OffsetsOperation):
    """OffsetDelete: forget what a group has committed of topics that its members do not read."""

    name = "delete_consumer_group_offsets"
    permission = "DELETE on the group, and READ on the topic"
    since = "2.4"
    words: ClassVar = {
        **NO_SUCH_PARTITION,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group subscribe to the topic",
    }
    request_class = OffsetDeleteRequest
    response_class = OffsetDeleteResponse

    def max_items(self, version: int) -> int:
        """Return how many offsets one request takes."""
        return OFFSETS_PER_COMMIT

    def build(self, items: Sequence[TopicPartition], version: int) -> OffsetDeleteRequest:
        """Ask for the end of the offsets."""
        return OffsetDeleteRequest(
            group_id=self._group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=partition)
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(items).items()
            ],
        )

    def outcomes(
        self, answer: OffsetDeleteResponse, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return which offsets were deleted."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code)
            return
        for topic in answer.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                yield partition, self.done_or_refusal(partition, part.error_code)
