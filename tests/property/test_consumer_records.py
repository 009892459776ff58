"""Records handed out in every form, against what went in: objects, lists, Arrow, numpy, pickle."""

from __future__ import annotations

import pickle
from typing import Any, Literal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.record import Codec, RecordBatchBuilder
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader, collect

# Around the lengths that matter: 12 bytes are in a view, 256 are copied at once.
SIZES = st.sampled_from([0, 1, 4, 11, 12, 13, 40, 255, 256, 257, 700])
MAYBE_BYTES = st.none() | SIZES.flatmap(lambda size: st.binary(min_size=size, max_size=size))
NAMES = st.text(max_size=4)
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=300)), max_size=3)
ROWS = st.lists(
    st.tuples(MAYBE_BYTES, MAYBE_BYTES, st.integers(-1, 10**12), HEADERS), min_size=1, max_size=5
)
BATCHES = st.lists(st.tuples(ROWS, st.sampled_from(list(Codec))), min_size=1, max_size=4)
TOPICS = st.lists(st.tuples(st.sampled_from(["a", "bb", "c"]), BATCHES), max_size=3)

Row = tuple[str, int, int, "bytes | None", "bytes | None", int, tuple[tuple[str, Any], ...]]


def readers_of(
    topics: list[tuple[str, list[tuple[list[Any], Codec]]]],
) -> tuple[list[PartitionReader], list[Row]]:
    """Return readers of partitions that hold the batches, and the rows they must give."""
    readers, rows = [], []
    for partition, (topic, batches) in enumerate(topics):
        data, offset = b"", 0
        for records, codec in batches:
            builder = RecordBatchBuilder(base_offset=offset, codec=codec)
            for key, value, timestamp_ms, headers in records:
                builder.append(key, value, timestamp_ms, headers)
                rows.append((topic, partition, offset, key, value, timestamp_ms, tuple(headers)))
                offset += 1
            data += builder.build()
        reader = PartitionReader(topic, partition, 0)
        reader.feed(chunk_from_bytes(data, asked_offset=0))
        readers.append(reader)
    return readers, rows


def arrow_rows(table: pa.Table, layout: Literal["kafka", "spark"]) -> list[Row]:
    unit = 1 if layout == "kafka" else 1000
    stamps = [stamp // unit for stamp in table["timestamp"].cast(pa.int64()).to_pylist()]
    return [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            stamp,
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row, stamp in zip(table.drop(["timestamp"]).to_pylist(), stamps, strict=True)
    ]


@given(TOPICS, st.integers(1, 7), st.data())
@settings(max_examples=60, deadline=None)
def test_every_form_says_the_same(topics: list[Any], most: int, data: st.DataObject) -> None:
    readers, rows = readers_of(topics)
    parts = []
    while records := collect(readers, most):
        assert len(records) <= most
        parts.append(records)
    assert [
        (r.topic, r.partition, r.offset, r.key, r.value, r.timestamp_ms, r.headers)
        for part in parts
        for r in part
    ] == rows

    readers, rows = readers_of(topics)
    everything = collect(readers, 10_000)
    low = data.draw(st.integers(0, len(rows)))
    cut = slice(low, data.draw(st.integers(low, len(rows))))
    check_forms(everything[cut], rows[cut])


def check_forms(records: ConsumerRecords, rows: list[Row]) -> None:
    assert records.offsets() == [row[2] for row in rows]
    assert records.keys() == [row[3] for row in rows]
    assert records.values() == [row[4] for row in rows]
    assert records.timestamps() == [row[5] for row in rows]
    assert records.headers() == [row[6] for row in rows]
    assert pickle.loads(pickle.dumps(list(records))) == list(records)
    columns = records.to_numpy()
    assert columns["partition"].tolist() == [row[1] for row in rows]
    assert columns["value"].tolist() == records.values()
    layouts: tuple[Literal["kafka", "spark"], ...] = ("kafka", "spark")
    for layout in layouts:
        for views in (False, True):
            table = records.to_arrow(layout=layout, views=views, headers=True)
            table.validate(full=True)
            assert arrow_rows(table, layout) == rows
