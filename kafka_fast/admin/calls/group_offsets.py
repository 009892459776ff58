"""The calls of `Admin` about offsets of groups: where their members go on to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.offsets import ShareGroupOffset
    from kafka_fast.types import OffsetAndMetadata, TopicPartition


class GroupOffsetCalls(AdminCalls):
    """Offsets of groups: list, alter and delete them."""

    def list_consumer_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, AdminResult[TopicPartition, OffsetAndMetadata | None]]:
        """Return what groups have committed: for each group, an offset for each partition.

        OffsetFetch; needs DESCRIBE on the group and on the topic. A partition that has an error
        does not keep the others away: `result["group"].errors` has it. Of a partition that was
        asked for, and of which the group has committed nothing, the value is None. A group that
        does not exist has committed nothing.

        Args:
            groups: the partitions of each group; None: all that it has committed offsets of, but
                for topics that this client may not see.
            require_stable: whether to wait for open transactions that commit offsets (KIP-447).
                Since Kafka 2.5.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.admin.workflows.group_offsets import list_offsets_of_groups
        from kafka_fast.control.admin.operations.groups.committed import ListGroupOffsets

        operation = ListGroupOffsets(groups, require_stable=require_stable)
        return self._core.driver.run(list_offsets_of_groups(self._steps, operation, timeout))

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Commit offsets in place of a group that has no members. A group that is new is made.

        OffsetCommit; needs READ on the group and on the topic. If the group has members, each
        partition is an UnknownMemberId. No offset is compared with the log:
        `reset_consumer_group_offsets` does that.

        Args:
            group_id: the group.
            offsets: where the group goes on, by partition: the offset of the record to read next.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an offset is negative.
        """
        from kafka_fast.control.admin.operations.groups.committed import AlterGroupOffsets

        operation = AlterGroupOffsets(group_id, offsets)
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def delete_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Forget what a group has committed of partitions.

        OffsetDelete; needs DELETE on the group and READ on the topic. Since Kafka 2.4. A topic that
        members subscribe to is a GroupSubscribedToTopic.

        Args:
            group_id: the group.
            partitions: those to forget.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.committed import DeleteGroupOffsets

        operation = DeleteGroupOffsets(group_id, partitions)
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    # ---- share groups ----

    def list_share_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout: float | None = None,
    ) -> AdminResult[str, AdminResult[TopicPartition, ShareGroupOffset | None]]:
        """Return where share groups go on to read: for each group, an offset for each partition.

        DescribeShareGroupOffsets; needs DESCRIBE on the group and on the topic. Since Kafka 4.1. Of
        a partition that the group has not read yet, the value is None. A group that does not exist
        has read nothing.

        Args:
            groups: the partitions of each group; None: all that it has offsets of, but for topics
                that this client may not see.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.admin.workflows.group_offsets import list_offsets_of_groups
        from kafka_fast.control.admin.operations.groups.shared import ListShareGroupOffsets

        operation = ListShareGroupOffsets(groups)
        return self._core.driver.run(list_offsets_of_groups(self._steps, operation, timeout))

    def alter_share_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Say where a share group that has no members goes on to read.

        AlterShareGroupOffsets; needs READ on the group and on the topic. Since Kafka 4.1. If the
        group has members, each partition is a NonEmptyGroup.

        Args:
            group_id: the group.
            offsets: where the group goes on, by partition.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an offset is negative.
        """
        from kafka_fast.control.admin.operations.groups.shared import AlterShareGroupOffsets

        operation = AlterShareGroupOffsets(group_id, offsets)
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout: float | None = None
    ) -> AdminResult[str, None]:
        """Forget where a share group that has no members was, in all partitions of topics.

        DeleteShareGroupOffsets; needs DELETE on the group and READ on the topic. Since Kafka 4.1.

        Args:
            group_id: the group.
            topics: their names.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.shared import DeleteShareGroupOffsets

        operation = DeleteShareGroupOffsets(group_id, topics)
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    # ---- streams groups ----

    def list_streams_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, AdminResult[TopicPartition, OffsetAndMetadata | None]]:
        """Return what streams groups have committed: for each group, an offset for each partition.

        OffsetFetch; needs DESCRIBE on the group and on the topic. Streams groups exist since Kafka
        4.1. The rest is as in `list_consumer_group_offsets`.

        Args:
            groups: the partitions of each group; None: all that it has committed offsets of, but
                for topics that this client may not see.
            require_stable: whether to wait for open transactions that commit offsets (KIP-447).
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.admin.workflows.group_offsets import list_offsets_of_groups
        from kafka_fast.control.admin.operations.groups.streams import ListStreamsGroupOffsets

        operation = ListStreamsGroupOffsets(groups, require_stable=require_stable)
        return self._core.driver.run(list_offsets_of_groups(self._steps, operation, timeout))

    def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Commit offsets in place of a streams group that has no members.

        OffsetCommit; needs READ on the group and on the topic. Streams groups exist since Kafka
        4.1. If the group has members, each partition is an UnknownMemberId.

        Args:
            group_id: the group.
            offsets: where the group goes on, by partition: the offset of the record to read next.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an offset is negative.
        """
        from kafka_fast.control.admin.operations.groups.streams import AlterStreamsGroupOffsets

        operation = AlterStreamsGroupOffsets(group_id, offsets)
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def delete_streams_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Forget what a streams group has committed of partitions.

        OffsetDelete; needs DELETE on the group and READ on the topic. Streams groups exist since
        Kafka 4.1. A topic that members read is a GroupSubscribedToTopic.

        Args:
            group_id: the group.
            partitions: those to forget.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.streams import DeleteStreamsGroupOffsets

        operation = DeleteStreamsGroupOffsets(group_id, partitions)
        return self._core.driver.run(self._steps.run_items(operation, timeout))
