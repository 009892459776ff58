"""Value types of the public API, all immutable and picklable.

Named tuples, not dataclasses: they are made once per record that somebody asks about, and a tuple
is the cheapest object that has names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]
"""A header's key and value."""

Headers: TypeAlias = Sequence[Header]
"""Headers of a record in their order; a key may occur more than once."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return Kafka's own notation: `topic-3`."""
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """What a group's committed offset says."""

    offset: int
    """Offset of the record to read next."""
    leader_epoch: int = -1
    """Epoch of the leader that wrote the last record before it; -1 if nobody knows."""
    metadata: str = ""
    """A note of whoever committed it."""


class OffsetAndTimestamp(NamedTuple):
    """The first record of a partition that is not older than some time."""

    offset: int
    timestamp_ms: int
    """Of that record, Unix ms."""
    leader_epoch: int = -1
    """Of that record; -1 if the broker does not say."""


class GroupMetadata(NamedTuple):
    """Who a member of a group is, as the coordinator knows it."""

    group_id: str
    generation: int
    """Of the group, or the member's epoch with KIP-848; -1 while it is not a member."""
    member_id: str
    instance_id: str | None


class RecordMetadata(NamedTuple):
    """Where a delivered record went."""

    topic: str
    partition: int
    offset: int
    """Offset in the partition's log; -1 if the broker did not say (`acks=0`, or a retry that it
    recognised as written before)."""
    timestamp_ms: int
    """Unix time in ms: the record's own, or the broker's if the topic has LogAppendTime."""


class PartitionResult(NamedTuple):
    """Where the delivered records of a bulk call went in one partition."""

    records: int
    base_offset: int
    """Offset of the first of them; -1 if the broker did not say."""
    last_offset: int
    """Offset of the last of them. Other producers' records may lie in between."""
    bytes: int
    """Their share of the record batches they are in, before compression."""


class BatchResult(NamedTuple):
    """What became of the records of a bulk call."""

    records: int
    """All records of the call."""
    failed: int
    """Those that were not, or perhaps not, delivered."""
    partitions: dict[TopicPartition, PartitionResult]
    """The delivered ones, by partition."""


class PartitionInfo(NamedTuple):
    """What the cluster's metadata say of a partition."""

    topic: str
    partition: int
    leader: int
    """Id of the node that leads the partition; -1 while there is none."""
    leader_epoch: int
    """Counts the partition's leaders; -1 if the broker does not say."""
    replicas: tuple[int, ...]
    """Ids of all nodes that hold the partition."""
    in_sync_replicas: tuple[int, ...]
    """Ids of those that are up to date."""
    offline_replicas: tuple[int, ...]
    """Ids of those that are not running."""
