"""Message sets of formats v0 and v1: made by hand, by the slow codec, and by other clients."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest

from kafka_fast.errors import CorruptBatchError
from kafka_fast.record import (
    Codec,
    Record,
    RecordBatchBuilder,
    TimestampType,
    compress,
    read_batches,
)
from tests.reference.record_codec import encode_message

# Format v0: offset 5, key "k", value "val"; v1: offset 6, create time 1000, null key, "v".
GOLDEN_V0_UNDER_CRC = bytes.fromhex("00 00 00000001 6b 00000003 76616c")
GOLDEN_V0 = (
    bytes.fromhex("0000000000000005 00000012")
    + struct.pack(">I", zlib.crc32(GOLDEN_V0_UNDER_CRC))
    + GOLDEN_V0_UNDER_CRC
)
GOLDEN_V1_UNDER_CRC = bytes.fromhex("01 00 00000000000003e8 ffffffff 00000001 76")
GOLDEN_V1 = (
    bytes.fromhex("0000000000000006 00000017")
    + struct.pack(">I", zlib.crc32(GOLDEN_V1_UNDER_CRC))
    + GOLDEN_V1_UNDER_CRC
)


def read_all(data: bytes, *, check_crc: bool = True) -> list[Record]:
    return [record for batch in read_batches(data) for record in batch.records(check_crc=check_crc)]


def wrap(
    magic: int,
    inner: bytes,
    offset: int,
    codec: Codec = Codec.GZIP,
    *,
    append_time: int | None = None,
) -> bytes:
    """Return a compressed message round a message set."""
    attributes = codec | (8 if append_time is not None else 0)
    packed = gzip.compress(inner) if codec is Codec.GZIP else compress(codec, inner)
    return encode_message(
        magic, offset, None, packed, timestamp_ms=append_time or 0, attributes=attributes
    )


def inner_set(magic: int, offsets: list[int]) -> bytes:
    return b"".join(
        encode_message(magic, offset, b"k%d" % i, b"v%d" % i, timestamp_ms=100 + i)
        for i, offset in enumerate(offsets)
    )


def test_golden_bytes() -> None:
    assert encode_message(0, 5, b"k", b"val") == GOLDEN_V0
    assert encode_message(1, 6, None, b"v", timestamp_ms=1000) == GOLDEN_V1
    first, second = read_batches(GOLDEN_V0 + GOLDEN_V1)
    assert (first.magic, first.base_offset, first.next_offset) == (0, 5, 6)
    assert (first.base_timestamp, first.record_count, first.producer_id) == (-1, 1, -1)
    assert list(first.records()) == [Record(5, -1, b"k", b"val")]
    assert (second.magic, second.max_timestamp) == (1, 1000)
    assert second.timestamp_type is TimestampType.CREATE_TIME
    assert list(second.records()) == [Record(6, 1000, None, b"v")]


def test_all_formats_in_one_buffer() -> None:
    builder = RecordBatchBuilder(base_offset=7)
    builder.append(b"a", b"b", 1)
    batches = read_batches(GOLDEN_V0 + builder.build() + GOLDEN_V1 + builder.build()[:40])
    assert [batch.magic for batch in batches] == [0, 2, 1]
    assert [len(batch.records()) for batch in batches] == [1, 1, 1]
    assert len(batches.partial) == 40


@pytest.mark.parametrize("golden", [GOLDEN_V0, GOLDEN_V1])
def test_cut_off_at_every_byte(golden: bytes) -> None:
    for cut in range(len(golden)):
        batches = read_batches(golden[:cut])
        assert len(batches) == 0
        assert batches.partial == golden[:cut]
    for cut in range(16, len(golden)):  # the length tells the truth, the message does not
        short = golden[:8] + struct.pack(">i", cut - 12) + golden[12:cut]
        with pytest.raises(CorruptBatchError):
            read_all(short, check_crc=False)


@pytest.mark.parametrize("golden", [GOLDEN_V0, GOLDEN_V1])
def test_every_bit_flip_under_the_crc_is_caught(golden: bytes) -> None:
    for position in range(12, len(golden)):
        for bit in range(8):
            flipped = bytearray(golden)
            flipped[position] ^= 1 << bit
            with pytest.raises(CorruptBatchError):
                read_all(flipped)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_v1_counts_from_the_last_inner_offset(codec: Codec) -> None:
    batch = read_batches(wrap(1, inner_set(1, [0, 1, 4]), 104, codec))[0]
    assert batch.codec is codec
    assert (batch.record_count, batch.next_offset) == (-1, 105)
    assert list(batch.records()) == [
        Record(100, 100, b"k0", b"v0"),
        Record(101, 101, b"k1", b"v1"),
        Record(104, 102, b"k2", b"v2"),
    ]


def test_v1_outer_offset_zero_says_nothing() -> None:
    assert read_batches(wrap(1, inner_set(1, [0, 1, 2]), 0))[0].records().offsets() == [0, 1, 2]


def test_v1_log_append_time_is_the_outer_one() -> None:
    batch = read_batches(wrap(1, inner_set(1, [0, 1]), 9, append_time=555))[0]
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.records().timestamps() == [555, 555]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_v0_keeps_absolute_offsets(codec: Codec) -> None:
    batch = read_batches(wrap(0, inner_set(0, [50, 51, 60]), 60, codec))[0]
    assert batch.records().offsets() == [50, 51, 60]
    assert batch.records().timestamps() == [-1, -1, -1]


def test_v0_lz4_with_its_wrong_checksum() -> None:
    packed = bytearray(compress(Codec.LZ4, inner_set(0, [3])))
    packed[6] ^= 0xFF
    message = encode_message(0, 3, None, bytes(packed), attributes=Codec.LZ4)
    assert read_batches(message)[0].records().values() == [b"v0"]
    message = encode_message(1, 3, None, bytes(packed), attributes=Codec.LZ4)
    with pytest.raises(CorruptBatchError, match="cannot be decompressed: lz4"):
        read_batches(message)[0].records()


def damaged(inner: bytes) -> bytes:
    return inner[:-1] + bytes([inner[-1] ^ 1])


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (wrap(1, b"", 5), "holds no message"),
        (wrap(1, inner_set(1, [0])[:-1], 5), "malformed message set"),
        (wrap(1, inner_set(1, [0]) + b"\0", 5), "malformed message set"),
        (
            wrap(1, damaged(inner_set(1, [0])), 5),
            "holds a message with a wrong CRC .message 0 of 1",
        ),
        (wrap(1, wrap(1, inner_set(1, [0]), 0), 5), "compressed once more"),
        (wrap(1, inner_set(0, [0]), 5), "of format v1 holds a message of v0"),
        (wrap(0, inner_set(1, [0]), 5), "of format v0 holds a message of v1"),
        (wrap(1, inner_set(1, [0, 6]), 5), "up to offset 6, beyond its own"),
        (wrap(1, inner_set(1, [1, 0]), 5), "offsets do not rise"),
        (wrap(1, inner_set(1, [-1, 0]), 5), "offsets do not rise"),
        (wrap(0, inner_set(0, [5, 5]), 5), "offsets do not rise"),
        (encode_message(1, 5, None, None, attributes=1), "compressed message without a value"),
        (encode_message(1, 5, None, b"x", attributes=5), "unknown codec 5"),
        (encode_message(1, 5, None, b"x", attributes=1), "cannot be decompressed: gzip"),
        (encode_message(0, -5, None, b"x"), "no log can have"),
    ],
)
def test_malformed(message: bytes, error: str) -> None:
    with pytest.raises(CorruptBatchError, match=error):
        read_batches(message)[0].records()


def test_inner_crc_may_be_trusted() -> None:
    message = wrap(1, damaged(inner_set(1, [0])), 5)
    assert len(read_batches(message)[0].records(check_crc=False)) == 1


def test_bomb_in_a_wrapper() -> None:
    message = wrap(1, encode_message(1, 0, None, bytes(1_000_000)), 0)
    with pytest.raises(
        CorruptBatchError, match=r"more than max.decompressed.batch.bytes \(1000\) allows"
    ):
        read_batches(message)[0].records(max_size=1000)


# Without lz4 in v0, whose wrong checksum kafka-python makes with one more package.
@pytest.mark.parametrize(
    ("magic", "codec"),
    [(0, Codec.NONE), (0, Codec.GZIP), (0, Codec.SNAPPY)]
    + [(1, codec) for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)],
)
def test_written_by_kafka_python(magic: int, codec: Codec) -> None:
    legacy = pytest.importorskip("kafka.record.legacy_records")
    builder = legacy.LegacyRecordBatchBuilder(
        magic=magic, compression_type=codec, batch_size=1 << 20
    )
    for i in range(20):
        builder.append(i, timestamp=1000 + i, key=b"k%d" % i if i % 3 else None, value=b"v" * i)
    assert read_all(bytes(builder.build())) == [
        Record(i, 1000 + i if magic else -1, b"k%d" % i if i % 3 else None, b"v" * i)
        for i in range(20)
    ]
