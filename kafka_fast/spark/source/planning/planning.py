"""The ranges of a micro-batch, from its two ends; what does not fit together is data loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_fast.spark.source.offsets import Offsets, describe
from kafka_fast.spark.source.planning.ranges import OffsetRange
from kafka_fast.types import TopicPartition


def plan(
    start: Offsets,
    end: Offsets,
    earliest_of_new: Mapping[TopicPartition, int],
    lost: Callable[[str], None],
) -> list[OffsetRange]:
    """Return the range of each partition of `end`, in order; some may be empty.

    Args:
        start: where the micro-batch begins.
        end: where it ends.
        earliest_of_new: the beginnings of partitions that `start` does not have.
        lost: told, as a sentence, what cannot be read any more. It raises, or reading goes on.
    """
    new = end.keys() - start.keys()
    if unknown := new - earliest_of_new.keys():
        lost(
            f"Cannot find initial offsets for partitions {describe(unknown)}. They may have been "
            "deleted."
        )
    for partition in sorted(new - unknown):
        if (first := earliest_of_new[partition]) != 0:
            lost(f"Added partition {partition} starts from {first} instead of 0.")
    if deleted := start.keys() - end.keys():
        lost(f"Partitions {describe(deleted)} have been deleted.")
    ranges = []
    for partition in sorted(end.keys() - unknown):
        first = start[partition] if partition in start else earliest_of_new[partition]
        until = end[partition]
        if until < first:
            lost(
                f"Partition {partition} offset was changed from {first} to {until}. This could be "
                "either 1) a user error that the start offset is set beyond available offset when "
                "starting query, or 2) the kafka topic-partition is deleted and re-created."
            )
        ranges.append(OffsetRange(partition, first, max(first, until)))
    return ranges
