"""Record batches v2: golden bytes by hand from the specification, and every way to break them."""

from __future__ import annotations

import pickle
import struct

import pytest

from kafka_fast._wire._checksum import crc32c
from kafka_fast.errors import CorruptBatchError, UsageError
from kafka_fast.record import (
    Codec,
    ControlRecord,
    ControlType,
    Record,
    RecordBatchBuilder,
    TimestampType,
    build_control_batch,
    read_batches,
    stamp_batch,
)

HEADER_SIZE = 61

# Two records, written out byte by byte (KIP-98; zigzag varints: 1 -> 0x02, -1 -> 0x01).
GOLDEN_RECORDS = bytes.fromhex(
    "1a"  # length 13
    "00"  # attributes
    "00"  # timestamp delta 0
    "00"  # offset delta 0
    "02 6b"  # key "k"
    "04 76 31"  # value "v1"
    "02"  # one header
    "02 68"  # name "h"
    "02 78"  # value "x"
    "16"  # length 11
    "00"
    "c801"  # timestamp delta 100
    "02"  # offset delta 1
    "01"  # null key
    "01"  # null value
    "02"  # one header
    "04 68 32"  # name "h2"
    "01"  # null value
)
GOLDEN_UNDER_CRC = (
    bytes.fromhex(
        "0010"  # attributes: transactional
        "00000001"  # last offset delta
        "00000000000003e8"  # base timestamp 1000
        "000000000000044c"  # max timestamp 1100
        "0000000000000007"  # producer id
        "0003"  # producer epoch
        "00000005"  # base sequence
        "00000002"  # record count
    )
    + GOLDEN_RECORDS
)
GOLDEN = (
    bytes.fromhex("000000000000002a")  # base offset 42
    + struct.pack(">i", 9 + len(GOLDEN_UNDER_CRC))
    + bytes.fromhex("0000000402")  # leader epoch 4, magic 2
    + struct.pack(">I", crc32c(GOLDEN_UNDER_CRC))
    + GOLDEN_UNDER_CRC
)


def golden_builder() -> RecordBatchBuilder:
    builder = RecordBatchBuilder(
        base_offset=42,
        leader_epoch=4,
        producer_id=7,
        producer_epoch=3,
        base_sequence=5,
        is_transactional=True,
    )
    assert builder.append(b"k", b"v1", 1000, [("h", b"x")]) == 0
    assert builder.append(None, None, 1100, [("h2", None)]) == 1
    return builder


def with_crc(batch: bytes) -> bytes:
    """Return the batch with length and CRC made right again after a change."""
    fixed = bytearray(batch)
    struct.pack_into(">i", fixed, 8, len(batch) - 12)
    struct.pack_into(">I", fixed, 17, crc32c(batch[21:]))
    return bytes(fixed)


def with_records(records: bytes, count: int = 1, last_offset_delta: int = 0) -> bytes:
    """Return a batch v2 round these records, with a right CRC."""
    batch = bytearray(GOLDEN[:HEADER_SIZE] + records)
    struct.pack_into(">i", batch, 23, last_offset_delta)
    struct.pack_into(">i", batch, 57, count)
    return with_crc(bytes(batch))


def test_writes_the_golden_bytes() -> None:
    builder = golden_builder()
    assert builder.build() == GOLDEN
    assert builder.size == len(GOLDEN)
    assert len(builder) == 2


def test_reads_the_golden_bytes() -> None:
    batches = read_batches(GOLDEN)
    assert len(batches) == 1
    assert batches.partial == b""
    assert batches.partial_size is None
    batch = batches[0]
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (42, 43, 44)
    assert (batch.magic, batch.size, batch.leader_epoch) == (2, len(GOLDEN), 4)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1100)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 5)
    assert batch.codec is Codec.NONE
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert batch.is_transactional
    assert not batch.is_control
    assert batch.record_count == 2
    assert batch.data == GOLDEN
    assert batch.data.readonly
    assert list(batch.records()) == [
        Record(42, 1000, b"k", b"v1", [("h", b"x")]),
        Record(43, 1100, None, None, [("h2", None)]),
    ]


def test_records_are_a_sequence_and_columns() -> None:
    records = read_batches(GOLDEN)[0].records()
    assert len(records) == 2
    assert records[-1] == records[1]
    assert records[0:1] == [records[0]]
    with pytest.raises(IndexError, match="record 2 of 2"):
        records[2]
    assert records.keys() == [b"k", None]
    assert records.values() == [b"v1", None]
    assert records.offsets() == [42, 43]
    assert records.timestamps() == [1000, 1100]
    assert records.headers() == [(("h", b"x"),), (("h2", None),)]


