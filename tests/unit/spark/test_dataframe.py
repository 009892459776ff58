"""Columns of a DataFrame that can be written, and the refusals of Spark's own sink."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark import write_df, write_rdd
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
        (
            [("key", "string"), ("payload", "binary")],
            "t",
            "Required attribute 'value' not found; the columns are: key, payload.",
        ),
        (
            [("value", "int")],
            "t",
            (
                "value type must be a string or binary, but it is int: "
                'df.withColumn("value", df["value"].cast("string"))'
            ),
        ),
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


# ---- what is no DataFrame, or no RDD ----


class Frame:
    """A DataFrame, as far as the check of arguments looks."""

    mapInArrow = None  # noqa: N815  Spark's name
    isStreaming = True  # noqa: N815


class Rdd:
    """An RDD, likewise."""

    mapPartitions = None  # noqa: N815


CONFIG = {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("write", "given", "said"),
    [
        (write_df, CONFIG, "write_df takes a DataFrame of Spark's, not dict: write_df(df, config,"),
        (write_df, Rdd(), "a DataFrame of Spark's, not Rdd: write_rdd(rdd, config, topic)"),
        (write_rdd, [b"1"], "write_rdd takes an RDD, not list: write_rdd(rdd, config, topic)"),
        (write_rdd, Frame(), "an RDD, not Frame: write_df(df, config, topic)"),
    ],
)
def test_the_error_names_the_function_that_takes_it(write: Any, given: Any, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        write(given, CONFIG, "t")
    assert said in str(raised.value)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(UsageError, match=r"a streaming DataFrame has no end: .*foreachBatch"):
        write_df(Frame(), CONFIG, "t")  # type: ignore[arg-type]
