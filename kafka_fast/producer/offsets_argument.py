"""Brings the arguments of `send_offsets_to_transaction` into one form.

A producer knows no consumer: records are taken by what they can do, not by their class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

from kafka_fast.control.arguments import (
    LAST_NUMBER,
    checked_integer,
    checked_name,
    checked_partition,
    offset_to_read,
)
from kafka_fast.errors import UsageError
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition


@runtime_checkable
class ManyRecords(Protocol):
    """Records that know what comes after them, as `ConsumerRecords`."""

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what to commit when all of them are done."""


class OneRecord(Protocol):
    """A record that was read, as `ConsumerRecord`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int


Offsets: TypeAlias = ManyRecords | OneRecord | Mapping[TopicPartition, "int | OffsetAndMetadata"]
"""Records that are done, the last one of its partition that is done, or what to read next."""


def offsets_of(given: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets of the records to read next, by partition.

    Raises:
        TypeError: this is none of them, or a part of it is of another type.
        UsageError: an offset is negative, or a name cannot be sent.
    """
    if isinstance(given, Mapping):
        own = ((checked_partition(partition), at) for partition, at in given.items())
        return {partition: offset_to_read(at, partition) for partition, at in own}
    if isinstance(given, ManyRecords):
        return offsets_of(given.next_offsets())
    if _is_record(given):
        behind = checked_integer(given.offset, "the offset of a record") + 1
        partition = TopicPartition(given.topic, given.partition)
        return offsets_of({partition: OffsetAndMetadata(behind, given.leader_epoch)})
    raise TypeError(
        "send_offsets_to_transaction takes ConsumerRecords, a ConsumerRecord, or a mapping of "
        f"TopicPartition to offset, not {type(given).__name__}"
    )


def _is_record(given: object) -> TypeGuard[OneRecord]:
    """Return whether it has what a record has.

    `isinstance` would not do: since Python 3.12 it takes the hints that a `TopicPartition` gives
    for the names of peers as the attributes themselves.
    """
    return all(hasattr(given, name) for name in ("topic", "partition", "offset", "leader_epoch"))


def group_of(given: GroupMetadata | str) -> GroupMetadata:
    """Return the group whose offsets these are; a name stands for a group without a member.

    Raises:
        TypeError: this is neither a name nor `consumer.group_metadata()`.
        UsageError: a name cannot be sent.
    """
    if not isinstance(given, GroupMetadata):
        return GroupMetadata(checked_name(given, "the group"), -1, "", None)
    member = given.member_id and checked_name(given.member_id, "the member's id")
    instance = given.instance_id and checked_name(given.instance_id, "the member's instance")
    generation = checked_integer(given.generation, "the group's generation")
    if not -1 <= generation <= LAST_NUMBER:
        raise UsageError(f"{generation} is no generation of a group")
    group_id = checked_name(given.group_id, "the group")
    return GroupMetadata(group_id, generation, member, instance)
