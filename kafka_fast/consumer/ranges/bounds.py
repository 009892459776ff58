"""The arguments of `read_range`: topics, and where to begin and to end in them.

Mistakes that can be seen without asking a broker are refused here.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kafka_fast.consumer.arguments import topic_name, topic_partition, unix_ms
from kafka_fast.control.arguments import LAST_OFFSET
from kafka_fast.errors import UsageError
from kafka_fast.times import is_datetime, iso_time, likely_unit
from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from datetime import datetime

Topics: TypeAlias = str | TopicPartition | Iterable[str | TopicPartition]

Point: TypeAlias = "int | datetime"
"""An offset, a Unix time in ms, or a datetime with a time zone."""

Bound: TypeAlias = "Point | Mapping[TopicPartition, Point] | Mapping[int, Point] | None"
"""A point for all partitions, or by partition."""

Kind: TypeAlias = Literal["offset", "timestamp"]


def kind_of(by: Kind | None, start: Bound, end: Bound) -> Kind:
    """Return whether the bounds are offsets or times: as `by` says, or else as their types show.

    Raises:
        TypeError: a bound has another type.
        UsageError: the bounds contradict `by`, or each other.
    """
    if by not in (None, "offset", "timestamp"):
        raise UsageError(f"by is 'offset' or 'timestamp', not {by!r}")
    points = [*_points("start", start), *_points("end", end)]
    times = [point for point in points if is_datetime(point)]
    if not times:
        return by or "offset"
    if by == "offset":
        raise UsageError(f"{times[0]!r} is no offset: leave by='offset' out")
    if by is None and len(times) < len(points):
        other = next(point for point in points if not is_datetime(point))
        raise UsageError(
            f"{times[0]!r} is a time: is {other!r} one, too? by='timestamp' takes it for Unix ms"
        )
    return "timestamp"


def check_order(start: int | None, end: int | None, by: Kind, what: str = "the range") -> None:
    """Refuse a range that ends before it begins.

    Args:
        start: an offset, or a Unix time in ms; None: not given.
        end: the same.
        by: which of the two they are.
        what: names the range in messages.

    Raises:
        UsageError: the range ends before it begins.
    """
    if start is not None and end is not None and end < start:
        first, last = (str(at) if by == "offset" else iso_time(at) for at in (start, end))
        raise UsageError(f"{what} ends at {last}, before it begins at {first}")


def time_meant(offset: int) -> str:
    """Return the end of a message about an offset that no log has: the time it most likely is."""
    unit = likely_unit(offset)
    if unit is None:
        return ""
    return f": it looks like a Unix time in {unit}; by='timestamp' takes datetimes or ms"


def _points(name: str, bound: Any) -> list[Any]:
    """Return all points of a bound."""
    if bound is None:
        return []
    if not isinstance(bound, Mapping):
        return [bound]
    if any(isinstance(key, str) for key in bound):
        raise TypeError(
            f"read_range: {name} is a point of the log or a mapping by partition, not properties: "
            f"give those as config={{...}}, or by keyword"
        )
    return list(bound.values())


def partitions_named(topics: Any) -> list[str | TopicPartition]:
    """Return the named topics and partitions.

    Raises:
        TypeError: an item is neither a topic nor a partition.
        UsageError: nothing is named.
    """
    if isinstance(topics, Mapping):
        raise TypeError(
            "read_range takes topics first: read_range('topic', config={...}), or with the "
            "properties as keywords"
        )
    named = [topics] if isinstance(topics, (str, TopicPartition)) else list(topics)
    if not named:
        raise UsageError("read_range takes at least one topic or partition")
    return [topic_name(item) if isinstance(item, str) else topic_partition(item) for item in named]


def bounds_of(
    given: Bound, partitions: Collection[TopicPartition], by: Kind
) -> dict[TopicPartition, int]:
    """Return the bound of each partition that has one: an offset, or a Unix time in ms.

    Args:
        given: the user's argument.
        partitions: all partitions that are read.
        by: whether the bounds are offsets or times.

    Raises:
        TypeError, UsageError: a point is of the wrong kind, or its partition is not read.
    """
    if given is None:
        return {}
    known = frozenset(partitions)
    if not isinstance(given, Mapping):
        return dict.fromkeys(partitions, point_of(given, by))
    bounds: dict[TopicPartition, int] = {}
    for key, at in given.items():
        partition = _partition(key, known)
        if partition not in known:
            raise UsageError(f"not among what is read: {partition}")
        if partition in bounds:
            raise UsageError(f"{partition} is given twice")
        bounds[partition] = point_of(at, by, partition)
    return bounds


def point_of(given: Any, by: Kind, partition: object = "") -> int:
    """Return a point as an offset, or as a Unix time in ms.

    Args:
        given: the user's.
        by: which of the two it is.
        partition: the one partition it is for; "": for all.

    Raises:
        TypeError, UsageError: the point is of the wrong kind.
    """
    return unix_ms(given, partition) if by == "timestamp" else _offset(given, partition)


def _partition(key: Any, partitions: Iterable[TopicPartition]) -> TopicPartition:
    """Return the partition that a key names. If only one topic is read, a number will do."""
    if isinstance(key, tuple) or not hasattr(key, "__index__"):
        return topic_partition(key)
    topics = sorted({partition.topic for partition in partitions})
    if len(topics) > 1:
        raise UsageError(
            f"{key} is a partition of which of {', '.join(topics)}? With several topics, name it: "
            f"TopicPartition({topics[0]!r}, {key})"
        )
    return topic_partition((topics[0], key))


def _offset(value: Any, partition: object = "") -> int:
    of = f" of {partition}" if partition else ""
    try:
        offset = operator.index(value)
    except TypeError:
        raise TypeError(
            f"an offset{of} is an int, not {value!r}; times are datetimes with a time zone, or "
            "Unix ms with by='timestamp'"
        ) from None
    if not 0 <= offset <= LAST_OFFSET:
        raise UsageError(f"{offset} is no offset{of}")
    return offset
