"""Value types of the public API, all immutable and picklable.

They are named tuples and not dataclasses, because some are made once per record, and a tuple is the
cheapest object that has names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kafka_fast._hints import hint_at_names, hint_at_new, name_attributes
from kafka_fast.errors import ERRORS, KafkaError
from kafka_fast.peer_errors import error_names
from kafka_fast.peer_names import METADATA, TOPIC_PARTITION

# The errors cannot do this: they are there without the compiled modules, for the documentation. No
# client is there without these types.
name_attributes(KafkaError, error_names({kind.name: kind.__name__ for kind in ERRORS.values()}))

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


hint_at_names(TopicPartition, TOPIC_PARTITION)
hint_at_new(TopicPartition, TOPIC_PARTITION, TOPIC_PARTITION["offset"])


class OffsetAndMetadata(NamedTuple):
    """An offset as a group commits it."""

    offset: int
    """Offset of the record to read next."""
    leader_epoch: int = -1
    """Epoch of the leader that wrote the last record before this offset; -1: not known."""
    metadata: str = ""
    """A note of the client that committed the offset."""


def _in_our_order(
    cls: type[OffsetAndMetadata], offset: int, leader_epoch: int = -1, metadata: str = ""
) -> OffsetAndMetadata:
    """Make an OffsetAndMetadata in place of what the named tuple has for this.

    kafka-python and aiokafka have the fields in another order. What is wrong in another way is
    refused where it is committed, with the partition's name.
    """
    if isinstance(leader_epoch, str) or isinstance(metadata, int):
        raise TypeError(
            "the order is OffsetAndMetadata(offset, leader_epoch, metadata), unlike in other "
            f"clients; given were ({offset!r}, {leader_epoch!r}, {metadata!r})"
        )
    return tuple.__new__(cls, (offset, leader_epoch, metadata))


OffsetAndMetadata.__new__ = _in_our_order  # type: ignore[method-assign,assignment]


class OffsetAndTimestamp(NamedTuple):
    """The first record of a partition that is not older than some time."""

    offset: int
    timestamp_ms: int
    """The record's timestamp in Unix ms."""
    leader_epoch: int = -1
    """The record's leader epoch; -1 if the broker does not say."""


class GroupMetadata(NamedTuple):
    """The identity of a group's member, as the coordinator knows it."""

    group_id: str
    generation: int
    """The group's generation, or with KIP-848 the member's epoch; -1 outside of the group."""
    member_id: str
    instance_id: str | None


class RecordMetadata(NamedTuple):
    """Where a delivered record went."""

    topic: str
    partition: int
    offset: int
    """Offset in the partition's log; -1 if the broker did not say (`acks=0`, or a retry of records
    that the broker had written before).
    """
    timestamp_ms: int
    """Unix time in ms: the record's own, or the broker's if the topic has LogAppendTime."""


hint_at_names(RecordMetadata, METADATA)


class PartitionResult(NamedTuple):
    """Where the delivered records of a bulk call went in one partition."""

    records: int
    base_offset: int
    """Offset of the first record; -1 if the broker did not say."""
    last_offset: int
    """Offset of the last record. Other producers' records may lie between the two."""
    bytes: int
    """The records' share of their record batches, before compression."""


class BatchResult(NamedTuple):
    """The outcome of a bulk call."""

    records: int
    """Number of records in the call."""
    failed: int
    """Number of records that were not, or perhaps not, delivered."""
    partitions: dict[TopicPartition, PartitionResult]
    """The delivered records, by partition."""


class PartitionInfo(NamedTuple):
    """A partition in the cluster's metadata."""

    topic: str
    partition: int
    leader: int
    """Id of the node that leads the partition; -1 while there is none."""
    leader_epoch: int
    """The leader epoch, which counts the partition's leaders; -1 if the broker does not say."""
    replicas: tuple[int, ...]
    """Ids of all nodes that hold the partition."""
    in_sync_replicas: tuple[int, ...]
    """Ids of the nodes whose replica is up to date."""
    offline_replicas: tuple[int, ...]
    """Ids of the nodes whose replica is offline."""
    topic_id: str | None = None
    """The topic's id, as Kafka's own tools print it (KIP-516); None from a broker before 2.8.

    A topic that was deleted and created again has another one.
    """
