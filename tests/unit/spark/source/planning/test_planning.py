"""The ranges of a micro-batch, and what is missing in them."""

from __future__ import annotations

from kafka_fast.spark.source.offsets import Offsets
from kafka_fast.spark.source.planning.planning import plan
from kafka_fast.spark.source.planning.ranges import OffsetRange
from kafka_fast.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def planned(
    start: Offsets, end: Offsets, earliest: Offsets | None = None
) -> tuple[list[OffsetRange], list[str]]:
    lost: list[str] = []
    return plan(start, end, earliest or {}, lost.append), lost


def test_ranges_of_known_partitions() -> None:
    assert planned({A: 1, B: 2}, {B: 2, A: 5}) == (
        [OffsetRange(A, 1, 5), OffsetRange(B, 2, 2)],
        [],
    )


def test_a_new_partition_begins_at_its_beginning() -> None:
    assert planned({A: 1}, {A: 1, B: 5}, {B: 0}) == (
        [OffsetRange(A, 1, 1), OffsetRange(B, 0, 5)],
        [],
    )


def test_a_new_partition_whose_beginning_is_gone() -> None:
    ranges, lost = planned({}, {B: 5}, {B: 3})
    assert ranges == [OffsetRange(B, 3, 5)]
    assert lost == ["Added partition t-1 starts from 3 instead of 0."]


def test_a_new_partition_that_is_gone() -> None:
    ranges, lost = planned({}, {B: 5})
    assert ranges == []
    assert lost == ["Cannot find initial offsets for partitions t-1. They may have been deleted."]


def test_a_deleted_partition() -> None:
    ranges, lost = planned({A: 1, B: 1}, {A: 2})
    assert ranges == [OffsetRange(A, 1, 2)]
    assert lost == ["Partitions t-1 have been deleted."]


def test_a_log_that_ends_before_what_was_read() -> None:
    ranges, lost = planned({A: 10}, {A: 4})
    assert ranges == [OffsetRange(A, 10, 10)]
    assert lost[0].startswith("Partition t-0 offset was changed from 10 to 4. This could be ")
