"""One partition's reader: positions, gaps, ends, order; several readers; memory."""

from __future__ import annotations

import gzip
import sys

import pytest

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.errors import (
    UnreadableBatchError,
)
from kafka_fast.record import Codec, RecordBatchBuilder
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader, collect
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.reference.record_codec import encode_message
from tests.unit.records.reading import (
    COMMIT,
    batch,
    empty,
    fed,
    marker,
    spoilt,
    taken,
)

# ---- positions ----


def test_hands_out_in_pieces_of_any_size() -> None:
    reader = fed(batch(0, 1, 2), batch(3, 4), batch(5))
    assert reader
    assert taken(reader, 2) == [0, 1]
    assert reader.position == 2
    assert taken(reader, 2) == [2, 3]
    assert taken(reader, 0) == []
    assert taken(reader, 10) == [4, 5]
    assert reader.position == 6
    assert not reader
    assert taken(reader) == []
    reader.feed(chunk_from_bytes(batch(6, 7), asked_offset=6))
    assert taken(reader) == [6, 7]


def test_records_are_those_of_the_batch() -> None:
    [first, second] = ConsumerRecords(fed(batch(5, 6), position=5).take(9))
    assert (first.topic, first.partition, first.offset) == ("t", 3, 5)
    assert (second.value, second.timestamp_ms, second.leader_epoch) == (b"6", 1001, 3)


def test_what_is_below_the_position_is_passed_over() -> None:
    reader = fed(batch(0, 1), batch(2, 3, 6, 7), batch(8), position=5)
    assert taken(reader) == [6, 7, 8]
    assert reader.position == 9
    reader = fed(batch(2, 3, last=7), position=5)
    assert taken(reader) == []
    assert reader.position == 8


def test_gaps_and_empty_batches_move_the_position() -> None:
    reader = fed(batch(0, 5, last=9), empty(10, 19), batch(20, last=29), empty(30, 39))
    parts = reader.take(1)
    assert reader.position == 1
    parts += reader.take(1)
    assert reader.position == 10
    assert taken(reader, 1) == [20]
    assert reader.position == 30
    assert taken(reader) == []
    assert reader.position == 40
    assert not reader
    reader = fed(batch(0), empty(1, 9))
    records = ConsumerRecords(reader.take(2))
    assert records.next_offsets() == {TopicPartition("t", 3): OffsetAndMetadata(10, 3)}


def test_the_leader_epoch_is_that_of_the_last_batch() -> None:
    reader = fed(batch(0, epoch=3), batch(1, epoch=4), batch(2, 3, epoch=-1))
    assert reader.leader_epoch == -1
    epochs = []
    for _ in range(4):
        epochs += [record.leader_epoch for record in ConsumerRecords(reader.take(1))]
        assert reader.leader_epoch == epochs[-1]
    assert epochs == [3, 4, -1, -1]


def test_watermarks_are_those_of_the_last_chunk_that_told() -> None:
    reader = PartitionReader("t", 3, 0)
    assert (reader.high_watermark, reader.last_stable_offset, reader.log_start_offset) == (-1,) * 3
    reader.feed(
        chunk_from_bytes(
            b"", asked_offset=0, high_watermark=9, last_stable_offset=8, log_start_offset=1
        )
    )
    reader.feed(chunk_from_bytes(b"", asked_offset=0, high_watermark=10))
    assert (reader.high_watermark, reader.last_stable_offset) == (10, 8)
    assert reader.log_start_offset == 1


def test_the_last_batch_may_be_cut_at_every_byte() -> None:
    whole, cut = batch(0, 1), batch(2, 3)
    for size in range(len(cut)):
        reader = fed(whole, cut[:size])
        assert taken(reader) == [0, 1]
        assert taken(reader) == []
        assert reader.position == 2
        assert not reader


def test_mixed_formats() -> None:
    inner = encode_message(1, 0, b"k", b"2") + encode_message(1, 1, None, None)
    reader = fed(
        encode_message(0, 0, None, b"0"),
        encode_message(1, 1, None, b"1", timestamp_ms=7),
        encode_message(1, 3, None, gzip.compress(inner), attributes=1),
        batch(4, 5),
        position=1,
    )
    records = ConsumerRecords(reader.take(9))
    assert records.offsets() == [1, 2, 3, 4, 5]
    assert records.values() == [b"1", b"2", None, b"4", b"5"]
    assert reader.position == 6


def test_an_old_wrapper_without_an_offset_is_not_delivered_twice() -> None:
    inner = encode_message(1, 5, None, b"5") + encode_message(1, 6, None, b"6")
    wrapper = encode_message(1, 0, None, gzip.compress(inner), attributes=1)
    reader = fed(wrapper, encode_message(1, 7, None, b"7"), wrapper)
    assert taken(reader) == [5, 6, 7]
    with pytest.raises(UnreadableBatchError, match="offsets go backwards"):
        reader.take(1)


