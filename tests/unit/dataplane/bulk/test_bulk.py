"""send_many: every form of its arguments, read back from the embedded broker."""

from __future__ import annotations

import array
import asyncio
import ctypes
import threading
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_fast.dataplane.bulk._bulk import BulkAccumulator
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.produce._observers import take_lost
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import (
    BrokerError,
    DeliveryError,
    KafkaTimeoutError,
    Outcome,
    SerializationError,
    UsageError,
)
from kafka_fast.net._pump import Machine
from kafka_fast.producer import Producer
from kafka_fast.record import Record
from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.types import PartitionResult, TopicPartition

PARTITIONS = 4

NOON = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
NOON_MS = 1_704_110_400_000
NAIVE = NOON.replace(tzinfo=None)


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(1, partitions=PARTITIONS) as broker:
        yield broker


@pytest.fixture(scope="module")
def producer(kafka: EmbeddedKafka) -> Iterator[Producer]:
    with Producer(bootstrap_servers=kafka.bootstrap) as shared:
        yield shared


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"bulk-{abs(hash(request.node.nodeid))}"


def records_of(kafka: EmbeddedKafka, topic: str) -> list[Record]:
    return [record for i in range(PARTITIONS) for record in kafka.records(topic, i)]


def values_of(kafka: EmbeddedKafka, topic: str) -> list[bytes | None]:
    return [record.value for record in records_of(kafka, topic)]


def detached(memory: int = 1 << 25, partitions: int = 4, **options: Any) -> BulkAccumulator:
    """An accumulator whose batches nobody sends."""
    queues = Queues(
        DataPlane(Machine(), max_frame=1 << 27, request_timeout=30.0),
        buffer_memory=memory,
        batch_size=16_384,
        max_request_size=1 << 20,
        coalesce_bytes=1 << 21,
        linger=60.0,
        delivery_timeout=120.0,
        max_in_flight=5,
    )
    queues.topic("t", 12345)
    queues.set_partitions("t", 0, range(partitions))
    return BulkAccumulator(queues, max_block=options.pop("max_block", 0.05), **options)


def fail_all(queues: Queues, partitions: int = 4) -> None:
    """Fail what is in no request: nothing was sent."""
    for queue_id in range(partitions):
        queues.fail_queue(queue_id, 29)
    queues.plane.step(time.monotonic())


# ---- forms of values ----


