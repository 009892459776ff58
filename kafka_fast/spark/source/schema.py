"""The columns of the source, those of Spark's own, in the order in which Spark has them."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_fast.errors import UsageError

HEADERS = "headers"

#: Type of each column, in Spark's words.
COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
}


def ddl(*, headers: bool) -> str:
    """Return the schema for Spark."""
    return ", ".join(
        f"{name} {kind}" for name, kind in COLUMNS.items() if headers or name != HEADERS
    )


def check_columns(columns: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of the columns that a query reads, in its order.

    A schema of the user's names some of the columns; the others are then never made.

    Args:
        columns: (name, type) of each column, in Spark's words.

    Raises:
        UsageError: there is no such column, or it has another type; or none is named.
    """
    if not columns:
        raise UsageError(f"a schema for the source names some of {', '.join(COLUMNS)}; it is empty")
    for name, kind in columns:
        if name not in COLUMNS:
            raise UsageError(
                f"Kafka has no column '{name}': a schema for the source may name "
                f"{', '.join(COLUMNS)}"
            )
        if kind != COLUMNS[name]:
            raise UsageError(
                f"column {name} is of type {COLUMNS[name]}, not {kind}: read it as that and cast "
                "it in the query"
            )
    names = tuple(name for name, _ in columns)
    if len(set(names)) < len(names):
        raise UsageError(f"a column is named twice: {', '.join(names)}")
    return names
