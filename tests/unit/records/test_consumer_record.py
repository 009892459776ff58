"""One record: what it copies, what it leaves in the batch, and that it is a value."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Sequence

import pytest

from kafka_fast.record import RecordBatchBuilder, TimestampType, read_batches
from kafka_fast.record._slices import slice_of
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords

SHORT = b"v" * 256
LONG = b"v" * 257


class Buffer(bytearray):
    """A buffer whose end can be seen."""


def record_in(buffer: Buffer) -> ConsumerRecord:
    """Return the first record of a buffer with one batch."""
    return ConsumerRecords([slice_of(read_batches(buffer)[0], "t", 3)])[0]


def batch_of(
    value: bytes | None,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Buffer:
    builder = RecordBatchBuilder(base_offset=40, leader_epoch=5)
    builder.append(key, value, 1234, headers)
    return Buffer(builder.build())


def test_has_everything_that_the_batch_says() -> None:
    record = record_in(batch_of(b"value", b"key", [("h", b"x"), ("h", None)]))
    assert (record.topic, record.partition, record.offset) == ("t", 3, 40)
    assert (record.key, record.value) == (b"key", b"value")
    assert record.headers == (("h", b"x"), ("h", None))
    assert record.headers is record.headers
    assert record.timestamp_ms == 1234
    assert record.timestamp_type is TimestampType.CREATE_TIME
    assert record.leader_epoch == 5
    assert (record.serialized_key_size, record.serialized_value_size) == (3, 5)


def test_null_is_none_and_empty_is_empty() -> None:
    record = record_in(batch_of(b"", None))
    assert (record.key, record.value, record.headers) == (None, b"", ())
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, 0)


@pytest.mark.parametrize(
    ("value", "key", "headers", "pins"),
    [
        (SHORT, SHORT, [("h", b"x" * 200)], False),
        (LONG, None, [], True),
        (None, LONG, [], True),
        (None, None, [("h", LONG)], True),
        (LONG, LONG, [("h", LONG)], True),
    ],
)
def test_pins_its_buffer_while_something_long_is_unread(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]], pins: bool
) -> None:
    buffer = batch_of(value, key, headers)
    watch = weakref.ref(buffer)
    record = record_in(buffer)
    del buffer
    assert (watch() is not None) is pins
    assert record.value == value
    assert record.key == key
    assert record.headers == tuple(headers)
    assert watch() is None


def test_the_collector_need_not_know_of_bytes() -> None:
    assert not gc.is_tracked(record_in(batch_of(LONG, b"k", [("h", b"x")])))


def test_is_picklable_read_or_not() -> None:
    for value in (SHORT, LONG, None):
        record = record_in(batch_of(value, LONG, [("h", LONG)]))
        assert pickle.loads(pickle.dumps(record)) == record
        assert pickle.loads(pickle.dumps(record)).serialized_key_size == len(LONG)


def test_is_a_value() -> None:
    record = record_in(batch_of(b"v"))
    same = record_in(batch_of(b"v"))
    assert record == same
    assert len({record, same}) == 1
    assert record != record_in(batch_of(b"w"))
    assert record != "something else"
    with pytest.raises(AttributeError):
        record.offset = 3  # type: ignore[misc]
    assert repr(record) == (
        "ConsumerRecord(topic='t', partition=3, offset=40, key=None, value=b'v', "
        "timestamp_ms=1234, headers=())"
    )


def test_can_be_made_by_hand() -> None:
    record = ConsumerRecord("t", 1, 2, b"k", {"a": 1}, headers=[("h", None)], timestamp_type=1)
    assert record.value == {"a": 1}
    assert record.headers == (("h", None),)
    assert record.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (record.serialized_key_size, record.serialized_value_size) == (1, -1)
    assert (record.timestamp_ms, record.leader_epoch) == (-1, -1)
    with pytest.raises(ValueError, match="TimestampType"):
        ConsumerRecord("t", 1, 2, timestamp_type=7)


def test_cycles_through_made_objects_are_collected() -> None:
    class Made:
        record: ConsumerRecord

    value = Made()
    value.record = ConsumerRecord("t", 1, 2, None, value)
    watch = weakref.ref(value)
    del value
    gc.collect()
    assert watch() is None
