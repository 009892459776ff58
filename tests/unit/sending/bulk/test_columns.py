"""send_many: every form of its columns, read back from the embedded broker; and what is refused."""

from __future__ import annotations

import array
import ctypes
from datetime import date, datetime, timedelta, timezone
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from kafka_fast.errors import SerializationError, UsageError
from kafka_fast.producer import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.types import PartitionResult, TopicPartition
from tests.unit.sending.bulk.common import detached, fail_all, records_of, values_of

NOON = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
NOON_MS = 1_704_110_400_000
NAIVE = NOON.replace(tzinfo=None)


def test_every_kind_of_item(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    items = [b"a", "é", None, bytearray(b"x"), memoryview(b"yy"), "", b"", array.array("i", [1])]
    result = producer.send_many(topic, items, partitions=2).result(10)
    expected = [b"a", "é".encode(), None, b"x", b"yy", b"", b"", b"\1\0\0\0"]
    assert values_of(kafka, topic) == expected
    delivered = PartitionResult(len(items), 0, len(items) - 1, ANY)
    assert result == (len(items), 0, {TopicPartition(topic, 2): delivered})


def numpy_forms() -> list[Any]:
    grid = np.frombuffer(b"abcdef", dtype=np.uint8).reshape(3, 2)
    return [
        np.array([b"ab", b"cd", b"ef"]),
        np.array([b"ab", b"cd", b"ef"], dtype="S9"),
        np.array([b"ab", b"cd", b"ef"], dtype=object),
        np.array(["ab", "cd", "ef"]),
        grid,
        np.array([b"ef", b"cd", b"ab"])[::-1],
        np.frombuffer(b"ab--cd--ef--", dtype=np.uint8).reshape(3, 4)[:, :2],
        (np.frombuffer(b"abcdef", np.uint8), np.array([0, 2, 4, 6], np.int32)),
        (b"abcdef", np.array([0, 2, 4, 6], np.int64)),
    ]


@pytest.mark.parametrize("form", range(len(numpy_forms())))
def test_arrays_and_pairs(kafka: EmbeddedKafka, producer: Producer, topic: str, form: int) -> None:
    values = numpy_forms()[form]
    assert producer.send_many(topic, values, partitions=0).result(10).failed == 0
    assert values_of(kafka, topic) == [b"ab", b"cd", b"ef"]


def test_standard_librarys_arrays_are_offsets(
    kafka: EmbeddedKafka, producer: Producer, topic: str
) -> None:
    pair = (bytearray(b"--abcd"), array.array("i", [2, 3, 3, 6]))
    producer.send_many(topic, pair, partitions=0).result(10)
    assert values_of(kafka, topic) == [b"a", b"", b"bcd"]


@pytest.mark.parametrize(
    "values",
    [
        (b"abcdef", (ctypes.c_int * 4)(0, 2, 4, 6)),
        (b"abcdef", (ctypes.c_int64 * 4)(0, 2, 4, 6)),
        (ctypes.c_ubyte * 2 * 3).from_buffer_copy(b"abcdef"),
        (ctypes.c_char * 2 * 3).from_buffer_copy(b"abcdef"),
    ],
)
def test_ctypes_arrays(kafka: EmbeddedKafka, producer: Producer, topic: str, values: Any) -> None:
    """Regression: they tell no strides; one of offsets ended the process."""
    producer.send_many(topic, values, partitions=0).result(10)
    assert values_of(kafka, topic) == [b"ab", b"cd", b"ef"]


CTYPES = [getattr(ctypes, f"c_{sign}int{size}") for sign in ("", "u") for size in (8, 16, 32, 64)]


@pytest.mark.parametrize("kind", CTYPES)
def test_numbers_of_every_size(
    kafka: EmbeddedKafka, producer: Producer, topic: str, kind: Any
) -> None:
    times, strided = (kind * 2)(127, 5), memoryview(bytes([127, 9, 5, 9]))[::2]
    columns = {"partitions": (kind * 2)(3, 1), "timestamps_ms": times}
    producer.send_many(topic, [b"a", b"b"], **columns).result(10)
    producer.send_many(topic, [b"c", b"d"], partitions=3, timestamps_ms=strided).result(10)
    rows = [(record.timestamp_ms, record.value) for record in kafka.records(topic, 3)]
    assert rows == [(127, b"a"), (127, b"c"), (5, b"d")]
    assert [(record.timestamp_ms, record.value) for record in kafka.records(topic, 1)] == [
        (5, b"b")
    ]


def test_buffers_are_the_callers_again_when_the_call_returns(
    kafka: EmbeddedKafka, topic: str
) -> None:
    data, offsets = bytearray(b"abcdef"), array.array("i", [0, 2, 4, 6])
    times, item = array.array("q", [1, 2, 3]), bytearray(b"xy")
    with Producer(bootstrap_servers=kafka.bootstrap, linger_ms=60_000) as producer:
        producer.send_many(topic, (data, offsets), partitions=0, timestamps_ms=times)
        producer.send_many(topic, [item], partitions=0, timestamps_ms=4)
        data[:], offsets[1], times[0], item[:] = b"zzzzzz", 99, 77, b"??"
    rows = [(record.timestamp_ms, record.value) for record in kafka.records(topic, 0)]
    assert rows == [(1, b"ab"), (2, b"cd"), (3, b"ef"), (4, b"xy")]


def test_offsets_that_change_during_the_call_are_those_that_were_checked() -> None:
    """Regression: what was changed after the check was read as it was, wherever it led."""
    offsets = array.array("q", [0, 2, 4])

    class Meddling:
        def __index__(self) -> int:
            offsets[1] = 1 << 60
            return 0

    bulk = detached()
    future = bulk.send_many("t", (b"abcd", offsets), partitions=[Meddling(), 0])
    assert offsets[1] == 1 << 60
    assert bulk._queues.pending() == 2
    del future
    fail_all(bulk._queues)


def test_times_may_be_datetimes(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    times = [NOON, None, NOON + timedelta(milliseconds=2), 5]
    producer.send_many(topic, [b"v"] * 4, partitions=0, timestamps_ms=times)
    producer.send_many(topic, [b"v"] * 2, partitions=0, timestamps_ms=NOON).result(10)
    timestamps = [record.timestamp_ms for record in kafka.records(topic, 0)]
    assert timestamps.pop(1) > NOON_MS, "none is now"
    assert timestamps == [NOON_MS, NOON_MS + 2, 5, NOON_MS, NOON_MS]


def test_columns_of_everything(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    future = producer.send_many(
        topic,
        [b"0", b"1", b"2", b"3"],
        keys=[b"k", None, "ü", memoryview(b"m")],
        partitions=[3, 1, 3, 1],
        timestamps_ms=array.array("q", [10, 20, 30, 40]),
        headers=[[("a", b"1"), ("a", None)], None, {"b": "x"}, []],
    )
    assert future.result(10).partitions == {
        (topic, 1): PartitionResult(2, 0, 1, ANY),
        (topic, 3): PartitionResult(2, 0, 1, ANY),
    }
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in kafka.records(topic, 3)] == [
        (10, b"k", b"0", (("a", b"1"), ("a", None))),
        (30, "ü".encode(), b"2", (("b", b"x"),)),
    ]
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in kafka.records(topic, 1)] == [
        (20, None, b"1", ()),
        (40, b"m", b"3", ()),
    ]


def test_scalars_are_for_all_rows(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    future = producer.send_many(
        topic, [b"0", b"1"], keys="k", timestamps_ms=7, headers=[("h", b"1"), ("i", "2")]
    )
    assert len(future.result(10).partitions) == 1
    expected = [(7, b"k", value, (("h", b"1"), ("i", b"2"))) for value in (b"0", b"1")]
    assert [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in records_of(kafka, topic)
    ] == expected


@pytest.mark.parametrize(
    ("values", "columns", "error", "said"),
    [
        ([b"a", 1], {}, TypeError, "the value of row 1 for topic 't' must be bytes-like, str"),
        ([b"a", True], {}, TypeError, "not bool"),
        ([b"a"], {"keys": [2.5]}, TypeError, "the key of row 0"),
        (["\ud800"], {}, SerializationError, "row 0"),
        ([memoryview(b"abcd")[::2]], {}, TypeError, "not contiguous"),
        (b"abc", {}, TypeError, "wrap it in a list"),
        ("abc", {}, TypeError, "wrap it in a list"),
        (5, {}, TypeError, "not int"),
        (memoryview(b"abc"), {}, TypeError, "1-dimensional of format 'B'"),
        ([b"a"], {"keys": [b"a", b"b"]}, UsageError, "1 values for topic 't', but 2 keys"),
        ([b"a"], {"partitions": [1, 2]}, UsageError, "2 partitions"),
        ([b"a"], {"timestamps_ms": []}, UsageError, "0 timestamps"),
        ([b"a"], {"headers": [None, None]}, UsageError, "2 headers"),
        ([b"a", b"b"], {"partitions": [0, 4]}, UsageError, "0 to 3, not 4 .row 1"),
        ([b"a"], {"partitions": 9}, UsageError, "0 to 3, not 9 .every row"),
        ([b"a"], {"partitions": [-1]}, UsageError, "partition of row 0"),
        ([b"a"], {"partitions": ["1"]}, TypeError, "partition of row 0"),
        ([b"a"], {"partitions": True}, TypeError, "not bool"),
        ([b"a"], {"partitions": 1.5}, TypeError, "not float"),
        ([b"a"], {"partitions": array.array("d", [1])}, TypeError, "format 'd'"),
        ([b"a"], {"partitions": ctypes.c_int(1)}, TypeError, "0-dimensional of format 'i'"),
        ([b"a"], {"partitions": (ctypes.c_int * 1 * 1)()}, TypeError, "2-dimensional"),
        ([b"a"], {"timestamps_ms": array.array("Q", [1 << 63])}, UsageError, "not 92233720368"),
        ((ctypes.c_char * 3)(), {}, TypeError, "1-dimensional of format 'c'"),
        ([b"a"], {"timestamps_ms": array.array("q", [-5])}, UsageError, "timestamp of row 0"),
        ([b"a"], {"timestamps_ms": [1 << 63]}, UsageError, "timestamp of row 0"),
        ([b"a"], {"timestamps_ms": NAIVE}, UsageError, "timestamp for topic 't': .*no time zone"),
        ([b"a"] * 2, {"timestamps_ms": [NOON, NAIVE]}, UsageError, "of row 1 .*no time zone"),
        ([b"a"], {"timestamps_ms": [date(2024, 1, 1)]}, TypeError, "of row 0 .*not date"),
        ([b"a"], {"timestamps_ms": "noon"}, TypeError, "a datetime with a time zone, .*not str"),
        ([b"a"], {"timestamps_ms": np.array([0], "M8[ms]")}, TypeError, "datetime64 has no time"),
        ([b"a"], {"timestamps_ms": np.datetime64(0, "ns")}, TypeError, "datetime64 has no time"),
        (
            [b"a"],
            {"timestamps_ms": [1.7e9]},
            TypeError,
            r"row 0 .*not float: time.time\(\) has sec",
        ),
        ([b"a"], {"timestamps_ms": 1.7e9}, TypeError, r"not float: time.time\(\) has seconds"),
        (
            [b"a"],
            {"timestamps_ms": np.array([1.7e9])},
            TypeError,
            r"'d': time.time\(\) has seconds",
        ),
        ([b"a"], {"partitions": [NOON]}, TypeError, "must be int or None, not datetime"),
        ([b"a", b"b"], {"headers": [None, [("h", 1)]]}, TypeError, "row 1: header 'h'"),
        ([b"a"], {"headers": [[(b"h", b"")]]}, TypeError, "row 0: a header's key"),
        ([b"a"], {"headers": 3}, TypeError, "not int"),
        ([b"a"], {"headers": ["ab"]}, TypeError, "row 0: .* pairs, not str"),
        ((b"abc", array.array("i", [0, 4])), {}, UsageError, "row 0 lies outside"),
        ((b"abc", array.array("i", [0, 2, 1])), {}, UsageError, "row 1 lies outside"),
        ((b"abc", array.array("q", [-1, 2])), {}, UsageError, "row 0 lies outside"),
        ((b"abc", array.array("i", [])), {}, TypeError, r"n \+ 1"),
        ((b"abc", array.array("d", [0])), {}, TypeError, r"n \+ 1"),
    ],
)
def test_wrong_columns(
    values: Any, columns: dict[str, Any], error: type[Exception], said: str
) -> None:
    bulk = detached()
    with pytest.raises(error, match=said):
        bulk.send_many("t", values, **columns)
    assert bulk._queues.pending() == 0