def test_record_is_a_value() -> None:
    record = Record(1, 2, b"k", None, [("h", None)])
    assert record == pickle.loads(pickle.dumps(record))
    assert len({record, Record(1, 2, b"k", None, [("h", None)])}) == 1
    assert record != Record(1, 2, b"k", b"", [("h", None)])
    assert record != "something else"
    assert (
        repr(record)
        == "Record(offset=1, timestamp_ms=2, key=b'k', value=None, headers=(('h', None),))"
    )
    with pytest.raises(AttributeError):
        record.offset = 5  # type: ignore[misc]


def test_batches_follow_each_other_and_the_last_may_be_cut() -> None:
    for cut in range(len(GOLDEN)):
        batches = read_batches(GOLDEN + GOLDEN[:cut])
        assert len(batches) == 1
        assert batches.partial == GOLDEN[:cut]
        assert batches.partial_size == (len(GOLDEN) if cut >= 12 else None)
    assert len(read_batches(GOLDEN * 3)) == 3
    assert len(read_batches(b"")) == 0


def test_a_view_keeps_its_buffer() -> None:
    data = bytearray(GOLDEN)
    records = read_batches(data)[0].records()
    with pytest.raises(BufferError):
        data.clear()
    assert records[0].key == b"k"
    del records
    data.clear()


def test_batch_inside_a_larger_view() -> None:
    batch = read_batches(memoryview(b"xx" + GOLDEN + b"y")[2:-1])[0]
    assert batch.data == GOLDEN
    assert len(batch.records()) == 2


def test_every_bit_flip_is_caught_or_stands_outside_the_crc() -> None:
    """The CRC guards attributes to the end; offset and leader epoch are the broker's to change."""
    for position in range(len(GOLDEN)):
        for bit in range(8):
            flipped = bytearray(GOLDEN)
            flipped[position] ^= 1 << bit
            if position < 8 or 12 <= position < 16:
                batch = read_batches(flipped)[0]
                batch.check_crc()
                assert (batch.base_offset, batch.leader_epoch) != (42, 4)
                continue
            try:
                batches = read_batches(flipped)
            except CorruptBatchError:
                assert 8 <= position < 12 or position == 16  # length or magic
                continue
            if 8 <= position < 12 and not len(batches):
                assert batches.partial_size is not None  # longer than what is there
                assert batches.partial_size > len(GOLDEN)
                continue
            with pytest.raises(CorruptBatchError, match="has CRC"):
                batches[0].check_crc()


def test_truncated_records_with_a_right_crc() -> None:
    """The structure is checked for itself: a broken writer makes right CRCs too."""
    for cut in range(HEADER_SIZE, len(GOLDEN)):
        with pytest.raises(CorruptBatchError, match="at offset 42"):
            read_batches(with_crc(GOLDEN[:cut]))[0].records()


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_batch_length_below_the_smallest(length: int) -> None:
    bad = GOLDEN[:8] + struct.pack(">i", length) + GOLDEN[12:]
    with pytest.raises(CorruptBatchError, match=f"offset 42 announces {length} bytes"):
        read_batches(bad)


@pytest.mark.parametrize("length", [14, 48])
def test_batch_length_below_the_header(length: int) -> None:
    bad = GOLDEN[:8] + struct.pack(">i", length) + GOLDEN[12:]
    with pytest.raises(CorruptBatchError, match="shorter than the 61 bytes"):
        read_batches(bad)


@pytest.mark.parametrize("magic", [-1, 3, 127, -128])
def test_unknown_magic_is_named(magic: int) -> None:
    bad = GOLDEN[:16] + struct.pack(">b", magic) + GOLDEN[17:]
    with pytest.raises(CorruptBatchError, match=f"has magic {magic};"):
        read_batches(GOLDEN + bad)


