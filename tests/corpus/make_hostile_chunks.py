"""Write the hostile chunks of Fetch answers: a file each in hostile/reading/, and expected.txt.

Run from the root of the project when a case is added, as make_hostile_records.py. Here the batches
are mostly well formed, and what is wrong is how they follow each other:

    R1 the last batch    R8 offsets backwards    R12 aborted transactions    R14 nothing
    R2 mixed formats     R11 control batches     R13 what compaction leaves  R16 old wrappers
"""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch, encode_message

FOLDER = Path(__file__).parent / "hostile" / "reading"
TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
ERROR = "UnreadableBatchError"


class Case(NamedTuple):
    """One chunk, what its answer says of it, and what must come out."""

    name: str
    data: bytes
    expected: str
    position: int = 0
    aborted: tuple[tuple[int, int], ...] = ()


def batch(first: int, last: int, *, producer: int = -1, attributes: int = 0) -> bytes:
    """Return a batch with a record at each offset; those of a producer are transactional."""
    attributes |= TRANSACTIONAL if producer >= 0 else 0
    rows = tuple(SlowRecord(i, i, None, b"%d" % i) for i in range(first, last + 1))
    return encode_batch(
        SlowBatch(first, 1, attributes, last - first, first, last, producer, 0, 0, rows)
    )


def gap(first: int, last: int) -> bytes:
    """Return a batch that compaction has emptied."""
    return encode_batch(SlowBatch(first, 1, 0, last - first, 0, 0, -1, -1, -1, ()))


def sparse(offsets: list[int], last: int) -> bytes:
    """Return a batch of which compaction has taken records, its last ones too."""
    rows = tuple(SlowRecord(i, i, None, b"") for i in offsets)
    return encode_batch(SlowBatch(offsets[0], 1, 0, last - offsets[0], 0, 0, -1, -1, -1, rows))


def marker(offset: int, producer: int, key: bytes, value: bytes = bytes(6)) -> bytes:
    rows = (SlowRecord(offset, 0, key, value),)
    return encode_batch(
        SlowBatch(offset, 1, TRANSACTIONAL | CONTROL, 0, 0, 0, producer, 0, -1, rows)
    )


def wrapper(outer: int, inner: bytes, magic: int = 1) -> bytes:
    return encode_message(magic, outer, None, gzip.compress(inner, mtime=0), attributes=1)


def crc_off(data: bytes) -> bytes:
    return data[:17] + bytes([data[17] ^ 0x80]) + data[18:]


def length(data: bytes, size: int) -> bytes:
    return data[:8] + struct.pack(">i", size) + data[12:]


TXN = batch(0, 1, producer=5) + marker(2, 5, ABORT) + batch(3, 4, producer=5) + marker(5, 5, COMMIT)

