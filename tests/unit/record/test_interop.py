"""Record batches between this codec, kafka-python's and aiokafka's, in both directions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kafka_fast.record import Codec, Record, RecordBatchBuilder, TimestampType, read_batches

HEADERS: list[tuple[tuple[str, bytes | None], ...]] = [
    (),
    (("name", b"value"),),
    (("", b""), ("ü", "é".encode()), ("null", None), ("null", b"twice")),
]
PARTS = list(itertools.product((None, b"", b"key" * 30), (None, b"", b"value" * 40), HEADERS))
TIMESTAMPS = [1_700_000_000_000, 1_700_000_000_000 - 5_000, 1_700_003_600_000, 0]
RECORDS = [
    Record(i, TIMESTAMPS[i % len(TIMESTAMPS)], key, value, headers)
    for i, (key, value, headers) in enumerate(PARTS)
]
# aiokafka's and kafka-python's writers cannot express a null header value.
WRITABLE = [
    Record(r.offset, r.timestamp_ms, r.key, r.value, [h for h in r.headers if h[1] is not None])
    for r in RECORDS
]


def peer(name: str) -> Any:
    """Return the module of record batches v2 of another client."""
    return pytest.importorskip(f"{name}.record.default_records")


def written_by_us(codec: Codec, **options: Any) -> bytes:
    builder = RecordBatchBuilder(codec=codec, **options)
    for record in RECORDS:
        builder.append(record.key, record.value, record.timestamp_ms, record.headers)
    return builder.build()


def as_record(theirs: Any) -> Record:
    return Record(theirs.offset, theirs.timestamp, theirs.key, theirs.value, theirs.headers)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("name", ["kafka", "aiokafka"])
def test_they_read_what_we_write(name: str, codec: Codec) -> None:
    data = written_by_us(codec, producer_id=77, producer_epoch=3, base_sequence=12)
    batch = peer(name).DefaultRecordBatch(bytearray(data))
    assert batch.validate_crc()
    assert batch.compression_type == codec
    assert batch.producer_id == 77
    assert batch.next_offset == len(RECORDS)
    assert [as_record(record) for record in batch] == RECORDS


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("name", ["kafka", "aiokafka"])
def test_we_read_what_they_write(name: str, codec: Codec) -> None:
    builder = peer(name).DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=True,
        producer_id=99,
        producer_epoch=2,
        base_sequence=7,
        batch_size=1 << 20,
    )
    for i, record in enumerate(WRITABLE):
        assert builder.append(
            i, record.timestamp_ms, record.key, record.value, list(record.headers)
        )
    batch = read_batches(bytes(builder.build()))[0]
    assert batch.codec is codec
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (99, 2, 7)
    assert batch.base_timestamp == TIMESTAMPS[0]
    assert batch.max_timestamp == max(TIMESTAMPS)
    assert list(batch.records()) == WRITABLE


@pytest.mark.parametrize("name", ["kafka", "aiokafka"])
def test_log_append_time(name: str) -> None:
    data = written_by_us(Codec.NONE, log_append_time_ms=123_456)
    batch = peer(name).DefaultRecordBatch(bytearray(data))
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in batch} == {123_456}


@pytest.mark.parametrize("name", ["kafka", "aiokafka"])
def test_same_bytes_without_compression(name: str) -> None:
    builder = peer(name).DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    ours = RecordBatchBuilder(leader_epoch=0)
    for i, record in enumerate(WRITABLE):
        builder.append(i, record.timestamp_ms, record.key, record.value, list(record.headers))
        ours.append(record.key, record.value, record.timestamp_ms, record.headers)
    theirs = bytearray(builder.build())
    theirs[12:16] = bytes(4)  # leader epoch: -1 or 0, as each likes it
    assert bytes(theirs) == ours.build()
