"""Arrow in: every layout and slice through send_many and send_table, against pyarrow's own view."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka_fast.errors import KafkaTimeoutError, UsageError
from kafka_fast.producer import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.types import PartitionResult

PARTITIONS = 3
ITEMS = [b"a", None, b"", b"longer than the twelve bytes of a view", b"exactly 12 b", b"z"]


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(1, partitions=PARTITIONS) as broker:
        yield broker


@pytest.fixture(scope="module")
def producer(kafka: EmbeddedKafka) -> Iterator[Producer]:
    with Producer(bootstrap_servers=kafka.bootstrap, max_block_ms=10_000) as shared:
        yield shared


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"arrow-{abs(hash(request.node.nodeid))}"


TYPES = [
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
]


def array_of(kind: pa.DataType) -> pa.Array:
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    return pa.array([i.decode() if text and i is not None else i for i in ITEMS], kind)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_layouts_of_bytes(
    kafka: EmbeddedKafka, producer: Producer, topic: str, kind: pa.DataType
) -> None:
    array = array_of(kind)
    forms = [array, array[2:], array[1:3], array[0:0], pa.chunked_array([array[:2], array[3:]])]
    for form in forms:
        assert producer.send_many(topic, form, partitions=0).result(10).failed == 0
    expected = ITEMS + ITEMS[2:] + ITEMS[1:3] + ITEMS[:2] + ITEMS[3:]
    assert [r.value for r in kafka.records(topic, 0)] == expected


def test_fixed_size_and_nulls(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    fixed = pa.array([b"abc", None, b"def"], pa.binary(3))
    producer.send_many(topic, fixed[1:], keys=fixed[:2], partitions=0)
    producer.send_many(topic, pa.nulls(2), keys=["x", "y"], partitions=0)
    producer.flush()
    assert [(r.key, r.value) for r in kafka.records(topic, 0)] == [
        (b"abc", None),
        (None, b"def"),
        (b"x", None),
        (b"y", None),
    ]


def test_columns_of_send_many(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    headers = pa.array(
        [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    values = pa.chunked_array([[b"0"], [b"1", b"2"]])
    keys = pa.chunked_array([["k0", "k1"], ["k2"]])
    for column in (headers, pa.chunked_array([headers[:1], headers[1:]])):
        producer.send_many(
            topic,
            values,
            keys=keys,
            partitions=pa.array([2, 2, 2], pa.int32()),
            timestamps_ms=pa.array([5, None, 7], pa.int64()),
            headers=column,
        ).result(10)
    got = [(r.key, r.value, r.headers) for r in kafka.records(topic, 2)]
    assert got == 2 * [
        (b"k0", b"0", (("h", b"1"), ("h", None))),
        (b"k1", b"1", ()),
        (b"k2", b"2", ()),
    ]
    stamps = [r.timestamp_ms for r in kafka.records(topic, 2)]
    assert (stamps[0], stamps[2]) == (5, 7)
    assert stamps[1] > 1_600_000_000_000


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (pa.timestamp("s"), 1_600_000_000),
        (pa.timestamp("ms"), 1_600_000_000_000),
        (pa.timestamp("us", "UTC"), 1_600_000_000_000_999),
        (pa.timestamp("ns", "Europe/Zurich"), 1_600_000_000_000_999_999),
        (pa.int64(), 1_600_000_000_000),
    ],
    ids=str,
)
def test_units_of_timestamps(
    kafka: EmbeddedKafka, producer: Producer, topic: str, kind: pa.DataType, raw: int
) -> None:
    table = pa.table({"value": [b"v"], "t": pa.array([raw], kind)})
    producer.send_table(topic, table, timestamp="t").result(10)
    records = [r for i in range(PARTITIONS) for r in kafka.records(topic, i)]
    assert [r.timestamp_ms for r in records] == [1_600_000_000_000]


def full_table(count: int, topics: list[str]) -> pa.Table:
    return pa.table(
        {
            "topic": [topics[i % len(topics)] for i in range(count)],
            "key": [b"%d" % (i % 7) if i % 5 else None for i in range(count)],
            "value": [f"v{i}" if i % 11 else None for i in range(count)],
            "partition": pa.array([i % 3 if i % 2 else None for i in range(count)], pa.int32()),
            "h": pa.array(
                [[("a", b"%d" % i)] if i % 3 else None for i in range(count)],
                pa.map_(pa.string(), pa.binary()),
            ),
            "at": pa.array([1000 + i for i in range(count)], pa.timestamp("ms")),
        }
    )


@pytest.mark.parametrize("slicing", ["whole", "chunks", "sliced", "reader", "struct"])
def test_tables_of_several_topics(
    kafka: EmbeddedKafka, producer: Producer, topic: str, slicing: str
) -> None:
    topics = [f"{topic}-{i}" for i in range(3)]
    table = full_table(300, topics)
    rows = table.to_pylist()
    data: Any = table
    if slicing == "chunks":
        data = pa.concat_tables([table[:100], table[100:101], table[101:]])
    elif slicing == "sliced":
        data, rows = table[37:211], rows[37:211]
    elif slicing == "reader":
        data = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=64))
    elif slicing == "struct":
        data = table.combine_chunks().to_batches()[0].to_struct_array()[5:]
        rows = rows[5:]
    future = producer.send_table(None, data, partition="partition", headers="h", timestamp="at")
    result = future.result(10)
    assert (result.records, result.failed) == (len(rows), 0)
    for name in topics:
        sent = [
            (
                row["key"],
                None if row["value"] is None else row["value"].encode(),
                tuple(row["h"] or ()),
                int(row["at"].timestamp() * 1000 + 0.5),
                row["partition"],
            )
            for row in rows
            if row["topic"] == name
        ]
        for partition in range(PARTITIONS):
            got = kafka.records(name, partition)
            assert result.partitions.get((name, partition), PartitionResult(0, -1, -1, 0))[
                0
            ] == len(got)
            stamps = [record.timestamp_ms for record in got]
            assert stamps == sorted(stamps)  # the rows' order
            named = [row[:4] for row in sent if row[4] == partition]
            everything = [(r.key, r.value, r.headers, r.timestamp_ms) for r in got]
            assert set(map(repr, named)) <= set(map(repr, everything))


def test_plain_table_without_keys(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    table = pa.table({"text": ["a", "b"]})
    producer.send_table(topic, table, value="text").result(10)
    records = [r for i in range(PARTITIONS) for r in kafka.records(topic, i)]
    assert [(r.key, r.value) for r in records] == [(None, b"a"), (None, b"b")]
    assert producer.send_table(topic, table[0:0], value="text").result() == (0, 0, {})


@pytest.mark.parametrize(
    ("table", "options", "error", "said"),
    [
        ({"value": [1]}, {}, TypeError, "column 'value' must be Arrow binary or string"),
        ({"v": [b"a"]}, {}, UsageError, "no column 'value' for the value; it has v"),
        ({"value": [b"a"]}, {"key": "k"}, UsageError, "no column 'k' for the key"),
        ({"value": [b"a"], "p": ["x"]}, {"partition": "p"}, TypeError, "integers"),
        ({"value": [b"a"], "p": [-1]}, {"partition": "p"}, UsageError, "partition of row 0"),
        ({"value": [b"a"], "p": [3]}, {"partition": "p"}, UsageError, "0 to 2, not 3 .row 0"),
        ({"value": [b"a"], "t": [-1]}, {"timestamp": "t"}, UsageError, "timestamp of row 0"),
        (
            {"value": [b"a"], "t": pa.array([1 << 60], pa.timestamp("s"))},
            {"timestamp": "t"},
            UsageError,
            "timestamp of row 0 .* in int64",
        ),
        ({"value": [b"a"], "h": [b"h"]}, {"headers": "h"}, TypeError, "list<struct"),
        (
            {"value": [b"a"], "h": [[{"key": None, "value": b""}]]},
            {"headers": "h"},
            UsageError,
            "a key in row 0 is null",
        ),
        ({"value": pa.array(["a"]).dictionary_encode()}, {}, TypeError, "decode it first"),
    ],
)
def test_wrong_tables(
    producer: Producer,
    table: dict[str, Any],
    options: dict[str, Any],
    error: type[Exception],
    said: str,
) -> None:
    before = producer._queues.stats()["records_acked"] + producer._queues.pending()
    with pytest.raises(error, match=said):
        producer.send_table("arrow-wrong", pa.table(table), **options)
    assert producer._queues.stats()["records_acked"] + producer._queues.pending() == before


def test_null_header_keys_are_refused(producer: Producer) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[], [{"key": None, "value": b""}]], kind)
    with pytest.raises(UsageError, match="a key in row 1 is null"):
        producer.send_table("arrow-wrong", pa.table({"value": ["", ""], "h": headers}), headers="h")


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ({"partition": 0}, {"partition": -1}, "partition of row 4 "),
        ({"timestamp": 1}, {"timestamp": -1}, "timestamp of row 4 "),
        ({"headers": []}, {"headers": [{"key": None, "value": b""}]}, "a key in row 4 is null"),
        ({"topic": "arrow-wrong"}, {"topic": None}, "topic of row 4 is null"),
    ],
    ids=lambda cell: next(iter(cell)) if isinstance(cell, dict) else "",
)
def test_errors_count_rows_through_all_record_batches(
    producer: Producer, good: dict[str, Any], bad: dict[str, Any], said: str
) -> None:
    (role,) = good
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kind = {"headers": pairs, "topic": pa.string()}.get(role, pa.int64())
    schema = pa.schema([("value", pa.binary()), (role, kind)])
    rows = [{"value": b"", **good}] * 3
    batches = [
        pa.RecordBatch.from_pylist(rows, schema),
        pa.RecordBatch.from_pylist([rows[0], {"value": b"", **bad}], schema),
    ]
    topic = None if role == "topic" else "arrow-wrong"
    options = {} if role == "topic" else {role: role}
    with pytest.raises(UsageError, match=said):
        producer.send_table(topic, pa.Table.from_batches(batches), **options)


def test_wrong_sources(producer: Producer) -> None:
    with pytest.raises(TypeError, match="must be an Arrow array, table or stream"):
        producer.send_table("arrow-wrong", [b"a"])
    with pytest.raises(TypeError, match="send_many takes a single array"):
        producer.send_table("arrow-wrong", pa.array([b"a"]))
    with pytest.raises(UsageError, match="topic of row 1 is null"):
        producer.send_table(None, pa.table({"topic": ["t", None], "value": ["a", "b"]}))
    with pytest.raises(UsageError, match=r"topic of row 1 is not UTF-8: b'\\xff'"):
        producer.send_table(None, pa.table({"topic": [b"t", b"\xff"], "value": ["a", "b"]}))
    with pytest.raises(TypeError, match="binary or string"):
        producer.send_many("arrow-wrong", pa.array([1]))


class Schema(ctypes.Structure):
    """The head of Arrow's struct ArrowSchema."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
    )


