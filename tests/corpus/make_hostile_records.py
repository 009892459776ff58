"""Write the hostile record batches: one file each in hostile/record/, one line in its expected.txt.

Run from the root of the project when a case is added; the files are committed, so that what a
parser once survived is replayed byte for byte on every build of it. The letters and numbers are
the kind of attack:

    R1 batch length    R4 codec          R7 last offset     R11 control batches
    R2 magic           R5 record count   R9 timestamps      R13 what compaction leaves
    R3 CRC             R6 record fields  R10 bombs, frames  R16 nested message sets
"""

from __future__ import annotations

import gzip
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kafka_fast.record import Codec, compress
from tests.reference.record_codec import (
    SlowBatch,
    SlowRecord,
    crc32c,
    encode_batch,
    encode_message,
    varint,
)

FOLDER = Path(__file__).parent / "hostile" / "record"
LIMIT = 100_000  # of the replay: bytes that decompression may give
RECORD = bytes.fromhex("0c 00 00 00 01 01 00")  # null key, null value, no headers


def batch(
    payload: bytes = RECORD,
    *,
    count: int = 1,
    last_delta: int = 0,
    attributes: int = 0,
    base_offset: int = 100,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    magic: int = 2,
    length: int | None = None,
    crc: int | None = None,
) -> bytes:
    """Return a batch v2 round `payload`, right but for what is asked to be wrong."""
    times = base_timestamp, max_timestamp
    under_crc = struct.pack(">hiqqqhii", attributes, last_delta, *times, -1, -1, -1, count)
    under_crc += payload
    return (
        struct.pack(
            ">qiibI",
            base_offset,
            9 + len(under_crc) if length is None else length,
            0,
            magic,
            crc32c(under_crc) if crc is None else crc,
        )
        + under_crc
    )


def packed(codec: Codec, payload: bytes, attributes: int = 0) -> bytes:
    """Return a batch whose records are said to be compressed."""
    return batch(payload, attributes=codec | attributes)


def record(fields: bytes) -> bytes:
    """Return a batch of one record with these bytes after its length."""
    return batch(varint(len(fields)) + fields)


def control(key: bytes, value: bytes, count: int = 1, attributes: int = 0x30) -> bytes:
    """Return a control batch."""
    rows = tuple(SlowRecord(100 + i, 0, key, value) for i in range(count))
    return encode_batch(SlowBatch(100, 0, attributes, count - 1, 0, 0, 1, 0, -1, rows))


def at(timestamp: int, delta: int = 0, attributes: int = 0) -> bytes:
    """Return a batch of one record, `delta` behind the batch's time."""
    row = b"\0" + varint(delta) + b"\0" + NOTHING + b"\0"
    times = {"base_timestamp": timestamp, "max_timestamp": timestamp}
    return batch(varint(len(row)) + row, attributes=attributes, **times)


def twice(codec: Codec, first: bytes) -> bytes:
    """Return a batch of two records in two frames, `first` being that of RECORD."""
    second = compress(codec, RECORD[:3] + b"\2" + RECORD[4:])
    return batch(first + second, count=2, last_delta=1, attributes=codec)


def lz4_with(checksum: bytes, data: bytes = RECORD) -> bytes:
    """Return a frame with this in the place of its header's checksum (Kafka 0.8's was wrong)."""
    frame = compress(Codec.LZ4, data)
    end = 14 if frame[4] & 8 else 6
    return frame[:end] + checksum + frame[end + 1 :]


def wrapped(inner: bytes, magic: int = 1, offset: int = 100) -> bytes:
    """Return a message that holds a gzipped message set."""
    return encode_message(magic, offset, None, gzip.compress(inner, mtime=0), attributes=1)


def xerial(blocks: bytes) -> bytes:
    """Return a batch with snappy blocks in xerial's framing."""
    return packed(Codec.SNAPPY, b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + blocks)


ZEROS = bytes(3 * LIMIT)
HEAD = bytes.fromhex("00 00 00")  # a record's attributes and deltas
NOTHING = bytes.fromhex("01 01")  # null key and value
LZ4_FRAME = compress(Codec.LZ4, RECORD)
SNAPPY_FRAME = compress(Codec.SNAPPY, RECORD)
ZSTD_FRAME = compress(Codec.ZSTD, RECORD)
# A zstd frame that declares 2^40 bytes of content and holds one.
ZSTD_LIE = bytes.fromhex("28b52ffd c0 50") + struct.pack("<Q", 1 << 40) + b"\x09\0\0x"
LZ4_LIE = bytes.fromhex("04224d18 68 40") + struct.pack("<Q", 1 << 40)
GOOD = batch()

