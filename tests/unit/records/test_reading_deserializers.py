"""Deserializers in a reader: what they see, refuse, and are interrupted in."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.errors import (
    RecordDeserializationError,
    SerializationError,
)
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader, collect
from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch
from tests.unit.records.reading import (
    batch,
    fed,
    taken,
)


def number(data: bytes) -> int:
    return int(data)


def test_deserializers() -> None:
    reader = fed(batch(0, 1, 2), value_deserializer=number, key_deserializer="StringDeserializer")
    records = ConsumerRecords(reader.take(2) + reader.take(9))
    assert records.values() == [0, 1, 2]
    assert records.keys() == [None] * 3
    assert [record.value for record in records] == [0, 1, 2]
    assert records[1].serialized_value_size == 1
    assert records[1:].values() == [1, 2]
    assert records[::-1].values() == [2, 1, 0]
    assert records.to_arrow()["value"].to_pylist() == [b"0", b"1", b"2"]


def test_null_is_not_shown_to_a_deserializer() -> None:
    rows = (SlowRecord(0, 0, None, None),)
    data = encode_batch(SlowBatch(0, 3, 0, 0, 0, 0, -1, -1, -1, rows))
    [record] = ConsumerRecords(fed(data, value_deserializer=number).take(1))
    assert record.value is None


def test_deserializers_see_topic_and_headers() -> None:
    seen = []

    class Spy:
        def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
            seen.append((topic, data, headers))

    builder = RecordBatchBuilder()
    builder.append(b"k", b"v", 0, [("h", b"x")])
    fed(builder.build(), key_deserializer=Spy()).take(1)
    assert seen == [("t", b"k", (("h", b"x"),))]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_record_that_is_refused_stops_the_partition(size: int) -> None:
    calls = []

    def picky(data: bytes) -> int:
        calls.append(data)
        if data == b"3":
            raise ValueError("not three")
        return int(data)

    reader = fed(batch(0, 1), batch(2, 3, 4), value_deserializer=picky)
    got: list[int] = []
    while reader.position < 3:
        got += ConsumerRecords(reader.take(size)).values()
    with pytest.raises(RecordDeserializationError, match="value of the record at offset 3") as at:
        reader.take(size)
    assert got == [0, 1, 2]
    assert reader.position == 3
    with pytest.raises(RecordDeserializationError):
        reader.take(1)
    assert calls.count(b"3") == 1
    error = at.value
    assert isinstance(error, SerializationError)
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 3, 3, 4)
    assert (error.part, error.record.value) == ("value", b"3")
    assert "not three; the partition stays there" in str(error)
    assert pickle.loads(pickle.dumps(error)).record == error.record
    reader.seek(error.next_offset)
    reader.feed(chunk_from_bytes(batch(2, 3, 4), asked_offset=4))
    assert taken(reader) == [4]


def test_a_refused_key_leaves_columns_of_one_length() -> None:
    builder = RecordBatchBuilder()
    for key in (b"1", b"x", b"2"):
        builder.append(key, b"7", 0)
    reader = fed(builder.build(), key_deserializer=number, value_deserializer=number)
    records = ConsumerRecords(reader.take(9))
    assert (records.keys(), records.values(), len(records)) == ([1], [7], 1)
    with pytest.raises(RecordDeserializationError, match="the key of"):
        reader.take(1)


def test_ctrl_c_in_a_deserializer_loses_nothing() -> None:
    interrupt = [b"4"]

    def slow(data: bytes) -> bytes:
        if data in interrupt:
            interrupt.clear()
            raise KeyboardInterrupt
        return data

    def readers() -> list[PartitionReader]:
        return [
            fed(batch(0, 1), batch(2, 3), value_deserializer=slow),
            fed(batch(4), batch(5, 6), value_deserializer=slow),
        ]

    both = readers()
    with pytest.raises(KeyboardInterrupt):
        collect(both, 100)
    assert [reader.position for reader in both] == [0, 0]
    assert all(both)
    assert collect(both, 3).offsets() == [0, 1, 2]
    assert collect(both, 3).offsets() == [3, 4, 5]
    assert [reader.position for reader in both] == [4, 6]
    interrupt.append(b"2")
    [first, _] = readers()
    with pytest.raises(KeyboardInterrupt):
        first.take(9)
    assert first.position == 0
    assert taken(first) == [0, 1]
    assert taken(first) == [2, 3]


def test_what_nobody_got_can_be_given_back() -> None:
    reader = fed(batch(0, 1, 2), batch(3), batch(4))
    first = reader.take(1)
    before = reader.position
    second = reader.take(3)
    reader.give_back(second, before)
    assert (reader.position, bool(reader)) == (1, True)
    assert taken(reader, 1) == [1]
    assert taken(reader, 9) == [2, 3]
    assert taken(reader, 9) == [4]
    reader.give_back(first, 0)
    reader.seek(7)
    assert not reader


def test_take_into_appends() -> None:
    reader = fed(batch(0, 1, 2), batch(3))
    rows = reader.take(1)
    assert reader.take_into(rows, 2) == 2
    assert reader.take_into(rows, 9) == 1
    assert reader.take_into(rows, 9) == 0
    assert ConsumerRecords(rows).offsets() == [0, 1, 2, 3]
