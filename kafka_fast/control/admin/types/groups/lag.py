"""How far groups are behind the ends of their partitions."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.control.admin.types.groups.descriptions import MemberDescription
from kafka_fast.control.admin.types.groups.listings import GroupState, GroupType
from kafka_fast.errors import KafkaError
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import Value


class PartitionLag(Value):
    """A partition, and a group's place in it."""

    partition: TopicPartition
    committed: OffsetAndMetadata | None
    """Where the group goes on; None: it has committed nothing, or `error` says why it is not known.
    """
    log_start: int | None
    """The first offset of the log; None: `error` says why it is not known."""
    end: int | None
    """The offset behind the last record (the high watermark); None as above."""
    last_stable: int | None
    """The offset at which the first open transaction begins; `end` if there is none. None as above.
    """
    member: MemberDescription | None = None
    """The member that reads it; None: none does, or it is not known."""
    error: KafkaError | None = None
    """Why something is not known: there is no such partition, or it has no leader; None: all is."""

    @property
    def lag(self) -> int | None:
        """How many offsets are left to read, up to the end.

        0 if the group has committed more than the log has. None: nothing is committed, or something
        is not known.
        """
        return self._distance(self.end)

    @property
    def stable_lag(self) -> int | None:
        """How many offsets are left to read for consumers with read_committed; None as above."""
        return self._distance(self.last_stable)

    def _distance(self, end: int | None) -> int | None:
        if self.committed is None or end is None:
            return None
        return max(0, end - self.committed.offset)


class GroupLag(Value):
    """A group, and its place in each of its partitions."""

    group_id: str
    type: GroupType
    """UNKNOWN if nobody told it: `members_error` says why."""
    state: GroupState
    """UNKNOWN as above."""
    partitions: tuple[PartitionLag, ...]
    """In the order of topics and numbers."""
    topic_errors: Mapping[str, KafkaError] = {}
    """Why topics are missing that were asked for, or that members subscribe to: they do not exist
    (yet), or may not be seen.
    """
    members_error: KafkaError | None = None
    """Why it is not known who the members are, and what they subscribe to; None: that is known."""

    @property
    def total_lag(self) -> int:
        """The sum over the partitions whose lag is known."""
        return sum(one.lag or 0 for one in self.partitions)

    @property
    def lag_by_topic(self) -> dict[str, int]:
        """The sum for each topic, over the partitions whose lag is known."""
        totals: dict[str, int] = {}
        for one in self.partitions:
            topic = one.partition.topic
            totals[topic] = totals.get(topic, 0) + (one.lag or 0)
        return totals

    @property
    def uncommitted(self) -> tuple[TopicPartition, ...]:
        """The partitions of which the group has committed nothing, so that they have no lag."""
        return tuple(
            one.partition for one in self.partitions if one.committed is None and one.error is None
        )

    @property
    def errors(self) -> dict[TopicPartition, KafkaError]:
        """Why something is not known of a partition."""
        return {one.partition: one.error for one in self.partitions if one.error is not None}