def test_every_codec() -> None:
    for codec in Codec:
        builder = RecordBatchBuilder(base_offset=7, codec=codec)
        for i in range(20):
            builder.append(None, b"%d" % i * 50, i)
        assert ConsumerRecords(fed(builder.build()).take(99)).values() == [
            b"%d" % i * 50 for i in range(20)
        ]


# ---- ends ----


def log_of() -> tuple[bytes, ...]:
    """Return a log with a gap, a batch that compaction emptied, and a marker."""
    return batch(0, 1, 2), batch(5, 7, last=9), empty(10, 14), marker(15, 1, COMMIT), batch(16, 17)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("end", range(19))
def test_stops_exactly_at_the_end(end: int, size: int) -> None:
    reader = fed(*log_of(), end=end)
    reader.feed(chunk_from_bytes(batch(18), asked_offset=18))
    got = []
    for _ in range(20):
        got += taken(reader, size)
    assert got == [offset for offset in (0, 1, 2, 5, 7, 16, 17) if offset < end]
    assert reader.position >= end
    assert not reader
    reader.feed(chunk_from_bytes(batch(19), asked_offset=19))
    assert not reader


def test_old_formats_stop_too() -> None:
    inner = b"".join(encode_message(1, i, None, b"") for i in range(5))
    reader = fed(encode_message(1, 4, None, gzip.compress(inner), attributes=1), end=3)
    assert taken(reader) == [0, 1, 2]
    assert (reader.position, bool(reader)) == (3, False)
    reader = fed(encode_message(0, 0, None, b""), encode_message(0, 1, None, b""), end=1)
    assert taken(reader) == [0]
    assert (reader.position, bool(reader)) == (1, False)


# ---- the order of the log ----


def test_offsets_that_go_backwards_stop_the_partition() -> None:
    for second in (batch(1, 2, 3), batch(2, 3), batch(0)):
        reader = fed(batch(0, 1, 2), second)
        assert taken(reader) == [0, 1, 2]
        with pytest.raises(UnreadableBatchError, match="ends at offset 2: offsets go backwards"):
            reader.take(1)
        assert reader.position == 3
        assert reader.failure.next_offset == 3  # fetched again from there it may be sound


def test_a_chunk_that_begins_too_early_repeats_nothing() -> None:
    reader = fed(batch(0, 1, 2))
    reader.feed(chunk_from_bytes(batch(0, 1, 2) + batch(3), asked_offset=3))
    reader.feed(chunk_from_bytes(batch(2, 3, 4), asked_offset=4))
    assert taken(reader) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("base", "last"), [(-5, 3), (2**63 - 2, 2**63 - 1)])
def test_offsets_that_no_log_has(base: int, last: int) -> None:
    with pytest.raises(UnreadableBatchError, match="offsets") as caught:
        fed(batch(base, last=last)).take(1)
    assert caught.value.next_offset is None or caught.value.next_offset >= 0


# ---- several readers ----


def test_collect_takes_from_readers_in_turn() -> None:
    readers = [fed(batch(0, 1)), fed(), fed(batch(10, 11, 12))]
    assert collect(readers, 3).offsets() == [0, 1, 10]
    assert collect(readers, 9).offsets() == [11, 12]
    assert not collect(readers, 9)
    assert not any(readers)


def test_collect_hands_out_what_it_has_before_it_fails() -> None:
    readers = [fed(batch(0)), fed(spoilt(batch(0))), fed(batch(7))]
    assert collect(readers, 9).offsets() == [0]
    with pytest.raises(UnreadableBatchError):
        collect(readers, 9)
    assert collect(reversed(readers), 9).offsets() == [7]


# ---- memory ----


def test_a_chunk_is_held_by_what_was_not_read() -> None:
    chunk = chunk_from_bytes(batch(0, 1, 2, value=b"x" * 1000) + batch(3), asked_offset=0)
    mine = sys.getrefcount(chunk)
    reader = PartitionReader("t", 3, 0)
    reader.feed(chunk)
    assert sys.getrefcount(chunk) == mine + 1
    records = ConsumerRecords(reader.take(3))
    assert reader
    del records
    reader.take(1)
    assert not reader
    assert sys.getrefcount(chunk) == mine


def test_a_long_value_that_is_not_read_pins_its_chunk() -> None:
    chunk = chunk_from_bytes(batch(0, value=b"x" * 1000), asked_offset=0)
    mine = sys.getrefcount(chunk)
    reader = PartitionReader("t", 3, 0)
    reader.feed(chunk)
    [record] = ConsumerRecords(reader.take(1))
    assert not reader
    assert sys.getrefcount(chunk) > mine
    assert record.value == b"x" * 1000
    assert sys.getrefcount(chunk) == mine


def test_what_is_not_wanted_is_let_go() -> None:
    reader = fed(batch(0, 1), batch(2))
    reader.feed(chunk_from_bytes(batch(3), asked_offset=3))
    assert taken(reader, 1) == [0]
    reader.clear()
    assert not reader
    assert reader.position == 1
    assert taken(reader) == []


def test_repr() -> None:
    assert repr(fed(position=9)) == "PartitionReader(t-3 at offset 9)"
