"""Record batches, slowly and obviously: the oracle that the compiled codec is compared with.

Written from the protocol guide, with plain ints and slices, and nothing shared with kafka_fast but
the CRC's check value in its own test. Any malformed input raises ValueError.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import NamedTuple

Header = tuple[str, "bytes | None"]


class SlowRecord(NamedTuple):
    """One record, with its offset and timestamp in full."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class SlowBatch(NamedTuple):
    """The header of a batch v2, and its records."""

    base_offset: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: tuple[SlowRecord, ...]


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """Return the CRC32C of `data`, byte by byte."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def wrap64(number: int) -> int:
    """Return the number as Java's long would have it."""
    return (number + 2**63) % 2**64 - 2**63


def varint(number: int) -> bytes:
    """Encode a signed number: zigzag, seven bits a byte, least significant first."""
    raw = number * 2 if number >= 0 else -number * 2 - 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def lengthy(data: bytes | None) -> bytes:
    """Encode bytes with their length before them; -1 for null."""
    return varint(-1) if data is None else varint(len(data)) + data


def encode_record(record: SlowRecord, base_offset: int, base_timestamp: int) -> bytes:
    """Encode one record, its length included."""
    body = b"\0" + varint(wrap64(record.timestamp_ms - base_timestamp))
    body += varint(record.offset - base_offset) + lengthy(record.key) + lengthy(record.value)
    body += varint(len(record.headers))
    for name, value in record.headers:
        body += lengthy(name.encode()) + lengthy(value)
    return varint(len(body)) + body


def encode_batch(batch: SlowBatch) -> bytes:
    """Encode a batch; of the codecs only none (0) and gzip (1) are known here."""
    records = b"".join(
        encode_record(record, batch.base_offset, batch.base_timestamp) for record in batch.records
    )
    if batch.attributes & 7 == 1:
        records = gzip.compress(records)
    elif batch.attributes & 7:
        raise ValueError("unknown codec")
    under_crc = struct.pack(
        ">hiqqqhii",
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        len(batch.records),
    )
    under_crc += records
    head = struct.pack(
        ">qiibI", batch.base_offset, 9 + len(under_crc), batch.leader_epoch, 2, crc32c(under_crc)
    )
    return head + under_crc


class _Cursor:
    """Bytes and a position; reading past the end is a ValueError."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.pos + size > len(self.data):
            raise ValueError("not enough bytes")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def varint(self, bits: int) -> int:
        raw = shift = 0
        while True:
            byte = self.take(1)[0]
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                raise ValueError("varint too long")
        if raw >= 2**bits:
            raise ValueError("varint too large")
        return raw // 2 if raw % 2 == 0 else -(raw // 2) - 1

    def lengthy(self) -> bytes | None:
        size = self.varint(32)
        return None if size == -1 else self.take(size)

    def done(self) -> None:
        if self.pos != len(self.data):
            raise ValueError("bytes left over")


def decode_record(cursor: _Cursor, base_offset: int, base_timestamp: int) -> SlowRecord:
    """Decode one record."""
    body = _Cursor(cursor.take(cursor.varint(32)))
    body.take(1)
    timestamp = wrap64(base_timestamp + body.varint(64))
    offset = base_offset + body.varint(32)
    key = body.lengthy()
    value = body.lengthy()
    count = body.varint(32)
    if count < 0:
        raise ValueError("negative header count")
    headers = []
    for _ in range(count):
        name = body.lengthy()
        if name is None:
            raise ValueError("header without a name")
        headers.append((name.decode("utf-8", "replace"), body.lengthy()))
    body.done()
    return SlowRecord(offset, timestamp, key, value, tuple(headers))


def decode_batch(data: bytes) -> SlowBatch:
    """Decode exactly one batch v2."""
    if len(data) < 61:
        raise ValueError("not enough bytes")
    base_offset, length, leader_epoch, magic, crc = struct.unpack_from(">qiibI", data)
    if magic != 2 or length != len(data) - 12 or crc != crc32c(data[21:]):
        raise ValueError("wrong magic, length or CRC")
    (attributes, last_delta, base_timestamp, max_timestamp, producer_id, epoch, sequence, count) = (
        struct.unpack_from(">hiqqqhii", data, 21)
    )
    records_bytes = data[61:]
    if attributes & 7 == 1:
        records_bytes = zlib.decompress(records_bytes, 31)
    elif attributes & 7:
        raise ValueError("unknown codec")
    if count < 0 or last_delta < 0 or not 0 <= base_offset <= 2**63 - 1 - last_delta:
        raise ValueError("impossible offsets or count")
    cursor = _Cursor(records_bytes)
    records = []
    last = -1
    for _ in range(count):
        record = decode_record(cursor, base_offset, base_timestamp)
        if not last < record.offset - base_offset <= last_delta:
            raise ValueError("offsets do not rise")
        last = record.offset - base_offset
        records.append(
            record if not attributes & 8 else record._replace(timestamp_ms=max_timestamp)
        )
    cursor.done()
    return SlowBatch(
        base_offset,
        leader_epoch,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        epoch,
        sequence,
        tuple(records),
    )


def encode_message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp_ms: int = -1,
    attributes: int = 0,
) -> bytes:
    """Encode one message of format v0 or v1."""
    under_crc = struct.pack(">bb", magic, attributes)
    if magic == 1:
        under_crc += struct.pack(">q", timestamp_ms)
    for part in (key, value):
        under_crc += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">qiI", offset, 4 + len(under_crc), zlib.crc32(under_crc)) + under_crc
