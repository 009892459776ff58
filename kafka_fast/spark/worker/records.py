"""Turns records of an RDD into columns for the producer's bulk call.

    b"value"  "value"                              a value
    (key, value)  (key, value, headers, topic, partition, timestamp)
                                                   a tuple; missing items at its end are None
    {"value": ..., "key": ..., ...}  Row(...)      named; all but the value may be missing

A timestamp is a datetime or Unix time in ms. Most RDDs hold only bytes or only pairs; such records
are converted without a look at each one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from kafka_fast.errors import UsageError

FIELDS = ("key", "value", "headers", "topic", "partition", "timestamp")
PLAIN = frozenset({bytes, str, bytearray, memoryview})
NO_TOPIC = (
    "a record has no topic: give the write one, or each record (a tuple's fourth item, or the "
    "field 'topic')"
)


class TopicColumns(NamedTuple):
    """Records of one topic, in order. A column that no record fills is None."""

    topic: str
    values: Sequence[Any]
    keys: Sequence[Any] | None = None
    headers: Sequence[Any] | None = None
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None


def columns(records: list[Any], topic: str | None) -> Iterator[TopicColumns]:
    """Yield the records as columns, topic by topic.

    Args:
        records: at least one record, of any forms.
        topic: topic of all records; None: each record names its topic.

    Raises:
        UsageError: a record has none of the forms, or no topic.
    """
    kinds = set(map(type, records))
    if topic is not None and kinds <= PLAIN:
        yield TopicColumns(topic, records)
    elif topic is not None and kinds == {tuple} and set(map(len, records)) == {2}:
        keys, values = zip(*records, strict=True)
        yield TopicColumns(topic, values, keys)
    else:
        yield from _by_topic(records, topic)


def _by_topic(records: list[Any], topic: str | None) -> Iterator[TopicColumns]:
    topics: dict[str, list[tuple[Any, ...]]] = {}
    for record in records:
        key, value, headers, own_topic, partition, timestamp = _fields(record)
        chosen = own_topic if topic is None else topic
        if not isinstance(chosen, str):
            raise UsageError(NO_TOPIC)
        fields = (value, key, headers, partition, _milliseconds(timestamp))
        topics.setdefault(chosen, []).append(fields)
    for name, rows in topics.items():
        values, *others = zip(*rows, strict=True)
        filled = [column if any(item is not None for item in column) else None for column in others]
        yield TopicColumns(name, values, *filled)


def _fields(record: Any) -> tuple[Any, ...]:
    """Return a record's fields in the order of FIELDS."""
    if type(record) in PLAIN:
        return None, record, None, None, None, None
    if isinstance(record, Mapping):
        return _named(record)
    if hasattr(record, "__fields__"):  # pyspark's Row is a tuple with names
        return _named(dict(zip(record.__fields__, record, strict=True)))
    if isinstance(record, tuple) and 2 <= len(record) <= len(FIELDS):
        return record + (None,) * (len(FIELDS) - len(record))
    if isinstance(record, tuple):
        raise UsageError(f"a record must be a tuple of 2 to {len(FIELDS)} items, not {len(record)}")
    raise UsageError(
        f"a record must be bytes, str, a tuple, a dict or a Row, not {type(record).__name__}"
    )


def _named(record: Mapping[str, Any]) -> tuple[Any, ...]:
    if "value" not in record:
        raise UsageError(f"a record has no field 'value', only {sorted(map(str, record))}")
    unknown = [name for name in record if name not in FIELDS]
    if unknown:
        raise UsageError(f"a record has the unknown field {unknown[0]!r}; known: {FIELDS}")
    return tuple(map(record.get, FIELDS))


def _milliseconds(timestamp: Any) -> Any:
    """Return Unix time in ms; the bulk call refuses a value that is no integer."""
    if isinstance(timestamp, datetime):
        return int(timestamp.timestamp() * 1000)
    return timestamp
