"""Operations on where share groups go on to read: list, alter, delete (KIP-932).

A share group has no committed offsets. It has a start offset for each partition: records before it
are not delivered any more. Behind it some records may have been acknowledged already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from kafka_fast.control.admin.operation import NO_SUCH_TOPIC, Operation, OperationResults
from kafka_fast.control.admin.operations.groups.committed import (
    GROUPS_PER_FETCH,
    OffsetsOperation,
    of_partitions,
)
from kafka_fast.control.admin.types.offsets import ShareGroupOffset
from kafka_fast.control.arguments import checked_offset, mapping_of, names_of, partitions_of
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Meaning
from kafka_fast.control.requests.targets import (
    Coordinator,
    CoordinatorKind,
    CoordinatorOfEach,
)
from kafka_fast.errors import KafkaError, broker_error, error_description
from kafka_fast.protocol.apis.share_groups.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kafka_fast.protocol.apis.share_groups.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kafka_fast.protocol.apis.share_groups.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
)
from kafka_fast.types import TopicPartition

ShareOffsets: TypeAlias = OperationResults[TopicPartition, ShareGroupOffset | None]


class ListShareGroupOffsets(Operation[str, ShareOffsets]):
    """DescribeShareGroupOffsets. The items are the groups' ids."""

    name = "list_share_group_offsets"
    noun = "group"
    permission = "DESCRIBE on the group"
    since = "4.1"
    request_class = DescribeShareGroupOffsetsRequest
    response_class = DescribeShareGroupOffsetsResponse

    def __init__(self, groups: Mapping[str, Iterable[TopicPartition] | None]) -> None:
        """Take what is asked about.

        Args:
            groups: the partitions of each group; None: all that it has offsets of.
        """
        groups = mapping_of(groups, "groups with their partitions")
        super().__init__(CoordinatorOfEach(CoordinatorKind.GROUP), groups)
        self._partitions = {
            group_id: None if partitions is None else list(dict.fromkeys(partitions_of(partitions)))
            for group_id, partitions in groups.items()
        }

    def max_items(self, version: int) -> int:
        """Return how many groups one request takes."""
        return GROUPS_PER_FETCH

    def build(self, items: Sequence[str], version: int) -> DescribeShareGroupOffsetsRequest:
        """Ask for the offsets."""
        return DescribeShareGroupOffsetsRequest(groups=[self._group(item) for item in items])

    def _group(self, group_id: str) -> DescribeShareGroupOffsetsRequestGroup:
        partitions = self._partitions[group_id]
        if partitions is None:
            return DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
        return DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)

    def outcomes(
        self,
        answer: DescribeShareGroupOffsetsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[ShareOffsets]]]:
        """Return where each group goes on, partition by partition."""
        for group in answer.groups:
            if group.error_code:
                refusal = self.refusal(group.group_id, group.error_code, group.error_message)
                yield group.group_id, refusal
            elif group.group_id in self._partitions:
                yield group.group_id, self._offsets_of(group)

    def _offsets_of(self, group: DescribeShareGroupOffsetsResponseGroup) -> Meaning[ShareOffsets]:
        offsets: dict[TopicPartition, ShareGroupOffset | None] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for topic in group.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.topic_name, part.partition_index)
                if part.error_code:
                    words = part.error_message or error_description(part.error_code)
                    text = f"{self.api} of {partition} in group {group.group_id!r}: {words}"
                    errors[partition] = broker_error(part.error_code, text)
                else:
                    offsets[partition] = _share_offset(part)
        return of_partitions(self.api, self._partitions[group.group_id], offsets, errors)


def _share_offset(part: DescribeShareGroupOffsetsResponsePartition) -> ShareGroupOffset | None:
    if part.start_offset < 0:
        return None
    return ShareGroupOffset(
        part.start_offset,
        None if part.leader_epoch < 0 else part.leader_epoch,
        None if part.lag < 0 else part.lag,
    )


class AlterShareGroupOffsets(OffsetsOperation):
    """AlterShareGroupOffsets, of a group that has no members."""

    name = "alter_share_group_offsets"
    permission = "READ on the group, and READ on the topic"
    since = "4.1"
    request_class = AlterShareGroupOffsetsRequest
    response_class = AlterShareGroupOffsetsResponse

    def __init__(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the offsets.

        Args:
            group_id: the group.
            offsets: where the group goes on, by partition.

        Raises:
            TypeError: an offset is none.
            UsageError: an offset is negative.
        """
        offsets = mapping_of(offsets, "offsets")
        super().__init__(group_id, offsets)
        self._offsets = {
            partition: checked_offset(offset, f"an offset of {partition}")
            for partition, offset in offsets.items()
        }

    def build(self, items: Sequence[TopicPartition], version: int) -> AlterShareGroupOffsetsRequest:
        """Set the offsets."""
        return AlterShareGroupOffsetsRequest(
            group_id=self._group_id,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=partition,
                            start_offset=self._offsets[TopicPartition(topic, partition)],
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(items).items()
            ],
        )

    def outcomes(
        self,
        answer: AlterShareGroupOffsetsResponse,
        items: Sequence[TopicPartition],
        source: AnswerSource,
    ) -> Iterator[tuple[TopicPartition, Meaning[None]]]:
        """Return which offsets were set."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code, answer.error_message)
            return
        for topic in answer.responses:
            for part in topic.partitions:
                partition = TopicPartition(topic.topic_name, part.partition_index)
                code, said = part.error_code, part.error_message
                yield partition, self.done_or_refusal(partition, code, said)


class DeleteShareGroupOffsets(Operation[str, None]):
    """DeleteShareGroupOffsets, of a group that has no members. The items are topics."""

    name = "delete_share_group_offsets"
    permission = "DELETE on the group, and READ on the topic"
    since = "4.1"
    final = frozenset(NO_SUCH_TOPIC)
    words = NO_SUCH_TOPIC
    request_class = DeleteShareGroupOffsetsRequest
    response_class = DeleteShareGroupOffsetsResponse

    def __init__(self, group_id: str, topics: Iterable[str]) -> None:
        """Take what is forgotten.

        Args:
            group_id: the group.
            topics: the names of the topics of which it forgets where it was.
        """
        names = names_of(topics, "the names of topics")
        super().__init__(Coordinator(CoordinatorKind.GROUP, group_id), names)
        self._group_id = group_id

    def describe(self, item: str) -> str:
        """Return the request, the topic and the group."""
        return f"{self.api} of topic {item!r} in group {self._group_id!r}"

    def build(self, items: Sequence[str], version: int) -> DeleteShareGroupOffsetsRequest:
        """Ask for the end of the offsets."""
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=item) for item in items]
        return DeleteShareGroupOffsetsRequest(group_id=self._group_id, topics=topics)

    def outcomes(
        self,
        answer: DeleteShareGroupOffsetsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return of which topics the offsets were deleted."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code, answer.error_message)
            return
        for topic in answer.responses:
            name, code = topic.topic_name, topic.error_code
            yield name, self.done_or_refusal(name, code, topic.error_message)
