"""Columns of a DataFrame that can be written, and the refusals of Spark's own sink."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.dataframe import check_columns

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
    assert sorted(check_columns(columns, None)) == [
        "headers",
        "key",
        "partition",
        "timestamp",
        "topic",
        "value",
    ]
    assert "topic" not in check_columns(columns, "t")


def test_the_topic_argument_wins_over_a_column_of_any_type() -> None:
    assert check_columns([("value", "string"), ("topic", "int")], "t") == ["value"]


@pytest.mark.parametrize(
    ("columns", "topic", "said"),
    [
        ([("value", "string")], None, "topic option required when no 'topic' attribute is present"),
        ([("key", "string")], "t", "Required attribute 'value' not found."),
        ([("value", "int")], "t", "value type must be a string or binary, but it is int"),
        ([("value", "string"), ("key", "int")], "t", "key type must be a string or binary"),
        ([("value", "string"), ("topic", "int")], None, "topic type must be a string"),
        ([("value", "string"), ("partition", "bigint")], "t", "partition type must be a int"),
        ([("value", "string"), ("headers", "string")], "t", f"headers type must be a {HEADERS}"),
        ([("value", "string"), ("timestamp", "bigint")], "t", "timestamp type must be a timestamp"),
        ([("value", "string"), ("VALUE", "string")], "t", "several columns named 'value'"),
    ],
)
def test_refusals(columns: list[tuple[str, str]], topic: str | None, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_columns(columns, topic)
    assert said in str(raised.value)