def test_every_kind_of_item(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    items = [b"a", "é", None, bytearray(b"x"), memoryview(b"yy"), "", b"", array.array("i", [1])]
    result = producer.send_many(topic, items, partitions=2).result(10)
    expected = [b"a", "é".encode(), None, b"x", b"yy", b"", b"", b"\1\0\0\0"]
    assert values_of(kafka, topic) == expected
    found = PartitionResult(len(items), 0, len(items) - 1, ANY)
    assert result == (len(items), 0, {TopicPartition(topic, 2): found})


def numpy_forms() -> list[Any]:
    import numpy as np

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
    found = [(it.timestamp_ms, it.value) for it in kafka.records(topic, 3)]
    assert found == [(127, b"a"), (127, b"c"), (5, b"d")]
    assert [(it.timestamp_ms, it.value) for it in kafka.records(topic, 1)] == [(5, b"b")]


def test_buffers_are_the_callers_again_when_the_call_returns(
    kafka: EmbeddedKafka, topic: str
) -> None:
    data, offsets = bytearray(b"abcdef"), array.array("i", [0, 2, 4, 6])
    times, item = array.array("q", [1, 2, 3]), bytearray(b"xy")
    with Producer(bootstrap_servers=kafka.bootstrap, linger_ms=60_000) as producer:
        producer.send_many(topic, (data, offsets), partitions=0, timestamps_ms=times)
        producer.send_many(topic, [item], partitions=0, timestamps_ms=4)
        data[:], offsets[1], times[0], item[:] = b"zzzzzz", 99, 77, b"??"
    found = [(it.timestamp_ms, it.value) for it in kafka.records(topic, 0)]
    assert found == [(1, b"ab"), (2, b"cd"), (3, b"ef"), (4, b"xy")]


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
    found = [it.timestamp_ms for it in kafka.records(topic, 0)]
    assert found.pop(1) > NOON_MS, "none is now"
    assert found == [NOON_MS, NOON_MS + 2, 5, NOON_MS, NOON_MS]


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


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.binary(max_size=40), st.text(max_size=9)),
            st.one_of(st.none(), st.binary(max_size=9)),
            st.one_of(st.none(), st.integers(0, PARTITIONS - 1)),
            st.one_of(st.none(), st.integers(0, 1_700_000_000_000)),
        ),
        max_size=60,
    )
)
def test_is_as_many_single_sends(
    kafka: EmbeddedKafka, producer: Producer, rows: list[tuple[Any, ...]]
) -> None:
    """Each row lands where, and as, `send` puts it; without a key only the partition is free."""
    topics = [f"same-{test_is_as_many_single_sends.__name__}-{next(COUNTER)}" for _ in range(2)]
    values, keys, partitions, times = map(list, zip(*rows, strict=True)) if rows else [[]] * 4
    for value, key, partition, stamp in rows:
        producer.send(topics[0], value, key, partition=partition, timestamp_ms=stamp)
    future = producer.send_many(
        topics[1], values, keys=keys, partitions=partitions, timestamps_ms=times
    )
    producer.flush()
    assert future.done()
    if not rows:
        return
    one, many = (
        [
            [(r.key, r.value) for r in kafka.records(topic, i) if r.key is not None]
            for i in range(PARTITIONS)
        ]
        for topic in topics
    )
    placed = [key is not None or partition is not None for _, key, partition, _ in rows]
    if all(placed):
        assert one == many
    assert sorted(map(repr, values_of(kafka, topics[0]))) == sorted(
        map(repr, values_of(kafka, topics[1]))
    )


COUNTER = iter(range(10**9))


def test_order_within_a_partition_is_the_rows_order(
    kafka: EmbeddedKafka, producer: Producer, topic: str
) -> None:
    count = 30_000  # several windows
    values = [b"%d" % i for i in range(count)]
    producer.send_many(topic, values, keys=[b"%d" % (i % 61) for i in range(count)]).result(20)
    seen = 0
    for partition in range(PARTITIONS):
        numbers = [int(value) for value in _values(kafka, topic, partition)]
        assert numbers == sorted(numbers)
        seen += len(numbers)
    assert seen == count


def _values(kafka: EmbeddedKafka, topic: str, partition: int) -> list[bytes]:
    return [record.value or b"" for record in kafka.records(topic, partition)]


# ---- partitioners and serializers ----


def test_sticky_rows_fill_batches_one_partition_after_another() -> None:
    bulk = detached(partitions=8)
    future = bulk.send_many("t", [b"v" * 100] * 20_000)  # 2.2 MB: some nine sticky stints
    fail_all(bulk._queues, 8)
    failures = future.failures(0)
    assert sum(count for _, count, _ in failures) == 20_000
    assert 8 <= len(failures) <= 20
    assert [first for first, _, _ in failures] == sorted(first for first, _, _ in failures)


def test_round_robin(kafka: EmbeddedKafka, topic: str) -> None:
    with Producer(
        bootstrap_servers=kafka.bootstrap, **{"partitioner.class": "round_robin"}
    ) as producer:
        result = producer.send_many(topic, [b"v"] * 40, keys=b"k").result(10)
    assert [found.records for found in result.partitions.values()] == [10] * PARTITIONS


def test_custom_partitioner_sees_key_and_value() -> None:
    seen = []

    def choose(topic: str, key: Any, value: Any, partition_count: int) -> int:
        seen.append((topic, key, value, partition_count))
        return 1

    bulk = detached(partitioner=choose)
    bulk.send_many("t", [b"a", "b"], keys=[None, b"k"], partitions=[None, 2])
    bulk.send_many("t", (b"xy", array.array("i", [0, 1, 2])), keys=b"z")
    assert seen == [("t", None, b"a", 4), ("t", b"z", b"x", 4), ("t", b"z", b"y", 4)]


