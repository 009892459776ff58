"""Write the seed corpus of the fuzz targets: small well-formed inputs to start from.

Run from the root of the project after a build; the files are committed, so this is needed only
when a format or a target changes.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from kafka_fast.record import Codec, ControlType, RecordBatchBuilder, build_control_batch, compress

CORPUS = Path(__file__).parent / "corpus"
TEXT = b"".join(b"flight %d from JFK to LAX;" % i for i in range(40))


def batches() -> dict[str, bytes]:
    """Return batches v2 of each shape."""
    plain = RecordBatchBuilder(base_offset=42, producer_id=7, producer_epoch=3, base_sequence=5)
    for i in range(3):
        plain.append(b"k" * i or None, TEXT[: 50 * i] or None, 1000 + i, [("h", b"x"), ("n", None)])
    gaps = RecordBatchBuilder(log_append_time_ms=5)
    gaps.append(None, b"a", 2**62, offset_delta=200)
    return {
        "plain": plain.build(),
        "gaps": gaps.build(last_offset_delta=100_000),
        "empty": RecordBatchBuilder().build(last_offset_delta=9),
        "control": build_control_batch(
            ControlType.COMMIT, base_offset=1, producer_id=1, producer_epoch=0, timestamp_ms=0
        ),
    }


def message(magic: int, offset: int, key: bytes | None, value: bytes | None) -> bytes:
    """Return a message of format v0 or v1."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1000) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def columns() -> dict[str, bytes]:
    """Return programs of the column target: layout, items, size of data, then what buffers hold.

    A column begins with the place of item 0 and with whether a validity bitmap follows.
    """
    steps = bytes([0, 3, 0, 4, 5, 1])  # from one offset to the next, behind a 0: none is hostile
    offsets = bytes([0, 0]) + TEXT[:40] + b"\0" + steps
    rows = bytes([1, 1, 0x2D, 8, 1, 2, 0]) + TEXT[:60]  # 8 bytes, 2 between two rows, forwards
    blobs = bytes([2, 20]) + TEXT[:20] + bytes([30]) + TEXT[:30]
    views = bytes([0, 5, 0, 0, 15, 0, 4, 26, 1, 3, 0, 0, 0])  # length, blob, position of each
    return {
        "nulls": bytes([0, 5, 0, 2, 1, 0x15]),
        "offsets32": bytes([1, 5, 40]) + offsets,
        "offsets64": bytes([2, 5, 40]) + offsets,
        "strided": bytes([3, 5, 0]) + rows,
        "padded": bytes([4, 5, 0]) + rows,
        "views": bytes([5, 4, 0, 0, 0]) + blobs + views,
        # 5 pairs in 3 rows: keys with offsets, values null, the lists of both
        "headers": bytes([6, 5, 3, 1, 40])
        + offsets
        + bytes([0, 0, 0, 0])
        + bytes([0, 0, 0])
        + TEXT[:5]
        + bytes([0, 0, 2, 1, 2]),
        # 70 pairs of nulls in one row; the raw offsets behind the 1 are big-endian
        "many-headers": bytes([6, 70, 1, *[0] * 11]) + TEXT[:70] + struct.pack(">bii", 1, 0, 70),
    }


def seeds() -> dict[str, dict[str, bytes]]:
    """Return target -> name -> bytes."""
    codecs = [codec for codec in Codec if codec]
    return {
        "walk": {
            "batches": bytes(8) + b"".join(batches().values()),
            "mixed": bytes(8) + message(0, 3, b"k", b"v") + message(1, 4, None, b"") * 2,
            "cut": bytes(8) + batches()["plain"] + batches()["gaps"][:70],
        },
        "wire": {
            "integers": bytes([0, 1, 1, 0, 2, 2, 0, 0, 0, 1, 3]) + bytes(range(8)),
            "varints": bytes([4, 0x80, 1, 5, 0xFF, 0x7F, 6]) + b"\xff" * 9 + b"\1" + b"\7\4ab",
            "tags": bytes([8, 2, 0, 1, 9, 3, 0, 9, 4, 1, 2]),
        },
        "batch": batches(),
        "legacy": {
            "v0": message(0, 5, b"k", b"v") + message(0, 6, None, None),
            "v1": message(1, 5, None, TEXT[:60]) + message(1, 6, b"", b""),
        },
        "decompress": {
            codec.name.lower(): bytes([codec - 1, 20]) + compress(codec, TEXT) for codec in codecs
        },
        "compress": {codec.name.lower(): bytes([codec - 1]) + TEXT for codec in codecs},
        "column": columns(),
        "crc32c": {"text": TEXT, "short": b"123456789"},
    }


for target, files in seeds().items():
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
