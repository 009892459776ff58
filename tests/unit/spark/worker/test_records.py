"""Shapes of records, as columns."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.worker.records import TopicColumns, columns


class Row(tuple[Any, ...]):
    """What pyspark's Row is: a tuple that knows names."""

    __slots__ = ()
    __fields__ = ("value", "key")


@pytest.mark.parametrize("value", [b"v", "v", bytearray(b"v"), memoryview(b"v")])
def test_values(value: Any) -> None:
    assert list(columns([value, b"w"], "t")) == [TopicColumns("t", [value, b"w"])]


def test_pairs() -> None:
    (read,) = columns([(b"k", b"v"), (None, None)], "t")
    assert read == TopicColumns("t", (b"v", None), (b"k", None))


def test_longer_tuples_and_mixed_shapes_keep_their_order() -> None:
    headers = [("h", b"1")]
    (read,) = columns([b"a", (b"k", b"b"), (b"k", b"c", headers, None, 3, 5)], "t")
    assert read.values == (b"a", b"b", b"c")
    assert read.keys == (None, b"k", b"k")
    assert read.headers == (None, None, headers)
    assert read.partitions == (None, None, 3)
    assert read.timestamps_ms == (None, None, 5)


def test_columns_that_no_record_fills_are_left_out() -> None:
    (read,) = columns([{"value": b"v"}, {"value": None, "key": None}], "t")
    assert read == TopicColumns("t", (b"v", None))


def test_a_row_is_read_by_its_names() -> None:
    (read,) = columns([Row((b"v", b"k"))], "t")
    assert (read.values, read.keys) == ((b"v",), (b"k",))


def test_a_datetime_becomes_milliseconds() -> None:
    moment = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=timezone.utc)
    (read,) = columns([{"value": b"v", "timestamp": moment}], "t")
    assert read.timestamps_ms == (1714564800250,)


def test_records_say_their_topic_only_where_the_write_does_not() -> None:
    rows = [{"value": b"1", "topic": "a"}, {"value": b"2", "topic": "b"}, (None, b"3", None, "a")]
    assert [(read.topic, read.values) for read in columns(rows, None)] == [
        ("a", (b"1", b"3")),
        ("b", (b"2",)),
    ]
    assert [(read.topic, read.values) for read in columns(rows, "t")] == [("t", (b"1", b"2", b"3"))]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (7, "not int"),
        (None, "not NoneType"),
        ((b"v",), "2 to 6 items, not 1"),
        ((1, 2, 3, 4, 5, 6, 7), "2 to 6 items, not 7"),
        ({"key": b"k"}, "no field 'value', only ['key']"),
        ({"value": b"v", "colour": 1}, "unknown field 'colour'"),
    ],
)
def test_what_is_no_record(record: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        list(columns([b"fine", record], "t"))
    assert said in str(raised.value)


@pytest.mark.parametrize("record", [b"v", (b"k", b"v"), {"value": b"v", "topic": None}])
def test_a_record_without_any_topic(record: Any) -> None:
    with pytest.raises(UsageError, match="a record has no topic"):
        list(columns([record], None))