@pytest.mark.parametrize(
    ("records", "count", "last_offset_delta", "message"),
    [
        (GOLDEN_RECORDS, -1, 1, "no batch can have"),
        (GOLDEN_RECORDS, 2, -1, "no batch can have"),
        (GOLDEN_RECORDS, 2**31 - 1, 1, "more records than its bytes"),
        (GOLDEN_RECORDS, 3, 2, "ends inside this record .record 2 of 3"),
        (GOLDEN_RECORDS, 1, 1, "left over"),
        (GOLDEN_RECORDS, 0, 1, "left over"),
        (GOLDEN_RECORDS, 2, 0, "offset deltas that do not rise"),
        (GOLDEN_RECORDS[:14] * 2, 2, 1, "offset deltas that do not rise"),
        (bytes.fromhex("0c 00 00 01 01 01 00"), 1, 0, "offset deltas"),  # delta -1
        (bytes.fromhex("0c 00 00 00 03 01 00"), 1, 0, "key or value length"),  # key length -2
        (bytes.fromhex("0c 00 00 00 02 01 00"), 1, 0, "malformed|do not fill"),  # key "\1"
        (bytes.fromhex("0c 00 00 00 01 06 00"), 1, 0, "key or value length"),  # value past end
        (bytes.fromhex("0c 00 00 00 01 01 01"), 1, 0, "headers are malformed"),  # count -1
        (bytes.fromhex("0c 00 00 00 01 01 02"), 1, 0, "headers are malformed"),  # count 1, no bytes
        (bytes.fromhex("10 00 00 00 01 01 02 01 01"), 1, 0, "headers are malformed"),  # null name
        (bytes.fromhex("10 00 00 00 01 01 02 00 03"), 1, 0, "headers are malformed"),  # value -2
        (bytes.fromhex("14 00 00 00 01 01 feffffff0f"), 1, 0, "headers"),  # 2^31-1 headers
        (bytes.fromhex("0e 00 00 00 01 01 00 00"), 1, 0, "do not fill"),
        (bytes.fromhex("01 00 00 00 01 01 00"), 1, 0, "ends inside"),  # length -1
        (bytes.fromhex("0a 00 00 00 01 01 00"), 1, 0, "headers are malformed"),  # cut by length
        (bytes.fromhex("ffffffffff01 00"), 1, 0, "ends inside"),  # six-byte varint
        (bytes.fromhex("ffffffff1f 0000"), 1, 0, "ends inside"),  # 33 bits
    ],
)
def test_malformed_records(
    records: bytes, count: int, last_offset_delta: int, message: str
) -> None:
    batch = read_batches(with_records(records, count, last_offset_delta))[0]
    with pytest.raises(CorruptBatchError, match=message):
        batch.records()


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    bad = bytearray(GOLDEN)
    bad[22] |= codec
    batch = read_batches(with_crc(bytes(bad)))[0]
    with pytest.raises(CorruptBatchError, match=f"unknown codec {codec}"):
        batch.records()


@pytest.mark.parametrize("base_offset", [-1, -(2**63), 2**63 - 1])
def test_offsets_outside_a_log(base_offset: int) -> None:
    bad = struct.pack(">q", base_offset) + GOLDEN[8:]
    with pytest.raises(CorruptBatchError, match="no batch can have"):
        read_batches(bad)[0].records()


@pytest.mark.parametrize("base", [-1, 0, -(2**63), 2**63 - 1])
def test_extreme_timestamps(base: int) -> None:
    builder = RecordBatchBuilder()
    builder.append(None, b"", base)
    builder.append(None, b"", -1)
    batch = read_batches(builder.build())[0]
    assert batch.base_timestamp == base
    assert batch.max_timestamp == max(base, -1)
    assert batch.records().timestamps() == [base, -1]


def test_log_append_time_stamps_all_records() -> None:
    builder = RecordBatchBuilder(log_append_time_ms=5000)
    builder.append(None, b"a", 1)
    builder.append(None, b"b", 9999)
    batch = read_batches(builder.build())[0]
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.max_timestamp == 5000
    assert batch.records().timestamps() == [5000, 5000]


def test_gaps_and_removed_tail_of_compaction() -> None:
    builder = RecordBatchBuilder(base_offset=100)
    builder.append(None, b"a", 1, offset_delta=3)
    builder.append(None, b"b", 1, offset_delta=10)
    batch = read_batches(builder.build(last_offset_delta=20))[0]
    assert batch.records().offsets() == [103, 110]
    assert batch.next_offset == 121
    with pytest.raises(UsageError, match="offset delta 10 after 10"):
        builder.append(None, b"c", 1, offset_delta=10)
    with pytest.raises(UsageError, match="below the last record's"):
        builder.build(last_offset_delta=9)


@pytest.mark.parametrize("codec", list(Codec))
def test_empty_batch(codec: Codec) -> None:
    batch = read_batches(RecordBatchBuilder(codec=codec).build(last_offset_delta=4))[0]
    assert batch.next_offset == 5
    assert list(batch.records()) == []
    assert (batch.record_count, batch.base_timestamp, batch.max_timestamp) == (0, -1, -1)
    with pytest.raises(UsageError, match="needs a last offset delta"):
        RecordBatchBuilder().build()


def test_builder_takes_buffers_and_refuses_the_rest() -> None:
    builder = RecordBatchBuilder()
    builder.append(
        bytearray(b"k"), memoryview(b"xvx")[1:2], 0, [("é", "ü"), ("b", bytearray(b"1"))]
    )
    record = read_batches(builder.build())[0].records()[0]
    assert (record.key, record.value) == (b"k", b"v")
    assert record.headers == (("é", "ü".encode()), ("b", b"1"))
    before = builder.build()
    for key, value, headers in [
        ("str", None, ()),
        (None, 1, ()),
        (None, memoryview(b"abcd")[::2], ()),
        (None, b"", [(b"h", b"")]),
        (None, b"", [("h", 1)]),
        (None, b"", ["h"]),
    ]:
        with pytest.raises((TypeError, BufferError)):
            builder.append(key, value, 0, headers)  # type: ignore[arg-type]
    assert builder.build() == before


