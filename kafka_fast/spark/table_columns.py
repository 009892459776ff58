"""The columns of a DataFrame that Kafka gets, for `write_df` and for the sink.

Names, types and refusals are those of Spark's own sink. The names' case has no meaning, as
elsewhere in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: Allowed types by column, in Spark's words, in the order of the checks.
TYPES: Mapping[str, tuple[str, ...]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
    "timestamp": ("timestamp", "double"),
}

MICROSECONDS = 1_000_000.0

ARGUMENT = "topic argument of write_df"
OPTION = "topic option"
"""What sets the topic of all rows, for messages: here, and in the sink."""


def check_columns(
    columns: Iterable[tuple[str, str]], topic: str | None, setting: str
) -> dict[str, int]:
    """Return the position of each column to write, by its name in lower case.

    Args:
        columns: (name, type) of each column, in Spark's words.
        topic: topic of all rows, or None.
        setting: what sets that topic, for the message.

    Raises:
        UsageError: in the words of Spark's own sink, as far as they fit.
    """
    columns = list(columns)
    positions: dict[str, int] = {}
    for position, (name, _) in enumerate(columns):
        lower = name.lower()
        if lower not in TYPES:
            continue
        if lower in positions:
            raise UsageError(f"there are several columns named '{lower}'")
        positions[lower] = position
    if topic is None and "topic" not in positions:
        raise UsageError(
            f"topic option required when no 'topic' attribute is present. Use the {setting} for "
            "setting a topic."
        )
    if "value" not in positions:
        there = ", ".join(name for name, _ in columns)
        raise UsageError(f"Required attribute 'value' not found; the columns are: {there}.")
    if topic is not None:
        positions.pop("topic", None)
    for name, kinds in TYPES.items():
        if name in positions and (kind := columns[positions[name]][1]) not in kinds:
            raise UsageError(
                f"{name} attribute unsupported type {kind}. {name} must be a(n) "
                f'{" or ".join(kinds)}: df.withColumn("{name}", df["{name}"].cast("{kinds[0]}"))'
            )
    return positions


def columns_in(schema: StructType) -> list[tuple[str, str]]:
    """Return (name, type) of each column, in Spark's words."""
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def null_topic(setting: str) -> str:
    """Return what is said of a row whose topic is null.

    Args:
        setting: what sets the topic of all rows.
    """
    return f"null topic present in the data. Use the {setting} for setting a topic."


def picked(batch: Any, columns: Mapping[str, int]) -> Any:
    """Return these columns of a RecordBatch under these names; nothing is copied."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [batch.column(position) for position in columns.values()], names=list(columns)
    )


def with_timestamps(batch: Any) -> Any:
    """Return a RecordBatch whose timestamps in seconds, if it has such, are in milliseconds.

    Spark casts a double to a timestamp in the same way: to whole microseconds first. What is no
    time, such as NaN, is null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = batch.schema.names
    if "timestamp" not in names:
        return batch
    position = names.index("timestamp")
    seconds = batch.column(position)
    if not pa.types.is_float64(seconds.type):
        return batch
    real = pc.if_else(pc.is_finite(seconds), seconds, None)
    micros = pc.cast(pc.trunc(pc.multiply(real, MICROSECONDS)), pa.int64())
    arrays = [*batch.columns]
    arrays[position] = pc.divide(micros, 1000)
    return pa.RecordBatch.from_arrays(arrays, names=names)
