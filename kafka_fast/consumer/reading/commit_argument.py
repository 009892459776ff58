"""Brings the arguments of `Consumer.commit` into one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kafka_fast.consumer.arguments import offsets_to_read
from kafka_fast.errors import UsageError
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.types import OffsetAndMetadata, TopicPartition

Upto: TypeAlias = (
    ConsumerRecords | ConsumerRecord | Mapping[TopicPartition, "int | OffsetAndMetadata"]
)
"""Records that are done, the last one of its partition that is done, or what to read next."""


def offsets_of(upto: Upto) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit.

    Raises:
        UsageError: the argument has another type, or an offset is negative.
    """
    if isinstance(upto, ConsumerRecords):
        offsets: dict[TopicPartition, OffsetAndMetadata] = upto.next_offsets()
        return offsets
    if isinstance(upto, ConsumerRecord):
        partition = TopicPartition(upto.topic, upto.partition)
        return {partition: OffsetAndMetadata(upto.offset + 1, upto.leader_epoch)}
    if not isinstance(upto, Mapping):
        raise UsageError(
            "commit takes ConsumerRecords, a ConsumerRecord, or a mapping of TopicPartition to "
            f"offset, not {type(upto).__name__}"
        )
    return offsets_to_read(upto)