def test_serializers_see_the_items_of_sequences(kafka: EmbeddedKafka, topic: str) -> None:
    with Producer(
        bootstrap_servers=kafka.bootstrap,
        key_serializer=lambda key: b"k%d" % key,
        value_serializer=lambda value: b"v%d" % value,
    ) as producer:
        producer.send_many(topic, [1, 2], keys=[3, 4], partitions=0).result(10)
    assert [(r.key, r.value) for r in kafka.records(topic, 0)] == [(b"k3", b"v1"), (b"k4", b"v2")]


# ---- what is refused, before anything is sent ----


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


def test_wrong_topics() -> None:
    bulk = detached()
    with pytest.raises(TypeError, match="topic must be str"):
        bulk.send_many(b"t", [])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nothing is known of topic 'u'"):
        bulk.send_many("u", [b""])
    bulk._queues.shut_down()
    with pytest.raises(UsageError, match="closed"):
        bulk.send_many("t", [b""])


# ---- memory ----


def test_no_room_at_all_raises_and_accepts_nothing() -> None:
    bulk = detached(memory=1 << 16)
    first = bulk.send_many("t", [b"v" * 1000] * 100)
    assert 30 < bulk._queues.pending() < 100
    assert len(first) == 100
    with pytest.raises(KafkaTimeoutError, match=r"no room in buffer\.memory"):
        bulk.send_many("t", [b"v" * 1000] * 100, partitions=0)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("raw", [False, True])
def test_rows_without_room_fail_not_sent(keyed: bool, raw: bool) -> None:
    bulk = detached(memory=1 << 17)
    values: Any = [b"v" * 1000] * 200
    if raw:
        values = (b"v" * 200_000, array.array("i", range(0, 200_001, 1000)))
    keys = [b"%d" % i for i in range(200)] if keyed else None
    future = bulk.send_many("t", values, keys=keys)
    accepted = bulk._queues.pending()
    fail_all(bulk._queues)
    failed = future.failed(0)
    assert sorted(row for row, _ in failed) == list(range(200))
    assert {error.outcome for _, error in failed} == {Outcome.NOT_SENT}
    refused = [error for _, error in failed if isinstance(error.first, BrokerError)]
    assert len(refused) == accepted
    summary = future.exception(0)
    assert summary is not None
    assert summary.count == 200
    assert summary.outcome is Outcome.NOT_SENT


@pytest.mark.parametrize("raw", [False, True])
def test_goes_on_when_memory_comes_back(raw: bool) -> None:
    bulk = detached(memory=1 << 17, max_block=10.0)
    values: Any = [b"%0999d" % i for i in range(500)]
    if raw:
        values = (b"".join(values), array.array("i", range(0, 500 * 999 + 1, 999)))
    stop = threading.Event()

    def drain() -> None:
        while not stop.wait(0.001):
            fail_all(bulk._queues)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        future = bulk.send_many("t", values, keys=[b"%d" % i for i in range(500)])
        assert future.result(10).failed == 500
    finally:
        stop.set()
        thread.join()
    assert [row for row, _ in future.failed()] == list(range(500))
    assert {error.outcome for _, error in future.failed()} == {Outcome.NOT_SENT}


def test_a_record_too_large_fails_alone() -> None:
    bulk = detached()
    large = b"v" * (1 << 20)
    for values in ([b"a", large, b"b"], (b"a" + large + b"b", array.array("i", ends(large)))):
        future = bulk.send_many("t", values, partitions=0)
        fail_all(bulk._queues)
        failed = dict(future.failed(0))
        assert failed[1].outcome is Outcome.NOT_SENT
        assert "max.request.size" in str(failed[1])
        assert isinstance(failed[0].first, BrokerError)
        assert isinstance(failed[2].first, BrokerError)


def ends(large: bytes) -> list[int]:
    return [0, 1, 1 + len(large), 2 + len(large)]


