"""Where a query begins and ends: the options starting... and ending..., in Spark's precedence.

startingTimestamp             one time for all partitions         the first that is given counts
startingOffsetsByTimestamp    a time for each partition
startingOffsets               earliest, latest, or an offset for each partition
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    describe,
    parse_offsets,
    parse_timestamps,
)
from kafka_fast.times import likely_unit
from kafka_fast.types import TopicPartition


class Edge(Enum):
    """An end of the log, of every partition."""

    EARLIEST = "earliest"
    LATEST = "latest"


class SpecificOffsets(NamedTuple):
    """An offset for each partition; EARLIEST and LATEST stand for the ends of its log."""

    offsets: Offsets


class Timestamps(NamedTuple):
    """A time for each partition: its first record that is not older."""

    times: Offsets
    latest_if_none: bool
    """Where no record is young enough: whether to begin at the end, instead of failing."""


class GlobalTimestamp(NamedTuple):
    """One time for all partitions."""

    time: int
    latest_if_none: bool


Bound: TypeAlias = Edge | SpecificOffsets | Timestamps | GlobalTimestamp


class Bounds(NamedTuple):
    """The two ends of a batch."""

    start: Bound
    end: Bound


def start_of_stream(options: Mapping[str, str]) -> Bound:
    """Return where a new stream begins.

    Raises:
        UsageError: in the words of Spark's source.
    """
    if "endingoffsets" in options:
        raise UsageError("ending offset not valid in streaming queries")
    if {"endingoffsetsbytimestamp", "endingtimestamp"} & set(options):
        raise UsageError("ending timestamp not valid in streaming queries")
    return _bound(options, "starting", Edge.LATEST)


def bounds_of_batch(options: Mapping[str, str]) -> Bounds:
    """Return where a batch begins and ends.

    Raises:
        UsageError: in the words of Spark's source.
    """
    start = _bound(options, "starting", Edge.EARLIEST)
    end = _bound(options, "ending", Edge.LATEST)
    if start is Edge.LATEST:
        raise UsageError("starting offset can't be latest for batch queries on Kafka")
    if end is Edge.EARLIEST:
        raise UsageError("ending offset can't be earliest for batch queries on Kafka")
    _refuse(start, LATEST, "startingOffsets for {} can't be latest for batch queries on Kafka")
    _refuse(end, EARLIEST, "ending offset for {} can't be earliest for batch queries on Kafka")
    match start, end:
        case SpecificOffsets(low), SpecificOffsets(high):
            _check_order(low, high, "offset")
        case Timestamps(low, _), Timestamps(high, _):
            _check_order(low, high, "timestamp")
    return Bounds(start, end)


def is_moving(bound: Bound) -> bool:
    """Return whether a bound may mean another place when it is resolved again."""
    match bound:
        case Edge():
            return bound is Edge.LATEST
        case SpecificOffsets(offsets):
            return LATEST in offsets.values()
        case Timestamps(_, latest_if_none) | GlobalTimestamp(_, latest_if_none):
            return latest_if_none


def is_named(bound: Bound, partition: TopicPartition) -> bool:
    """Return whether the user has named the offset of a partition itself."""
    return isinstance(bound, SpecificOffsets) and bound.offsets.get(partition, LATEST) >= 0


def _bound(options: Mapping[str, str], prefix: str, default: Edge) -> Bound:
    latest_if_none = _latest_if_none(options)
    if f"{prefix}timestamp" in options:
        text = options[f"{prefix}timestamp"].strip()
        try:
            at = int(text)
        except ValueError:
            raise UsageError(f"Expected a single long value, got {text}") from None
        _check_unit(at, f"{prefix}Timestamp")
        return GlobalTimestamp(at, latest_if_none)
    if f"{prefix}offsetsbytimestamp" in options:
        times = parse_timestamps(options[f"{prefix}offsetsbytimestamp"].strip())
        for at in times.values():
            _check_unit(at, f"{prefix}OffsetsByTimestamp")
        return Timestamps(times, latest_if_none)
    text = options.get(f"{prefix}offsets", default.value).strip()
    if text.lower() in ("earliest", "latest"):
        return Edge(text.lower())
    offsets = parse_offsets(text)
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise UsageError(f"{prefix}Offsets of {partition}: there is no offset {offset}")
    return SpecificOffsets(offsets)


def _check_unit(at: int, option: str) -> None:
    """Refuse what is a time from 1973 to 2100 in another unit: it would mean all, or nothing."""
    unit = likely_unit(at)
    if unit not in (None, "milliseconds"):
        raise UsageError(f"{option} takes Unix times in milliseconds: {at} looks like {unit}")


def _latest_if_none(options: Mapping[str, str]) -> bool:
    text = options.get("startingoffsetsbytimestampstrategy", "error")
    if text.lower() not in ("error", "latest"):
        raise UsageError(
            f"startingOffsetsByTimestampStrategy must be 'error' or 'latest', not '{text}'"
        )
    return text.lower() == "latest"


def _refuse(bound: Bound, offset: int, sentence: str) -> None:
    if isinstance(bound, SpecificOffsets):
        for partition, at in bound.offsets.items():
            if at == offset:
                raise UsageError(sentence.format(partition))


def _check_order(low: Offsets, high: Offsets, kind: str) -> None:
    if low.keys() != high.keys():
        raise UsageError(
            "The specified start offset and end offset should have the same topic-partitions. "
            f"Topic-partitions for start offset: {describe(low)}, topic-partitions for end "
            f"offset: {describe(high)}."
        )
    for partition, start in low.items():
        end = high[partition]
        if start > end and start >= 0 and end >= 0:
            raise UsageError(
                _order(partition, start, end, f"specified start {kind}", f"end {kind}")
            )


def check_resolved(start: Offsets, end: Offsets) -> None:
    """Refuse a batch that would end before it begins.

    Raises:
        UsageError: in the words of Spark's source.
    """
    for partition, low in sorted(start.items()):
        if low > end[partition]:
            raise UsageError(
                _order(
                    partition, low, end[partition], "resolved start offset", "resolved end offset"
                )
            )


def _order(partition: TopicPartition, start: int, end: int, low: str, high: str) -> str:
    return (
        f"The {low} {start} is greater than the {high} {end} for topic {partition.topic} partition "
        f"{partition.partition}."
    )
