"""Batches, logs and readers of one partition, for the tests of readers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.record import build_control_batch
from kafka_fast.record.types import ControlType
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader
from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch

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


def spoilt(data: bytes) -> bytes:
    """Return the batch with a flipped bit under its CRC."""
    return data[:-1] + bytes([data[-1] ^ 1])
