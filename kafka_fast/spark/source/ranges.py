"""Ranges of offsets, and how they become tasks: minPartitions and maxRecordsPerPartition.

The number of tasks and their ends are those of Spark's own source, its rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_fast.types import TopicPartition


class OffsetRange(NamedTuple):
    """The offsets of a partition from `start` up to, but without, `until`; some have no record."""

    partition: TopicPartition
    start: int
    until: int
    topic_id: str | None = None
    """Of the topic to which the offsets belong; None: brokers before 2.8 have no ids."""

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.until - self.start


def split(
    ranges: Iterable[OffsetRange],
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """Return the ranges of the tasks; empty ranges are dropped.

    Args:
        ranges: One for each partition.
        min_partitions: If there are fewer ranges, large ones are divided, in proportion to their
            sizes, into about so many.
        max_records: Most offsets in a range. Spark applies it first.
    """
    found = [it for it in ranges if it.size > 0]
    if max_records is not None:
        found = [part for it in found for part in _divided(it, -(-it.size // max_records))]
    if min_partitions is None or min_partitions <= len(found):
        return found
    total = sum(it.size for it in found)
    # Small ranges stay whole. They and their sizes are left out of the proportions of the others.
    whole = [it for it in found if _parts(it.size, total, min_partitions) == 1]
    names = {it.partition for it in whole}
    divided_total = total - sum(it.size for it in whole)
    wanted = max(min_partitions - len(whole), 1)
    return [
        part
        for it in found
        for part in _divided(
            it, 1 if it.partition in names else _parts(it.size, divided_total, wanted)
        )
    ]


def _parts(size: int, total: int, wanted: int) -> int:
    """Return how many of `wanted` parts a range gets; half a part is rounded up, as in Java."""
    return max(math.floor(size / total * wanted + 0.5), 1)


def _divided(whole: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Yield a range in parts; the last parts have what is left over."""
    start, remaining = whole.start, whole.size
    for index in range(parts):
        size = remaining // (parts - index)
        remaining -= size
        if size:
            yield whole._replace(start=start, until=start + size)
        start += size
