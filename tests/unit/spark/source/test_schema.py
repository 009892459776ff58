"""The source's columns."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.schema import COLUMNS, check_columns, ddl


def test_headers_are_the_last_column_on_request() -> None:
    assert ddl(headers=False) == (
        "key binary, value binary, topic string, partition int, offset bigint, "
        "timestamp timestamp, timestampType int"
    )
    assert ddl(headers=True) == (
        ddl(headers=False) + ", headers array<struct<key:string,value:binary>>"
    )


def test_a_query_may_name_some_columns_in_its_order() -> None:
    assert check_columns([("offset", "bigint"), ("value", "binary")]) == ("offset", "value")
    assert check_columns(list(COLUMNS.items())) == tuple(COLUMNS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            [("worth", "binary")],
            "Kafka has no column 'worth': a schema for the source may name key",
        ),
        ([("value", "string")], "column value is of type binary, not string: read it as that"),
        ([("key", "binary"), ("key", "binary")], "a column is named twice"),
        ([], "it is empty"),
    ],
)
def test_other_columns_are_refused(columns: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_columns(columns)