CASES = [
    Case("R1-partial-tail", batch(0, 1) + batch(2, 3)[:70], "ok 0,1 next=2"),
    Case("R1-partial-header", batch(0, 1) + batch(2, 3)[:16], "ok 0,1 next=2"),
    Case("R1-only-a-piece", batch(0, 1)[:40], "ok - next=0"),
    Case("R1-negative-behind-good", batch(0, 1) + length(batch(2, 3), -9), f"{ERROR} 0,1 -9 bytes"),
    Case("R2-magic-behind-good", batch(0, 0) + b"\xff" * 60, f"{ERROR} 0 announces -1 bytes"),
    Case(
        "R2-mixed-formats",
        encode_message(0, 0, None, b"")
        + batch(1, 1)
        + encode_message(1, 2, None, b"")
        + wrapper(4, encode_message(1, 0, None, b"") + encode_message(1, 1, None, b""))
        + batch(5, 5),
        "ok 0,1,2,3,4,5 next=6",
    ),
    Case(
        "R3-crc-in-the-middle", batch(0, 1) + crc_off(batch(2, 3)) + batch(4, 4), f"{ERROR} 0,1 CRC"
    ),
    Case("R3-crc-below-position", crc_off(batch(0, 1)) + batch(2, 2), f"{ERROR} - CRC", 2),
    Case("R7-begins-below", batch(0, 4) + batch(5, 5), "ok 3,4,5 next=6", 3),
    Case("R7-wholly-below", batch(0, 4) + batch(5, 5), "ok 5 next=6", 5),
    Case("R7-all-below", batch(0, 4), "ok - next=9", 9),
    Case("R7-far-above", batch(1000, 1001), "ok 1000,1001 next=1002", 3),
    Case("R8-repeated", batch(0, 1) * 2, f"{ERROR} 0,1 backwards"),
    Case("R8-overlap", batch(0, 2) + batch(2, 3), f"{ERROR} 0,1,2 backwards"),
    Case("R8-backwards", batch(5, 6) + batch(0, 1), f"{ERROR} 5,6 backwards"),
    Case("R8-behind-a-gap", gap(0, 9) + batch(9, 9), f"{ERROR} - backwards"),
    Case("R8-behind-a-marker", marker(5, 1, COMMIT) + batch(5, 5), f"{ERROR} - backwards"),
    Case("R8-below-position", batch(4, 5) + batch(0, 1) + batch(6, 6), f"{ERROR} - backwards", 6),
    Case("R11-unknown-type", marker(0, 1, b"\0\0\0\x09") + batch(1, 1), "ok 1 next=2"),
    Case("R11-short-key", marker(0, 1, b"\0\0") + batch(1, 1), f"{ERROR} - malformed key"),
    Case("R11-data-in-control", batch(0, 1, attributes=CONTROL), f"{ERROR} - 2 records instead"),
    Case("R12-plain", TXN, "ok 3,4 next=6", 0, ((5, 0),)),
    Case("R12-not-listed", TXN, "ok 0,1,3,4 next=6"),
    Case("R12-repeated", TXN, "ok 3,4 next=6", 0, ((5, 0),) * 9),
    Case("R12-unsorted", TXN, "ok - next=6", 0, ((5, 3), (9, 1), (5, 0))),
    Case("R12-unknown-producers", TXN, "ok 0,1,3,4 next=6", 0, ((-1, 0), (6, 0), (2**62, 4))),
    Case("R12-beyond-the-end", TXN, "ok 0,1,3,4 next=6", 0, ((5, 2**62),)),
    Case("R12-first-offset-negative", TXN, "ok 3,4 next=6", 0, ((5, -(2**63)),)),
    Case(
        "R12-empty-transaction",
        marker(0, 5, ABORT) + batch(1, 1, producer=5) + marker(2, 5, COMMIT),
        "ok 1 next=3",
        0,
        ((5, 0),),
    ),
    Case("R12-solitary-abort", marker(0, 5, ABORT) + batch(1, 1), "ok 1 next=2"),
    Case("R12-marker-below-position", TXN, "ok 3,4 next=6", 3, ((5, 0),)),
    Case("R12-position-inside", TXN, "ok 4 next=6", 4, ((5, 0),)),
    Case(
        "R12-two-producers",
        batch(0, 0, producer=5)
        + batch(1, 1, producer=6)
        + marker(2, 6, ABORT)
        + batch(3, 3, producer=6)
        + marker(4, 5, COMMIT)
        + marker(5, 6, COMMIT),
        "ok 0,3 next=6",
        0,
        ((6, 1),),
    ),
    Case("R13-empty-tail", batch(0, 0) + gap(1, 9), "ok 0 next=10"),
    Case("R13-only-empty", gap(0, 4) + gap(5, 9), "ok - next=10"),
    Case("R13-holes", sparse([2, 5], 9) + batch(10, 10), "ok 2,5,10 next=11"),
    Case("R13-tail-removed", sparse([2, 5], 9), "ok - next=10", 6),
    Case("R13-only-markers", marker(0, 1, COMMIT) + marker(1, 2, ABORT), "ok - next=2"),
    Case("R14-nothing", b"", "ok - next=7", 7),
    Case(
        "R16-wrapper-begins-below",
        wrapper(4, b"".join(encode_message(1, i, None, b"") for i in range(5))),
        "ok 3,4 next=5",
        3,
    ),
    Case(
        "R16-v0-inner-beyond-outer",
        wrapper(1, encode_message(0, 1, None, b"") + encode_message(0, 7, None, b""), magic=0)
        + encode_message(0, 2, None, b""),
        f"{ERROR} 1,7 backwards",
    ),
    Case(
        "R16-wrapper-overlaps",
        encode_message(1, 3, None, b"")
        + wrapper(4, encode_message(1, 0, None, b"") + encode_message(1, 1, None, b"")),
        f"{ERROR} 3 backwards",
    ),
]

FOLDER.mkdir(parents=True, exist_ok=True)
for old in FOLDER.glob("*.bin"):
    old.unlink()
lines = [
    "# file, position, aborted transactions as producer:offset, `ok` or the error's class, offsets",
    "# that are handed out under read_committed, the position after that or a part of the message",
]
for case in CASES:
    (FOLDER / f"{case.name}.bin").write_bytes(case.data)
    aborted = ",".join(f"{producer}:{offset}" for producer, offset in case.aborted) or "-"
    lines.append(f"{case.name} {case.position} {aborted} {case.expected}")
(FOLDER / "expected.txt").write_text("\n".join(lines) + "\n")
