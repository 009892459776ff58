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
        ranges: one for each partition.
        min_partitions: if there are fewer ranges, large ones are divided, in proportion to their
            sizes, into about so many.
        max_records: most offsets in a range. Spark applies it first.
    """
    parts = [span for span in ranges if span.size > 0]
    if max_records is not None:
        parts = [part for span in parts for part in _divided(span, -(-span.size // max_records))]
    if min_partitions is None or min_partitions <= len(parts):
        return parts
    total = sum(span.size for span in parts)
    # Small ranges stay whole. They and their sizes are left out of the proportions of the others.
    whole = [span for span in parts if _parts(span.size, total, min_partitions) == 1]
    names = {span.partition for span in whole}
    divided_total = total - sum(span.size for span in whole)
    count = max(min_partitions - len(whole), 1)
    return [
        part
        for span in parts
        for part in _divided(
            span,
            1 if span.partition in names else _parts(span.size, divided_total, count),
        )
    ]


def _parts(size: int, total: int, count: int) -> int:
    """Return how many of `count` parts a range gets; half a part is rounded up, as in Java."""
    return max(math.floor(size / total * count + 0.5), 1)


def _divided(whole: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Yield a range in parts; the last parts have what is left over."""
    start, remaining = whole.start, whole.size
    for index in range(parts):
        size = remaining // (parts - index)
        remaining -= size
        if size:
            yield whole._replace(start=start, until=start + size)
        start += size