def test_header_name_that_is_not_utf8_is_repaired() -> None:
    records = bytes.fromhex("12 00 00 00 01 01 02 02 ff 01")
    assert read_batches(with_records(records))[0].records()[0].headers == (("\ufffd", None),)


@pytest.mark.parametrize("kind", list(ControlType))
def test_control_batch(kind: ControlType) -> None:
    data = build_control_batch(
        kind,
        base_offset=9,
        producer_id=1,
        producer_epoch=2,
        timestamp_ms=3,
        coordinator_epoch=4,
        leader_epoch=5,
    )
    batch = read_batches(data)[0]
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.base_sequence, batch.producer_id, batch.leader_epoch) == (-1, 1, 5)
    assert batch.control_record() == ControlRecord(kind, 0, 4)
    record = batch.records()[0]
    assert record.key == bytes([0, 0, 0, kind])
    assert record.value == bytes([0, 0, 0, 0, 0, 4])


def control_batch(key: bytes | None, value: bytes | None, count: int = 1) -> bytes:
    builder = RecordBatchBuilder(is_control=True, is_transactional=True)
    for _ in range(count):
        builder.append(key, value, 0)
    return builder.build()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (control_batch(b"\0\0\0", None), "malformed key"),
        (control_batch(None, None), "malformed key"),
        (control_batch(b"\xff\xff\0\1", None), "malformed key"),
        (control_batch(b"\0\0\0\1", b"\0\0\0"), "malformed value"),
        (control_batch(b"\0\0\0\0", None), "malformed value"),
        (control_batch(b"\0\0\0\1", bytes(6), count=2), "2 records instead of one"),
        (GOLDEN, "is not a control batch"),
    ],
)
def test_malformed_control_batches(data: bytes, message: str) -> None:
    with pytest.raises(CorruptBatchError, match=message):
        read_batches(data)[0].control_record()


def test_compressed_control_batch_is_refused() -> None:
    bad = bytearray(control_batch(b"\0\0\0\1", bytes(6)))
    bad[22] |= Codec.ZSTD
    with pytest.raises(CorruptBatchError, match="control batch, but compressed"):
        read_batches(with_crc(bytes(bad)))[0].control_record()


def test_unknown_control_type_is_kept() -> None:
    batch = read_batches(control_batch(b"\0\1\0\7", b"anything"))[0]
    assert batch.control_record() == ControlRecord(7, 1, -1)


def test_stamp_batch_gives_a_place_in_the_log() -> None:
    data = bytearray(GOLDEN)
    stamp_batch(data, base_offset=1000, leader_epoch=8)
    assert data[21:] == GOLDEN[21:]
    batch = read_batches(data)[0]
    batch.check_crc()
    assert (batch.base_offset, batch.leader_epoch, batch.producer_id) == (1000, 8, 7)

    data = bytearray(GOLDEN)
    stamp_batch(data, base_offset=1, leader_epoch=2, log_append_time_ms=777)
    batch = read_batches(data)[0]
    assert batch.is_transactional
    assert batch.records().timestamps() == [777, 777]


@pytest.mark.parametrize(
    "data", [b"", GOLDEN[:-1], GOLDEN + b"x", GOLDEN[:16] + b"\1" + GOLDEN[17:]]
)
def test_stamp_batch_refuses_anything_else(data: bytes) -> None:
    with pytest.raises(UsageError, match="exactly one record batch"):
        stamp_batch(bytearray(data), base_offset=0, leader_epoch=0)


def test_stamp_batch_needs_a_writable_buffer() -> None:
    with pytest.raises(BufferError):
        stamp_batch(GOLDEN, base_offset=0, leader_epoch=0)


def test_not_to_be_made_by_hand() -> None:
    with pytest.raises(TypeError, match="comes from read_batches"):
        type(read_batches(GOLDEN)[0])()
    with pytest.raises(TypeError, match="come from RecordBatch"):
        type(read_batches(GOLDEN)[0].records())()


def test_large_batch_crosses_the_nogil_path() -> None:
    builder = RecordBatchBuilder()
    for i in range(5000):
        builder.append(b"key-%d" % i, bytes(100), i)
    batch = read_batches(builder.build())[0]
    assert batch.size > 500_000
    records = batch.records()
    assert records.offsets() == list(range(5000))
    assert records[4999].key == b"key-4999"
