"""Headers for each row, behind those that it has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.spark.sink.dedupe_headers import NAMES, with_dedupe_headers
from kafka_fast.spark.sink.micro_batch import WriteName

pa = pytest.importorskip("pyarrow")

WRITE = WriteName("q", "12")
PAIRS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3)


def batch_of(rows: list[Any], text: Any = None, octets: Any = None) -> Any:
    """Return a RecordBatch of rows with these headers."""
    structs = [
        None if row is None else [{"key": key, "value": value} for key, value in row]
        for row in rows
    ]
    pair = pa.struct([("key", text or pa.string()), ("value", octets or pa.binary())])
    return pa.RecordBatch.from_arrays(
        [pa.array(["v"] * len(rows), pa.string()), pa.array(structs, pa.list_(pair))],
        names=["value", "headers"],
    )


def pairs_of(batches: Any) -> list[Any]:
    """Return the headers of each row as pairs."""
    return [
        [(header["key"], header["value"]) for header in row]
        for batch in batches
        for row in batch.column("headers").to_pylist()
    ]


def own(row: int) -> list[tuple[str, bytes]]:
    return list(zip(NAMES, (b"q", b"12", b"3", b"%d" % row), strict=True))


def test_rows_without_headers_are_numbered_through_the_task() -> None:
    batches = [
        pa.RecordBatch.from_pydict({"value": pa.array(["v"] * count, pa.string())})
        for count in (3, 0, 2)
    ]
    numbered = list(with_dedupe_headers(batches, WRITE, 3))
    assert [batch.num_rows for batch in numbered] == [3, 0, 2]
    assert pairs_of(numbered) == [own(row) for row in range(5)]
    assert all(batch.column("value").to_pylist() == ["v"] * batch.num_rows for batch in numbered)


@given(st.lists(st.none() | PAIRS, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_headers_that_are_there_come_first(rows: list[Any], start: int, count: int) -> None:
    """Also those of a slice, whose first row is not the first of its buffers."""
    batches = [batch_of(rows), batch_of(rows).slice(start, count)]
    expected = [*rows, *rows[start : start + count]]
    assert pairs_of(with_dedupe_headers(batches, WRITE, 3)) == [
        [*(row or []), *own(number)] for number, row in enumerate(expected)
    ]


def test_sparks_large_types() -> None:
    batch = batch_of([[("a", b"1")], None], pa.large_string(), pa.large_binary())
    assert pairs_of(with_dedupe_headers([batch], WRITE, 3)) == [[("a", b"1"), *own(0)], own(1)]
