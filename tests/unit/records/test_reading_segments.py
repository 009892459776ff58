"""Segments as real brokers wrote them, in each format and codec, read from each position."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.record import TimestampType
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader, collect
from tests.reference.log_segments import COUNT, segment_names, sent

FOLDER = Path(__file__).parents[2] / "corpus" / "segments"


@pytest.mark.parametrize("name", segment_names())
def test_segment(name: str) -> None:
    data = (FOLDER / f"{name}.log").read_bytes()
    is_append = name.endswith("-append")
    for position in range(COUNT + 1):
        reader = PartitionReader("t", 0, position, read_committed=True)
        reader.feed(chunk_from_bytes(data, asked_offset=position))
        slices = []
        while records := collect([reader], 7):
            assert len(records) <= 7
            slices.append(records)
        assert reader.position == COUNT
        assert not reader
        numbers = [number for records in slices for number in records.offsets()]
        assert numbers == list(range(position, COUNT))
        for records in slices:
            check(records, is_append)


def check(records: ConsumerRecords, is_append: bool) -> None:
    for record in records:
        key, value, timestamp_ms = sent(record.offset)
        assert (record.key, record.value) == (key, value)
        if record.timestamp_ms == -1:  # message format v0 has none
            continue
        if is_append:
            assert record.timestamp_type is TimestampType.LOG_APPEND_TIME
        else:
            assert record.timestamp_ms == timestamp_ms