class Nameless:
    """A record batch whose fields have no names, which the C data interface allows."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema, array = pa.record_batch({"value": [b"a"]}).__arrow_c_array__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype = ctypes.c_void_p
        pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
        address = pointer_of(schema, b"arrow_schema")
        assert address is not None
        child = Schema.from_address(address).children[0]
        assert child is not None
        Schema.from_address(child).name = None
        return schema, array


def test_fields_without_names_are_nobodys_column(producer: Producer) -> None:
    with pytest.raises(UsageError, match=r"no column 'value' for the value; it has $"):
        producer.send_table("arrow-wrong", Nameless())


def test_unsound_offsets_are_found(producer: Producer) -> None:
    offsets = pa.py_buffer(b"".join(i.to_bytes(4, "little") for i in (0, 3, 1)))
    array = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(UsageError, match="row 1"):
        producer.send_many("arrow-wrong", array)
    views = pa.py_buffer(b"\x20\0\0\0abcd\x01\0\0\0\0\0\0\0")  # 32 bytes in the second of one blob
    array = pa.Array.from_buffers(pa.binary_view(), 1, [None, views, pa.py_buffer(b"x" * 64)])
    with pytest.raises(UsageError, match="row 0"):
        producer.send_many("arrow-wrong", array)


def test_a_failing_stream_says_why(producer: Producer, topic: str) -> None:
    schema = pa.schema([("value", pa.binary())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"a"]}, schema)
        raise ValueError("the source dried up")

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(UsageError, match="the source dried up"):
        producer.send_table(topic, reader)
    producer.flush()


def test_full_buffer_waits_without_the_gil(kafka: EmbeddedKafka, topic: str) -> None:
    table = pa.table({"value": [b"v" * 1000] * 5000})
    with Producer(bootstrap_servers=kafka.bootstrap, buffer_memory=1 << 20) as small:
        assert small.send_table(topic, table).result(20).failed == 0


def test_no_leader_no_room(kafka: EmbeddedKafka) -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=50) as lost,
        pytest.raises(KafkaTimeoutError),
    ):
        lost.send_table("t", pa.table({"value": [b""]}))
