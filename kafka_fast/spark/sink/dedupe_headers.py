"""Headers that tell from which row of which task a record comes.

A task that Spark runs again writes its rows again, with the same four headers. So a consumer that
has seen these four can drop the second record. Values are text, as numbers in Spark are read from.

    row 7 of task 3:  spark-query = <id>   spark-batch = 12   spark-task = 3   spark-row = 7

Headers are made for a RecordBatch at a time, by Arrow's own functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka_fast.spark.sink.micro_batch import WriteName

NAMES = ("spark-query", "spark-batch", "spark-task", "spark-row")


def with_dedupe_headers(batches: Iterable[Any], write: WriteName, task: int) -> Iterator[Any]:
    """Yield the record batches with the headers of each row behind those that it has.

    Args:
        batches: all of a task's, in order.
        write: what the task belongs to.
        task: number of the task's Spark partition.
    """
    import pyarrow as pa

    first = 0
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        own = own_headers(write, task, first, batch.num_rows)
        columns["headers"] = appended(columns.get("headers"), own, batch.num_rows)
        yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        first += batch.num_rows


def own_headers(write: WriteName, task: int, first: int, count: int) -> Any:
    """Return the headers of rows as structs: all of the first name, then all of the second, ...

    Args:
        write: what the task belongs to.
        task: number of the task's Spark partition.
        first: number of the first row in its task.
        count: number of rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.add(_numbers(count), first)
    values = [pa.repeat(pa.scalar(text), count) for text in (write.query, write.batch, str(task))]
    return pa.StructArray.from_arrays(
        [
            pa.concat_arrays([pa.repeat(pa.scalar(name), count) for name in NAMES]),
            pc.cast(pa.concat_arrays([*values, pc.cast(numbers, pa.string())]), pa.binary()),
        ],
        names=["key", "value"],
    )


def appended(headers: Any, own: Any, count: int) -> Any:
    """Return a column of headers in which each row has its own ones last.

    Args:
        headers: the rows' headers so far, as list<struct<key, value>>, or None.
        own: `own_headers` of as many rows.
        count: number of rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = _numbers(count)
    lengths = pa.repeat(pa.scalar(0, pa.int64()), count)
    pairs = [own]
    owners = [rows] * len(NAMES)
    if headers is not None:
        lengths = pc.cast(pc.fill_null(pc.list_value_length(headers), 0), pa.int64())
        earlier = pc.list_flatten(headers)
        pairs = [_plain(earlier), own]
        owners = [_owners(lengths, len(earlier)), *owners]
    # A stable sort by row keeps the order of the headers within each row.
    order = pc.array_sort_indices(pa.concat_arrays(owners))
    ends = pc.cumulative_sum(pc.add(lengths, len(NAMES)))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    return pa.LargeListArray.from_arrays(offsets, pa.concat_arrays(pairs).take(order))


def _numbers(count: int) -> Any:
    """Return 0, 1, 2, ..."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _owners(lengths: Any, count: int) -> Any:
    """Return the row of each of so many headers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = pa.LargeListArray.from_arrays(
        pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]),
        pa.nulls(count),
    )
    return pc.list_parent_indices(lists)


def _plain(pairs: Any) -> Any:
    """Return (key, value) pairs as structs of string and binary, whatever Spark calls these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    key, value = pairs.flatten()
    kinds = zip((key, value), (pa.string(), pa.binary()), strict=True)
    return pa.StructArray.from_arrays(
        [pc.cast(column, kind) for column, kind in kinds], names=["key", "value"]
    )
