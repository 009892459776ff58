"""Ranges and their tasks. What is expected was computed by Spark's KafkaOffsetRangeCalculator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.spark.source.planning.ranges import OffsetRange, split
from kafka_fast.types import TopicPartition


def ranges(*sizes: int) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition("t", number), 5, 5 + size) for number, size in enumerate(sizes)
    ]


def cut(sizes: list[int], least: int | None = None, most: int | None = None) -> list[list[int]]:
    """Return the sizes of the tasks by partition, once they are known to be without a gap."""
    parts: list[list[int]] = [[] for _ in sizes]
    at = [5] * len(sizes)
    for part in split(ranges(*sizes), least, most):
        number = part.partition.partition
        assert part.start == at[number]
        at[number] = part.until
        parts[number].append(part.size)
    assert at == [5 + size for size in sizes]
    return parts


@pytest.mark.parametrize(
    ("sizes", "least", "most", "parts"),
    [
        ([3, 0, 4], None, None, [[3], [], [4]]),
        ([3, 0, 4], 2, None, [[3], [], [4]]),
        ([100], 3, None, [[33, 33, 34]]),
        ([1, 1000], 3, None, [[1], [500, 500]]),
        ([1], 5, None, [[1]]),
        ([50, 100, 10_000], 8, None, [[50], [100], [1666, 1666, 1667, 1667, 1667, 1667]]),
        ([100, 100], None, 40, [[33, 33, 34], [33, 33, 34]]),
        ([100, 100], 4, 40, [[33, 33, 34], [33, 33, 34]]),
        ([100, 10], 9, 40, [[11] * 8 + [12], [10]]),
    ],
)
def test_tasks(sizes: list[int], least: int | None, most: int | None, parts: object) -> None:
    assert cut(sizes, least, most) == parts


@given(
    st.lists(st.integers(0, 10_000), max_size=5),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(100, 10_000),
)
def test_every_offset_is_in_one_task(sizes: list[int], least: int | None, most: int | None) -> None:
    parts = [size for of_partition in cut(sizes, least, most) for size in of_partition]
    assert all(parts)
    assert most is None or max(parts, default=0) <= most