# ---- the future ----


def test_an_unread_future_leaves_its_failures_to_flush() -> None:
    bulk = detached()
    future = bulk.send_many("t", [b"a"] * 10)
    fail_all(bulk._queues)
    assert take_lost(bulk._queues).count == 0  # it may still be read
    del future
    lost = take_lost(bulk._queues)
    assert lost.count == 10
    assert isinstance(lost.first, DeliveryError)
    assert lost.topics == {"t": 10}


def test_a_future_dropped_before_the_end_leaves_its_failures_to_flush() -> None:
    bulk = detached()
    bulk.send_many("t", [b"a"] * 10 + [b"v" * (1 << 20)])
    fail_all(bulk._queues)
    assert take_lost(bulk._queues).count == 11


@pytest.mark.parametrize("refused", [b"v" * (1 << 20), b"v" * 90_000], ids=["large", "no room"])
def test_a_future_that_a_function_forgets_is_dropped(refused: bytes) -> None:
    """Regression: before Python 3.11 the traceback of a refusal kept the function's variables."""
    bulk = detached(memory=1 << 17)

    def send() -> None:
        future = bulk.send_many("t", [b"a"] + [refused] * 3, partitions=0)
        assert len(future) == 4

    send()
    fail_all(bulk._queues)
    assert take_lost(bulk._queues).count == 4


def test_a_read_future_leaves_nothing() -> None:
    bulk = detached()
    future = bulk.send_many("t", [b"a"] * 10)
    fail_all(bulk._queues)
    assert future.result(0).failed == 10
    del future
    assert take_lost(bulk._queues).count == 0


def test_a_future_that_is_pending() -> None:
    bulk = detached()
    future = bulk.send_many("t", [b"a"] * 3)
    assert not future.done()
    assert len(future) == 3
    assert "pending" in repr(future)
    with pytest.raises(KafkaTimeoutError, match="3 records"):
        future.result(0.01)
    with pytest.raises(TypeError, match="made by"):
        type(future)()
    with pytest.raises(TypeError, match="made by"):
        type(future).__new__(type(future))


def test_nothing_to_send() -> None:
    future = detached().send_many("t", [])
    assert future.done()
    assert future.result() == (0, 0, {})
    assert future.failed() == []
    assert future.exception() is None


def test_callback_and_await(producer: Producer, topic: str) -> None:
    called = threading.Event()
    future = producer.send_many(topic, [b"a"] * 5000)
    future.add_done_callback(lambda done: called.set() if done is future else None)
    future.result(10)
    assert called.wait(10)
    late = threading.Event()
    future.add_done_callback(lambda _: late.set())
    assert late.wait(10)

    async def wait() -> int:
        first = await producer.send_many(topic, [b"b"] * 5000)
        again = await future
        return first.records + again.records

    assert asyncio.run(wait()) == 10_000


def test_a_callback_of_a_closed_producers_records_runs_at_once(
    kafka: EmbeddedKafka, topic: str
) -> None:
    """Regression: it waited for a callback thread that had ended."""
    with Producer(bootstrap_servers=kafka.bootstrap) as closed:
        future = closed.send_many(topic, [b"a", b"b"])
    told: list[object] = []
    future.add_done_callback(told.append)
    assert told == [future]


def test_on_delivery_hears_of_every_record(kafka: EmbeddedKafka, topic: str) -> None:
    heard = []
    with Producer(
        bootstrap_servers=kafka.bootstrap,
        on_delivery=lambda error, metadata: heard.append((error, metadata)),
    ) as producer:
        times = list(range(100))
        producer.send_many(
            topic, [b"v"] * 100, keys=[b"%d" % i for i in times], timestamps_ms=times
        )
    assert [error for error, _ in heard] == [None] * 100
    assert sorted(metadata.timestamp_ms for _, metadata in heard) == times
    for partition in range(PARTITIONS):
        offsets = [metadata.offset for _, metadata in heard if metadata.partition == partition]
        assert offsets == list(range(len(offsets)))
