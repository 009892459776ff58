"""Columns of a DataFrame that can be written, and the refusals of Spark's own sink."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.table_columns import (
    ARGUMENT,
    OPTION,
    check_columns,
    null_topic,
    picked,
    with_timestamps,
)

pa = pytest.importorskip("pyarrow")

HEADERS = "array<struct<key:string,value:binary>>"


def test_known_columns_are_picked_and_others_ignored() -> None:
    columns = [
        ("id", "bigint"),
        ("Value", "binary"),
        ("key", "string"),
        ("headers", HEADERS),
        ("topic", "string"),
        ("partition", "int"),
        ("timestamp", "timestamp"),
    ]
    assert sorted(check_columns(columns, None, ARGUMENT)) == [
        "headers",
        "key",
        "partition",
        "timestamp",
        "topic",
        "value",
    ]
    assert "topic" not in check_columns(columns, "t", ARGUMENT)


def test_the_topic_argument_wins_over_a_column_of_any_type() -> None:
    assert check_columns([("topic", "int"), ("value", "string")], "t", OPTION) == {"value": 1}


@pytest.mark.parametrize(
    ("columns", "topic", "said"),
    [
        ([("value", "string")], None, "topic option required when no 'topic' attribute is present"),
        (
            [("key", "string"), ("payload", "binary")],
            "t",
            "Required attribute 'value' not found; the columns are: key, payload.",
        ),
        (
            [("value", "int")],
            "t",
            (
                "value attribute unsupported type int. value must be a(n) string or binary: "
                'df.withColumn("value", df["value"].cast("string"))'
            ),
        ),
        (
            [("value", "string"), ("key", "int")],
            "t",
            "key attribute unsupported type int. key must be a(n) string or binary",
        ),
        (
            [("value", "string"), ("topic", "int")],
            None,
            "topic attribute unsupported type int. topic must be a(n) string",
        ),
        (
            [("value", "string"), ("partition", "bigint")],
            "t",
            "partition attribute unsupported type bigint. partition must be a(n) int",
        ),
        ([("value", "string"), ("headers", "string")], "t", f"headers must be a(n) {HEADERS}"),
        (
            [("value", "string"), ("timestamp", "bigint")],
            "t",
            "timestamp attribute unsupported type bigint. timestamp must be a(n) timestamp",
        ),
        ([("value", "string"), ("VALUE", "string")], "t", "several columns named 'value'"),
    ],
)
def test_refusals(columns: list[tuple[str, str]], topic: str | None, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_columns(columns, topic, ARGUMENT)
    assert said in str(raised.value)


def test_the_sentences_name_what_sets_the_topic() -> None:
    with pytest.raises(UsageError, match="Use the topic option for setting a topic"):
        check_columns([("value", "string")], None, OPTION)
    assert null_topic(OPTION) == (
        "null topic present in the data. Use the topic option for setting a topic."
    )


def test_columns_are_picked_without_a_copy() -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2], "VALUE": ["a", "b"], "Key": ["k", None]})
    chosen = picked(batch, {"key": 2, "value": 1})
    assert chosen.to_pydict() == {"key": ["k", None], "value": ["a", "b"]}
    before, after = batch.column(1).buffers(), chosen.column(1).buffers()
    assert [buffer.address for buffer in before if buffer] == [
        buffer.address for buffer in after if buffer
    ]


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(1714521600.1239, 1714521600123), (0.0, 0), (None, None), (float("nan"), None)],
)
def test_a_double_is_unix_time_in_seconds(seconds: float | None, milliseconds: Any) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"timestamp": pa.array([seconds, 2.0], pa.float64()), "value": ["a", "b"]}
    )
    assert with_timestamps(batch).to_pydict() == {
        "timestamp": [milliseconds, 2_000],
        "value": ["a", "b"],
    }


def test_timestamps_are_left_as_they_are() -> None:
    times = pa.array([1, None], pa.timestamp("us", tz="UTC"))
    for columns in ({"timestamp": times, "value": ["a", "b"]}, {"value": ["a", "b"]}):
        batch = pa.RecordBatch.from_pydict(columns)
        assert with_timestamps(batch) is batch
