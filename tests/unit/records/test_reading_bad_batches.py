"""Batches that are corrupt stop the reader of their partition, and say how to go on."""

from __future__ import annotations

import pickle
import struct

import pytest

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.errors import (
    CorruptBatchError,
    UnreadableBatchError,
)
from kafka_fast.record import Codec, RecordBatchBuilder
from kafka_fast.records._consumer_records import ConsumerRecords
from tests.unit.records.reading import ABORT, batch, fed, marker, spoilt, taken


def test_a_bad_batch_stops_its_partition_until_a_seek() -> None:
    reader = fed(batch(0, 1), spoilt(batch(2, 3, 4)), batch(5))
    records = ConsumerRecords(reader.take(9))
    assert records.offsets() == [0, 1]
    assert reader.position == 2
    for _ in range(3):
        with pytest.raises(UnreadableBatchError, match=r"t-3 at offset 2: .* has CRC") as caught:
            reader.take(9)
        assert reader
        assert reader.position == 2
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 3, 2, 5)
    assert "seek(TopicPartition('t', 3), 5)" in str(error)
    assert type(error.__cause__) is CorruptBatchError
    assert reader.failure is error
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.next_offset, str(copy)) == (5, str(error))
    reader.feed(chunk_from_bytes(batch(6), asked_offset=6))  # nobody wants it
    assert error.next_offset is not None
    reader.seek(error.next_offset)
    assert not reader
    assert taken(reader) == []
    reader.feed(chunk_from_bytes(batch(5), asked_offset=5))
    assert taken(reader) == [5]


def test_a_header_that_lies_does_not_send_anybody_too_far() -> None:
    lie = bytearray(batch(2, 3))
    struct.pack_into(">i", lie, 23, 2**31 - 1)  # last offset delta, under the CRC
    with pytest.raises(UnreadableBatchError) as caught:
        fed(bytes(lie), batch(4), position=2).take(1)
    assert caught.value.next_offset == 4


def test_a_corrupt_batch_is_not_passed_over_for_its_offsets() -> None:
    low = bytearray(batch(5, 6, 7))
    struct.pack_into(">i", low, 23, 0)
    with pytest.raises(UnreadableBatchError, match="has CRC"):
        fed(bytes(low), batch(8), position=6).take(1)


@pytest.mark.parametrize("check_crcs", [True, False])
def test_crcs_can_be_taken_on_trust(check_crcs: bool) -> None:
    data = bytearray(batch(0, 1))
    data[17] ^= 1
    reader = fed(bytes(data), check_crcs=check_crcs)
    if check_crcs:
        with pytest.raises(UnreadableBatchError):
            reader.take(1)
    else:
        assert taken(reader) == [0, 1]
    control = bytearray(marker(0, 1, ABORT))
    control[17] ^= 1
    reader = fed(bytes(control), batch(1), check_crcs=check_crcs, read_committed=True)
    assert check_crcs or taken(reader) == [1]


def test_bytes_that_are_no_batch_have_no_end() -> None:
    reader = fed(batch(0), b"\xff" * 100)
    assert taken(reader) == [0]
    with pytest.raises(UnreadableBatchError, match=r"only a seek\(\) far past it") as caught:
        reader.take(1)
    assert caught.value.next_offset is None


def test_decompression_is_bounded() -> None:
    builder = RecordBatchBuilder(codec=Codec.GZIP)
    builder.append(None, bytes(100_000), 0)
    data = builder.build()
    with pytest.raises(UnreadableBatchError, match=r"bytes \(50000\) allows") as caught:
        fed(data, max_decompressed=50_000).take(1)
    assert caught.value.next_offset == 1
    assert taken(fed(data, max_decompressed=101_000)) == [0]
