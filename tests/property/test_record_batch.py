"""Record batches against the slow codec, on arbitrary records and on arbitrary damage."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast._wire._checksum import crc32c
from kafka_fast.errors import CorruptBatchError
from kafka_fast.record import Codec, Record, RecordBatchBuilder, columns, read_batches
from tests.reference import record_codec as slow

INT64 = st.integers(-(2**63), 2**63 - 1)
MAYBE_BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=8)), max_size=3)
RECORDS = st.lists(st.tuples(MAYBE_BYTES, MAYBE_BYTES, INT64, HEADERS), min_size=1, max_size=12)

Parts = tuple["bytes | None", "bytes | None", int, list[tuple[str, "bytes | None"]]]


def build(records: list[Parts], **options: int) -> bytes:
    builder = RecordBatchBuilder(**options)  # type: ignore[arg-type]
    for key, value, timestamp_ms, headers in records:
        builder.append(key, value, timestamp_ms, headers)
    return builder.build()


def slow_batch(
    records: list[Parts], base_offset: int, leader_epoch: int, producer_id: int
) -> slow.SlowBatch:
    rows = tuple(
        slow.SlowRecord(base_offset + i, timestamp_ms, key, value, tuple(headers))
        for i, (key, value, timestamp_ms, headers) in enumerate(records)
    )
    timestamps = [row.timestamp_ms for row in rows]
    return slow.SlowBatch(
        base_offset, leader_epoch, 0, len(rows) - 1, timestamps[0], max(timestamps),
        producer_id, -1, -1, rows,
    )  # fmt: skip


@given(RECORDS, st.integers(0, 2**63 - 100), st.integers(-1, 2**31 - 1), INT64)
def test_same_bytes_as_the_slow_codec(
    records: list[Parts], base_offset: int, leader_epoch: int, producer_id: int
) -> None:
    expected = slow_batch(records, base_offset, leader_epoch, producer_id)
    data = build(
        records, base_offset=base_offset, leader_epoch=leader_epoch, producer_id=producer_id
    )
    assert data == slow.encode_batch(expected)
    assert slow.decode_batch(data) == expected


@given(RECORDS, st.sampled_from(list(Codec)))
def test_round_trip(records: list[Parts], codec: Codec) -> None:
    batch = read_batches(build(records, codec=codec))[0]
    read = batch.records()
    assert batch.codec is codec
    assert list(read) == [
        Record(i, timestamp_ms, key, value, headers)
        for i, (key, value, timestamp_ms, headers) in enumerate(records)
    ]
    assert read.keys() == [key for key, *_ in records]
    assert read.headers() == [tuple(headers) for *_, headers in records]


@given(RECORDS)
def test_columns_hold_the_same(records: list[Parts]) -> None:
    read = read_batches(build(records))[0].records()
    arrays = columns(read)
    assert arrays.offsets.tolist() == read.offsets()
    assert arrays.timestamps.tolist() == read.timestamps()
    for column, expected in ((arrays.keys, read.keys()), (arrays.values, read.values())):
        assert column.to_list() == expected
        assert column.null_count == expected.count(None)


@given(RECORDS, st.data())
@settings(max_examples=200)
def test_damage_is_judged_as_the_slow_codec_does(records: list[Parts], data: st.DataObject) -> None:
    """With the CRC made right again, any change is accepted by both readers or by neither."""
    damaged = bytearray(build(records))
    for _ in range(data.draw(st.integers(1, 3))):
        pos = data.draw(st.integers(21, len(damaged) - 1))
        damaged[pos] = data.draw(st.integers(0, 255))
    damaged[22] &= ~7  # codecs have tests of their own
    damaged[17:21] = crc32c(damaged[21:]).to_bytes(4, "big")
    try:
        expected = slow.decode_batch(bytes(damaged))
    except ValueError:
        expected = None
    try:
        records_read = [
            slow.SlowRecord(r.offset, r.timestamp_ms, r.key, r.value, r.headers)
            for r in read_batches(damaged)[0].records()
        ]
    except CorruptBatchError:
        records_read = None
    assert records_read == (None if expected is None else list(expected.records))


@given(st.binary(max_size=300))
def test_arbitrary_bytes_end_in_batches_or_a_typed_error(data: bytes) -> None:
    try:
        for batch in read_batches(data):
            list(batch.records(check_crc=False))
    except CorruptBatchError:
        pass
