"""One partition's reader: positions, transactions, gaps, bad batches, deserializers."""

from __future__ import annotations

import gzip
import pickle
import struct
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from kafka_fast.dataplane._chunk import chunk_from_bytes
from kafka_fast.dataplane._consumer_records import ConsumerRecords
from kafka_fast.dataplane._reading import PartitionReader, collect
from kafka_fast.errors import (
    CorruptBatchError,
    RecordDeserializationError,
    SerializationError,
    UnreadableBatchError,
)
from kafka_fast.record import Codec, RecordBatchBuilder, build_control_batch
from kafka_fast.record.types import ControlType
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch, encode_message

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT
TRANSACTIONAL = 0x10


def batch(
    first: int,
    *offsets: int,
    last: int | None = None,
    producer: int = -1,
    epoch: int = 3,
    attributes: int = 0,
    value: bytes | None = None,
) -> bytes:
    """Return a batch with records at `first` and `offsets`; their values say their offsets."""
    all_offsets = (first, *offsets)
    rows = tuple(
        SlowRecord(o, 1000 + o - first, None, b"%d" % o if value is None else value)
        for o in all_offsets
    )
    end = all_offsets[-1] if last is None else last
    if producer >= 0:
        attributes |= TRANSACTIONAL
    return encode_batch(
        SlowBatch(first, epoch, attributes, end - first, 1000, 9999, producer, 0, 0, rows)
    )


def empty(first: int, last: int) -> bytes:
    """Return what compaction leaves of a batch."""
    return encode_batch(SlowBatch(first, 3, 0, last - first, 0, 0, -1, -1, -1, ()))


def marker(offset: int, producer: int, kind: ControlType) -> bytes:
    return build_control_batch(
        kind, producer_id=producer, producer_epoch=0, base_offset=offset, timestamp_ms=0
    )


def fed(
    *parts: bytes,
    position: int = 0,
    aborted: Iterable[tuple[int, int]] = (),
    **options: Any,
) -> PartitionReader:
    """Return a reader with one chunk."""
    reader = PartitionReader("t", 3, position, **options)
    reader.feed(chunk_from_bytes(b"".join(parts), asked_offset=position, aborted=aborted))
    return reader


def taken(reader: PartitionReader, count: int = 1000) -> list[int]:
    return ConsumerRecords(reader.take(count)).offsets()


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


# ---- transactions ----


def committed(*parts: bytes, aborted: Iterable[tuple[int, int]] = (), position: int = 0) -> Any:
    """Return the offsets that read_committed hands out, and where it ends."""
    reader = fed(*parts, position=position, aborted=aborted, read_committed=True)
    return taken(reader), reader.position


def test_control_batches_are_never_handed_out() -> None:
    parts = (batch(0, producer=1), marker(1, 1, COMMIT), marker(2, 2, ABORT))
    for read_committed in (False, True):
        reader = fed(*parts, read_committed=read_committed)
        assert taken(reader) == [0]
        assert reader.position == 3


def test_aborted_records_are_dropped() -> None:
    parts = (
        batch(0, 1, producer=1),
        batch(2, producer=2),
        batch(3),
        marker(4, 1, ABORT),
        batch(5, producer=1),
        marker(6, 2, COMMIT),
        marker(7, 1, COMMIT),
    )
    assert committed(*parts, aborted=[(1, 0)]) == ([2, 3, 5], 8)
    assert taken(fed(*parts, aborted=[(1, 0)])) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    "aborted",
    [
        [(1, 4), (2, 1), (1, 0)],
        [(1, 0), (1, 0), (2, 1), (2, 1), (1, 4), (1, 4)],
        [(7, 0), (2, 1), (8, 2**62), (1, 0), (9, -5), (1, 4)],
    ],
    ids=["unsorted", "repeated", "unknown producers"],
)
def test_lists_of_aborted_transactions_in_any_shape(aborted: list[tuple[int, int]]) -> None:
    parts = (
        batch(0, producer=1),
        batch(1, producer=2),
        marker(2, 1, ABORT),
        batch(3, producer=3),
        batch(4, producer=1),
        marker(5, 2, ABORT),
        marker(6, 1, ABORT),
        batch(7, producer=1),
        batch(8, producer=2),
    )
    assert committed(*parts, aborted=aborted) == ([3, 7, 8], 9)


def test_an_abort_without_an_entry_ends_nothing_else() -> None:
    parts = (marker(0, 1, ABORT), batch(1, producer=1), marker(2, 1, COMMIT))
    assert committed(*parts) == ([1], 3)
    # An aborted transaction without records, and then a committed one.
    assert committed(*parts, aborted=[(1, 0)]) == ([1], 3)
    assert committed(*parts, aborted=[(2, 0)]) == ([1], 3)


def test_an_end_below_the_position_counts() -> None:
    parts = (batch(0, producer=1), marker(1, 1, ABORT), batch(2, producer=1))
    assert committed(*parts, aborted=[(1, 0)], position=2) == ([2], 3)


def test_what_is_not_transactional_is_not_dropped() -> None:
    plain = batch(1, attributes=0)
    idempotent = encode_batch(SlowBatch(2, 3, 0, 0, 0, 0, 1, 0, 0, (SlowRecord(2, 0, None, b"2"),)))
    assert committed(batch(0, producer=1), plain, idempotent, aborted=[(1, 0)]) == ([1, 2], 3)


def test_each_chunk_has_its_own_list() -> None:
    reader = fed(batch(0, producer=1), aborted=[(1, 0)], read_committed=True)
    reader.feed(chunk_from_bytes(batch(1, producer=1), asked_offset=1, aborted=[(1, 0)]))
    reader.feed(chunk_from_bytes(marker(2, 1, ABORT), asked_offset=2))
    reader.feed(chunk_from_bytes(batch(3, producer=1), asked_offset=3))
    assert taken(reader) == [3]
    assert reader.position == 4


def test_a_bad_control_batch_matters_to_read_committed_only() -> None:
    rows = (SlowRecord(0, 0, b"\0\0\0", b""),)
    bad = encode_batch(SlowBatch(0, 3, 0x30, 0, 0, 0, 1, 0, -1, rows))
    assert taken(fed(bad, batch(1))) == [1]
    with pytest.raises(UnreadableBatchError, match="malformed key"):
        fed(bad, batch(1), read_committed=True).take(1)


# ---- bad batches ----


def spoilt(data: bytes) -> bytes:
    """Return the batch with a flipped bit under its CRC."""
    return data[:-1] + bytes([data[-1] ^ 1])


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
    with pytest.raises(UnreadableBatchError, match="more than the 50000 bytes allowed") as caught:
        fed(data, max_decompressed=50_000).take(1)
    assert caught.value.next_offset == 1
    assert taken(fed(data, max_decompressed=101_000)) == [0]


# ---- deserializers ----


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
    found = reader.take(1)
    assert reader.take_into(found, 2) == 2
    assert reader.take_into(found, 9) == 1
    assert reader.take_into(found, 9) == 0
    assert ConsumerRecords(found).offsets() == [0, 1, 2, 3]


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