CORRUPT = "CorruptBatchError"
CASES: list[tuple[str, bytes, str]] = [
    ("R1-length-minus-1", batch(length=-1), f"{CORRUPT} announces -1 bytes"),
    ("R1-length-min-int", batch(length=-(2**31)), f"{CORRUPT} announces -2147483648 bytes"),
    ("R1-length-zero", batch(length=0), f"{CORRUPT} announces 0 bytes"),
    ("R1-length-48", batch(length=48), f"{CORRUPT} shorter than the 61 bytes"),
    ("R1-length-past-end", GOOD + batch(length=2**31 - 1), "ok records=1 next=101 partial=68"),
    ("R1-cut-into-header", GOOD + GOOD[:30], "ok records=1 next=101 partial=30"),
    ("R2-magic-minus-1", batch(magic=-1), f"{CORRUPT} magic -1"),
    ("R2-magic-3", batch(magic=3), f"{CORRUPT} magic 3"),
    ("R2-magic-127", batch(magic=127), f"{CORRUPT} magic 127"),
    (
        "R2-mixed",
        encode_message(0, 98, b"a", b"b") + encode_message(1, 99, None, b"") + GOOD,
        "ok records=3 next=101 partial=0",
    ),
    ("R3-crc", batch(crc=1), f"{CORRUPT} offset 100 has CRC 0x00000001"),
    ("R4-codec-5", packed(5, RECORD), f"{CORRUPT} unknown codec 5"),  # type: ignore[arg-type]
    ("R4-codec-7", packed(7, RECORD), f"{CORRUPT} unknown codec 7"),  # type: ignore[arg-type]
    (
        "R4-codec-on-control",
        packed(Codec.GZIP, gzip.compress(RECORD, mtime=0), 0x30),
        f"{CORRUPT} control batch, but compressed",
    ),
    ("R5-count-negative", batch(count=-1), f"{CORRUPT} record count that no batch can have"),
    ("R5-count-huge", batch(count=2**31 - 1), f"{CORRUPT} more records than its bytes can hold"),
    ("R5-count-more", batch(RECORD + b"\x0c" * 9, count=2, last_delta=1), f"{CORRUPT} record 1 of"),
    ("R5-count-fewer", batch(RECORD * 2, last_delta=1), f"{CORRUPT} bytes left over"),
    ("R5-count-zero-with-records", batch(count=0), f"{CORRUPT} bytes left over"),
    ("R5-left-over", batch(RECORD + b"\0"), f"{CORRUPT} bytes left over"),
    ("R6-length-beyond-body", record(HEAD + NOTHING + b"\0\0"), f"{CORRUPT} do not fill"),
    ("R6-length-short", batch(b"\x0a" + RECORD[1:]), f"{CORRUPT} headers are malformed"),
    ("R6-length-past-end", batch(b"\x0e" + RECORD[1:]), f"{CORRUPT} ends inside"),
    ("R6-length-negative", batch(b"\x01" + RECORD[1:]), f"{CORRUPT} ends inside"),
    ("R6-key-past-end", record(HEAD + b"\x10\x01\x00"), f"{CORRUPT} key or value length"),
    ("R6-key-minus-2", record(HEAD + b"\x03\x01\x00"), f"{CORRUPT} key or value length"),
    ("R6-value-past-end", record(HEAD + b"\x01\x10\x00"), f"{CORRUPT} key or value length"),
    ("R6-value-min-int", record(HEAD + b"\x01" + varint(-(2**31))), f"{CORRUPT} key or value"),
    ("R6-headers-2-31", record(HEAD + NOTHING + varint(2**31 - 1)), f"{CORRUPT} headers"),
    ("R6-headers-negative", record(HEAD + NOTHING + b"\1"), f"{CORRUPT} headers"),
    ("R6-header-null-key", record(HEAD + NOTHING + b"\2\1\1"), f"{CORRUPT} headers"),
    ("R6-header-key-past-end", record(HEAD + NOTHING + b"\2\x20\1"), f"{CORRUPT} headers"),
    ("R6-header-value-past-end", record(HEAD + NOTHING + b"\2\0\x20"), f"{CORRUPT} headers"),
    ("R6-varint-6-bytes", batch(b"\xff" * 5 + b"\1" + RECORD), f"{CORRUPT} ends inside"),
    ("R6-varlong-11-bytes", record(b"\0" + b"\xff" * 10 + b"\1"), f"{CORRUPT} ends inside"),
    ("R6-varint-at-end", batch(b"\xff" * 7), f"{CORRUPT} ends inside"),
    ("R6-varint-overlong", batch(b"\x8c\x00" + RECORD[1:]), "ok records=1 next=101 partial=0"),
    ("R7-last-delta-negative", batch(last_delta=-1), f"{CORRUPT} has offsets"),
    ("R7-last-delta-below-real", batch(b"\x0c\0\0\2\1\1\0"), f"{CORRUPT} offset deltas"),
    ("R7-delta-negative", batch(b"\x0c\0\0\1\1\1\0"), f"{CORRUPT} offset deltas"),
    ("R7-delta-repeated", batch(RECORD * 2, count=2, last_delta=5), f"{CORRUPT} offset deltas"),
    ("R7-offset-overflow", batch(base_offset=2**63 - 1, last_delta=1), f"{CORRUPT} has offsets"),
    ("R7-offset-negative", batch(base_offset=-1), f"{CORRUPT} has offsets"),
    (
        "R9-timestamp-delta-min",
        record(b"\0" + varint(-(2**63)) + b"\0" + NOTHING + b"\0"),
        "ok records=1 next=101 partial=0",
    ),
    ("R9-timestamp-minus-1", at(-1), "ok records=1 next=101 partial=0"),
    ("R9-timestamp-min", at(-(2**63)), "ok records=1 next=101 partial=0"),
    ("R9-timestamp-max", at(2**63 - 1), "ok records=1 next=101 partial=0"),
    ("R9-timestamp-beyond-max", at(2**63 - 1, 1), "ok records=1 next=101 partial=0"),
    ("R9-log-append-time", at(-1, 2**62, attributes=8), "ok records=1 next=101 partial=0"),
    (
        "R10-gzip-bomb",
        packed(Codec.GZIP, gzip.compress(ZEROS, mtime=0)),
        f"{CORRUPT} more than max.decompressed.batch.bytes",
    ),
    (
        "R10-lz4-bomb",
        packed(Codec.LZ4, compress(Codec.LZ4, ZEROS)),
        f"{CORRUPT} more than max.decompressed.batch.bytes",
    ),
    (
        "R10-zstd-bomb",
        packed(Codec.ZSTD, compress(Codec.ZSTD, ZEROS)),
        f"{CORRUPT} more than max.decompressed.batch.bytes",
    ),
    (
        "R10-snappy-bomb",
        packed(Codec.SNAPPY, compress(Codec.SNAPPY, ZEROS)),
        f"{CORRUPT} more than max.decompressed.batch.bytes",
    ),
    ("R10-snappy-size-lie", packed(Codec.SNAPPY, b"\x80\x80\x04\0a"), f"{CORRUPT} snappy"),
    (
        "R10-snappy-size-2-32",
        packed(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\0a"),
        f"{CORRUPT} more than max.decompressed.batch.bytes",
    ),
    ("R10-zstd-size-lie", packed(Codec.ZSTD, ZSTD_LIE), f"{CORRUPT} zstd"),
    ("R10-lz4-size-lie", packed(Codec.LZ4, LZ4_LIE), f"{CORRUPT} lz4"),
    (
        "R10-gzip-truncated",
        packed(Codec.GZIP, gzip.compress(RECORD, mtime=0)[:-9]),
        f"{CORRUPT} gzip",
    ),
    ("R10-lz4-truncated", packed(Codec.LZ4, LZ4_FRAME[:-4]), f"{CORRUPT} lz4: the data is cut off"),
    ("R10-zstd-truncated", packed(Codec.ZSTD, ZSTD_FRAME[:-2]), f"{CORRUPT} zstd: the data is cut"),
    (
        "R10-gzip-garbage",
        packed(Codec.GZIP, gzip.compress(RECORD, mtime=0) + b"xx"),
        f"{CORRUPT} gzip",
    ),
    ("R10-lz4-garbage", packed(Codec.LZ4, LZ4_FRAME + b"xxxxxxxx"), f"{CORRUPT} lz4"),
    ("R10-zstd-garbage", packed(Codec.ZSTD, ZSTD_FRAME + b"xxxxxxxx"), f"{CORRUPT} zstd"),
    ("R10-snappy-truncated", packed(Codec.SNAPPY, SNAPPY_FRAME[:-1]), f"{CORRUPT} snappy"),
    ("R10-snappy-garbage", packed(Codec.SNAPPY, SNAPPY_FRAME + b"xx"), f"{CORRUPT} snappy"),
    ("R10-zstd-two-frames", twice(Codec.ZSTD, ZSTD_FRAME), "ok records=2 next=102 partial=0"),
    ("R10-lz4-two-frames", twice(Codec.LZ4, LZ4_FRAME), "ok records=2 next=102 partial=0"),
    (
        "R10-gzip-two-members",
        twice(Codec.GZIP, gzip.compress(RECORD, mtime=0)),
        "ok records=2 next=102 partial=0",
    ),
    ("R10-lz4-header-checksum", packed(Codec.LZ4, lz4_with(b"\0")), f"{CORRUPT} lz4"),
    (
        "R10-lz4-header-checksum-v0",
        encode_message(
            0, 100, None, lz4_with(b"\0", encode_message(0, 100, None, b"")), attributes=3
        ),
        "ok records=1 next=101 partial=0",
    ),
    ("R10-xerial-zero", xerial(bytes(4)), f"{CORRUPT} snappy"),
    (
        "R10-xerial-negative",
        xerial(struct.pack(">i", -1) + b"\7\x18" + RECORD),
        f"{CORRUPT} snappy",
    ),
    (
        "R10-xerial-past-end",
        xerial(struct.pack(">i", 99) + b"\7\x18" + RECORD),
        f"{CORRUPT} snappy",
    ),
    ("R10-xerial-header-cut", packed(Codec.SNAPPY, b"\x82SNAPPY\0\0\0\0\1"), f"{CORRUPT} snappy"),
    ("R10-not-compressed", packed(Codec.ZSTD, RECORD), f"{CORRUPT} zstd"),
    ("R11-control-two-records", control(b"\0\0\0\1", bytes(6), 2), f"{CORRUPT} 2 records instead"),
    ("R11-control-short-key", control(b"\0\0\0", bytes(6)), f"{CORRUPT} malformed key"),
    ("R11-control-short-value", control(b"\0\0\0\1", bytes(5)), f"{CORRUPT} malformed value"),
    (
        "R11-control-unknown-type",
        control(b"\0\0\0\x63", b"data"),
        "ok records=1 next=101 partial=0",
    ),
    ("R11-control-empty", batch(b"", count=0, attributes=0x30), f"{CORRUPT} 0 records instead"),
    (
        "R13-gaps",
        batch(RECORD + b"\x0c\0\0\x0a\1\1\0", count=2, last_delta=9),
        "ok records=2 next=110 partial=0",
    ),
    ("R13-empty-batch", batch(b"", count=0, last_delta=4), "ok records=0 next=105 partial=0"),
    (
        "R13-empty-batch-with-codec",
        batch(b"", count=0, last_delta=4, attributes=4),
        "ok records=0 next=105 partial=0",
    ),
    ("R14-nothing", b"", "ok records=0 next=None partial=0"),
    ("R16-depth-2", wrapped(wrapped(encode_message(1, 0, None, b""))), f"{CORRUPT} once more"),
    ("R16-empty-wrapper", wrapped(b""), f"{CORRUPT} holds no message"),
    ("R16-mixed-magic", wrapped(encode_message(0, 0, None, b"")), f"{CORRUPT} message of v0"),
    (
        "R16-inner-crc",
        wrapped(encode_message(1, 0, None, b"x")[:-1] + b"y"),
        f"{CORRUPT} wrong CRC .message 0 of 1",
    ),
    ("R16-inner-offset", wrapped(encode_message(1, 101, None, b"")), f"{CORRUPT} beyond its own"),
    (
        "R16-bomb",
        wrapped(encode_message(1, 0, None, ZEROS)),
        f"{CORRUPT} more than max.decompressed.batch.bytes",
    ),
    ("R16-outer-crc", encode_message(1, 9, None, b"x")[:-1] + b"y", f"{CORRUPT} has CRC"),
    (
        "R16-key-negative",
        struct.pack(">qiI", 1, 18, zlib.crc32(b"\0\0" + struct.pack(">iii", -2, -1, 0)))
        + b"\0\0"
        + struct.pack(">iii", -2, -1, 0),
        f"{CORRUPT} malformed message",
    ),
]

FOLDER.mkdir(parents=True, exist_ok=True)
for old in FOLDER.glob("*.bin"):
    old.unlink()
lines = ["# file, then `ok` and what is read, or the error's class and a pattern of its message"]
for name, data, expected in CASES:
    (FOLDER / f"{name}.bin").write_bytes(data)
    lines.append(f"{name} {expected}")
(FOLDER / "expected.txt").write_text("\n".join(lines) + "\n")
