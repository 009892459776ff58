"""Arrow out: both layouts, copied and as views, against what pyarrow finds in them."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pytest

from kafka_fast.errors import SerializationError, UsageError
from kafka_fast.record import RecordBatchBuilder, read_batches
from kafka_fast.record._arrow_export import arrow_steps
from kafka_fast.record._slices import RecordSlice, slice_of
from kafka_fast.records._consumer_records import ConsumerRecords
from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch
from tests.waiting import eventually

Layout = Literal["kafka", "spark"]
LAYOUTS: tuple[Layout, ...] = ("kafka", "spark")

LONG = b"longer than the twelve bytes of a view"
ROWS = (
    SlowRecord(7, 1000, b"key", b"value"),
    SlowRecord(8, -1, None, None, (("h", b"x"), ("h", None), ("", b""))),
    SlowRecord(9, 1_700_000_000_123, b"", LONG, (("na\u00efve", LONG),)),
    SlowRecord(11, 1001, LONG, b"", ()),
    SlowRecord(12, 1002, b"exactly 12 b", b"thirteen byte", ()),
)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

HEADER = pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.binary())])
KAFKA = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), False),
        pa.field("partition", pa.int32(), False),
        pa.field("offset", pa.int64(), False),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), False),
        pa.field("timestamp_type", pa.int8(), False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", HEADER, False)), False),
    ]
)
SPARK_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
SPARK = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(pa.field("element", SPARK_HEADER))),
    ]
)


class Buffer(bytearray):
    """A buffer whose end can be seen."""


def encoded(rows: tuple[SlowRecord, ...], attributes: int = 0) -> bytes:
    first, last = rows[0].offset, rows[-1].offset
    return encode_batch(SlowBatch(first, 3, attributes, last - first, 1000, 2000, -1, -1, -1, rows))


def sliced(data: bytes | Buffer, topic: str = "t", partition: int = 0) -> RecordSlice:
    return slice_of(read_batches(data)[0], topic, partition)


@pytest.fixture
def records() -> ConsumerRecords:
    return ConsumerRecords(
        [
            sliced(encoded(ROWS)),
            sliced(encoded(ROWS, attributes=1), "u", 5),
            sliced(encoded(ROWS, attributes=8), "t", 2),
        ]
    )


def expected_rows(records: ConsumerRecords, layout: Layout) -> list[dict[str, Any]]:
    """Return the rows as they must be, from the record objects."""
    rows = []
    for record in records:
        headers: Any = [{"key": name, "value": value} for name, value in record.headers]
        row = {
            "key": record.key,
            "value": record.value,
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": EPOCH + timedelta(milliseconds=record.timestamp_ms),
        }
        if layout == "kafka":
            row |= {"timestamp_type": int(record.timestamp_type), "headers": headers}
        else:
            row |= {"timestampType": int(record.timestamp_type), "headers": headers or None}
        rows.append(row)
    return rows


def with_views(schema: pa.Schema, views: bool) -> pa.Schema:
    for name in ("key", "value") if views else ():
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.binary_view()))
    return schema


@pytest.mark.parametrize("views", [False, True], ids=["copies", "views"])
@pytest.mark.parametrize(("layout", "schema"), [("kafka", KAFKA), ("spark", SPARK)])
def test_tables(records: ConsumerRecords, layout: Layout, schema: pa.Schema, views: bool) -> None:
    table = records.to_arrow(layout=layout, views=views, headers=True)
    table.validate(full=True)
    assert table.schema == with_views(schema, views)
    assert table.to_pylist() == expected_rows(records, layout)
    part = records[4:11].to_arrow(layout=layout, views=views, headers=True)
    part.validate(full=True)
    assert part.to_pylist() == table.slice(4, 7).to_pylist()


def test_headers_are_a_matter_of_choice(records: ConsumerRecords) -> None:
    assert "headers" in records.to_arrow().column_names
    assert "headers" not in records.to_arrow(headers=False).column_names
    assert "headers" not in records.to_arrow(layout="spark").column_names


def test_records_are_arrow_themselves(records: ConsumerRecords) -> None:
    batch = pa.record_batch(records)
    batch.validate(full=True)
    assert batch.schema == KAFKA
    assert batch.to_pylist() == pa.table(records).to_pylist()
    assert pa.schema(records) == KAFKA
    assert pa.schema(records.arrow(layout="spark", headers=True)) == SPARK


def test_other_libraries_take_it(records: ConsumerRecords) -> None:
    frame = records.to_arrow(layout="spark").to_pandas()
    assert frame["value"].tolist() == records.values()
    for views in (False, True):
        frame = pl.DataFrame(records.arrow(views=views))
        assert frame["value"].to_list() == records.values()
        assert frame["topic"].to_list() == [record.topic for record in records]


@pytest.mark.parametrize("views", [False, True])
def test_no_records_are_a_table_without_rows(views: bool) -> None:
    nothing = ConsumerRecords()
    table = nothing.to_arrow(views=views)
    table.validate(full=True)
    assert table.schema == with_views(KAFKA, views)
    assert table.num_rows == 0
    batch = pa.record_batch(nothing.arrow(views=views))
    batch.validate(full=True)
    assert batch.num_rows == 0


def test_all_null(records: ConsumerRecords) -> None:
    rows = tuple(SlowRecord(i, 0, None, None) for i in range(17))
    table = ConsumerRecords([sliced(encoded(rows))]).to_arrow(layout="spark", headers=True)
    table.validate(full=True)
    for name in ("key", "value", "headers"):
        assert table[name].null_count == 17


def test_timestamps_that_microseconds_cannot_hold_stop_at_the_end() -> None:
    stamps = [2**63 - 1, -(2**63), 2**63 // 1000, -1, 0]
    rows = tuple(SlowRecord(i, stamp, None, None) for i, stamp in enumerate(stamps))
    records = ConsumerRecords([sliced(encoded(rows))])
    kafka = records.to_arrow()["timestamp"].cast(pa.int64()).to_pylist()
    assert kafka == stamps
    limit = (2**63 - 1) // 1000 * 1000
    spark = records.to_arrow(layout="spark")["timestamp"].cast(pa.int64()).to_pylist()
    assert spark == [limit, -limit, limit, -1000, 0]


BAD_UTF8 = [
    b"\xff", b"a\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x9f\x98", b"\xed\xa0\x80",
    b"\xc0\xaf", b"\xf5\x80\x80\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"ok\x80\x80ok",
    "gr\u00fc\u00df\u20ac\U0001f600".encode(), b"\xf0\x80\x80\x80", b"\xf1\x80\xc3\xa9",
]  # fmt: skip


def test_header_names_are_repaired_as_python_does() -> None:
    for name in BAD_UTF8:
        stand_in = "#" * len(name)
        row = SlowRecord(0, 0, None, None, ((stand_in, b"x"),))
        data = encoded((row,)).replace(stand_in.encode(), name)
        records = ConsumerRecords([slice_of(read_batches(data)[0], "t", 0, check_crc=False)])
        table = records.to_arrow()
        table.validate(full=True)
        [[header]] = table["headers"].to_pylist()
        assert header == {"key": name.decode(errors="replace"), "value": b"x"}
        assert records[0].headers == ((header["key"], b"x"),)


def of_values(*values: bytes | None) -> ConsumerRecords:
    rows = tuple(SlowRecord(at, 0, None, value, ()) for at, value in enumerate(values))
    return ConsumerRecords([sliced(encoded(rows))])


def test_text_is_what_python_can_decode() -> None:
    """Each text is cut at every byte, and lies behind the ASCII that is looked at in words."""
    for text in (*BAD_UTF8, "gr\u00fc\u00df\u20ac\U0001f600".encode(), b"\xc3\xa9" * 9, b"a" * 17):
        for end in range(len(text) + 1):
            for ahead in (b"", b"seven ..", b"1234567"):
                value = ahead + text[:end]
                try:
                    expected = value.decode()
                except UnicodeDecodeError:
                    with pytest.raises(SerializationError, match=r"the value of t-0 at offset 1 "):
                        of_values(b"fine", value, None).to_arrow(text=True)
                else:
                    table = of_values(b"fine", value, None).to_arrow(text=True)
                    table.validate(full=True)
                    assert table["value"].to_pylist() == ["fine", expected, None]


def test_large_sets_are_chunked() -> None:
    rows = tuple(SlowRecord(i, 0, None, b"x") for i in range(5000))
    data = encoded(rows)
    records = ConsumerRecords([sliced(data, "t", partition) for partition in range(40)])
    table = records.to_arrow()
    assert table.num_rows == 200_000
    sizes = [len(chunk) for chunk in table["value"].chunks]
    assert sizes == [15_000] * 13 + [5000]  # three batches fit below 16 Ki rows
    assert table["partition"].to_pylist() == [i // 5000 for i in range(200_000)]
    assert pa.record_batch(records.arrow(views=True)).num_rows == 200_000


def test_views_point_into_the_buffer_and_keep_it() -> None:
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    records = ConsumerRecords([sliced(buffer)])
    del buffer
    copied = records.to_arrow()
    viewed = records.to_arrow(views=True)
    stream = records.arrow(views=True).__arrow_c_stream__()
    assert watch() is not None
    value = viewed["value"].chunk(0)
    del records, viewed, copied
    gc.collect()
    assert watch() is not None
    assert value.to_pylist()[2] == LONG
    del value
    assert watch() is not None  # by the stream
    del stream
    assert watch() is None


def test_a_column_outlives_its_table() -> None:
    """Receivers may move a child out of an array, and release each in whatever order."""
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    batch = pa.record_batch(ConsumerRecords([sliced(buffer)]).arrow(views=True))
    key, value = batch["key"], batch["value"]
    del batch, buffer
    del key
    assert watch() is not None
    assert value.to_pylist() == [row.value for row in ROWS]
    del value
    assert watch() is None


def test_copies_pin_nothing() -> None:
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    records = ConsumerRecords([sliced(buffer)])
    table = records.to_arrow()
    del records, buffer
    assert watch() is None
    assert table["value"].to_pylist() == [row.value for row in ROWS]


def test_release_in_another_thread() -> None:
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    held = [ConsumerRecords([sliced(buffer)]).to_arrow(views=True)]
    del buffer
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert watch() is None


class CSchema(ctypes.Structure):
    """The first fields of an ArrowSchema, up to `release`."""

    _fields_ = [
        ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]  # fmt: skip


class CArray(ctypes.Structure):
    """The first fields of an ArrowArray, up to `release`."""

    _fields_ = [
        ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p), ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]  # fmt: skip


def pointer_in(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer: int = get(capsule, name)
    return pointer


def test_release_marks_what_it_released() -> None:
    """A capsule that nobody took anything out of releases; one that was emptied does not."""
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    records = ConsumerRecords([sliced(buffer)])
    del buffer
    schema_capsule, array_capsule = records.arrow(views=True).__arrow_c_array__()
    schema = CSchema.from_address(pointer_in(schema_capsule, b"arrow_schema"))
    array = CArray.from_address(pointer_in(array_capsule, b"arrow_array"))
    assert (schema.format, schema.n_children, array.length) == (b"+s", 8, 5)
    del records
    array.release(ctypes.addressof(array))
    assert watch() is None
    assert not array.release
    schema.release(ctypes.addressof(schema))
    assert not schema.release
    del schema_capsule, array_capsule  # releases nothing again


def test_unused_capsules_free_what_they_hold() -> None:
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    records = ConsumerRecords([sliced(buffer)])
    table = records.arrow(views=True)
    capsules = [table.__arrow_c_stream__(), table.__arrow_c_array__(), table.__arrow_c_schema__()]
    del buffer, records, table, capsules
    assert watch() is None


class MallocInfo(ctypes.Structure):
    """What glibc's mallinfo2() returns: ten numbers."""

    _fields_ = [("numbers", ctypes.c_size_t * 10)]
    MAPPED, USED = 4, 7


def test_memory_comes_back() -> None:
    """Tables leave nothing behind that malloc gave."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("this C library does not tell what malloc has given")
    libc.mallinfo2.restype = MallocInfo
    builder = RecordBatchBuilder()
    for i in range(50):
        builder.append(b"key", None if i % 2 else b"value" * 20, i, [("h", b"x"), ("n", None)])
    records = ConsumerRecords([sliced(builder.build())])

    def given_after(count: int) -> int:
        for _ in range(count):
            for views in (False, True):
                for layout in LAYOUTS:
                    table = records.arrow(layout=layout, views=views, headers=True)
                    table.__arrow_c_array__()
                    pa.RecordBatchReader.from_stream(table).read_all()
        gc.collect()
        info = libc.mallinfo2()
        return int(info.numbers[info.MAPPED] + info.numbers[info.USED])

    before = given_after(50)
    assert given_after(300) - before < 50 * 300  # 50 bytes for each table


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_column_alone_is_what_it_is_among_the_others(
    records: ConsumerRecords, layout: Layout, views: bool
) -> None:
    whole = records.to_arrow(layout=layout, views=views, headers=True)
    for name in whole.column_names:
        assert records.to_arrow(layout=layout, views=views, columns=[name]) == whole.select([name])


def test_columns_come_in_the_order_of_their_names(records: ConsumerRecords) -> None:
    names = ["headers", "offset", "value", "topic"]
    table = records.to_arrow(layout="spark", columns=names)
    assert table == records.to_arrow(layout="spark", headers=True).select(names)
    assert pa.schema(records.arrow(layout="spark", columns=tuple(names))) == table.schema
    steps = iter([records.parts(), None])
    shape = arrow_steps(lambda: next(steps), ["t", "u"], layout="spark", columns=names)
    assert pa.table(shape) == table


def test_views_of_values_keep_the_buffer_if_there_are_no_keys() -> None:
    buffer = Buffer(encoded(ROWS))
    watch = weakref.ref(buffer)
    table = ConsumerRecords([sliced(buffer)]).to_arrow(views=True, columns=["offset", "value"])
    del buffer
    gc.collect()
    assert watch() is not None
    assert table["value"].to_pylist() == [row.value for row in ROWS]
    del table
    assert watch() is None


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (["key", "payload"], "no column 'payload' in layout 'kafka': there are topic, partition"),
        (["timestampType"], "no column 'timestampType' in layout 'kafka'"),
        (["key", "key"], "each once"),
        ([], "at least one column"),
        ("key", r"columns must be several names, such as \['key'\]"),
    ],
)
def test_columns_that_cannot_be(records: ConsumerRecords, columns: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        records.arrow(columns=columns)


def test_headers_and_columns_are_not_said_twice(records: ConsumerRecords) -> None:
    with pytest.raises(UsageError, match="leave one of both out"):
        records.arrow(columns=["headers"], headers=True)


def test_unknown_layouts_are_refused(records: ConsumerRecords) -> None:
    with pytest.raises(UsageError, match="layout must be 'kafka' or 'spark', not 'flink'"):
        records.arrow(layout="flink")  # type: ignore[arg-type]


def test_more_than_one_array_can_hold_comes_as_a_stream_or_as_views() -> None:
    """An offset of Arrow's binary type ends at 2 GiB; views count within each of their buffers."""
    builder, value, count = RecordBatchBuilder(), bytes(1 << 26), 33
    builder.append(None, value, 1000)
    part = sliced(builder.build())
    table = ConsumerRecords([part] * count).arrow()
    with pytest.raises(UsageError, match=r"2 GiB .* stream"):
        table.__arrow_c_array__()
    first = next(iter(pa.RecordBatchReader.from_stream(table)))
    assert 1 << 26 <= first.column("value").nbytes < 1 << 31
    views = ConsumerRecords([part] * count).to_arrow(views=True)
    assert views.num_rows == count
    assert views.column("value")[count - 1].as_py() == value


class TestSteps:
    """Slices that come step by step are one table."""

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_every_step_and_no_more_than_is_asked_for(
        self, records: ConsumerRecords, layout: Layout
    ) -> None:
        steps = [[], records.parts()[:1], [], records.parts()[1:]]
        left = iter(steps)
        table = arrow_steps(lambda: next(left, None), ["unused", "u", "t"], layout=layout)
        reader = pa.RecordBatchReader.from_stream(table)
        assert reader.schema == pa.schema(table) == pa.schema(records.arrow(layout=layout))
        assert len(list(left)) == 4, "a stream that was only made has taken none"
        left = iter(steps)
        first = reader.read_next_batch()
        assert len(list(left)) == 2
        left = iter(steps[2:])
        rows = first.to_pylist() + reader.read_all().to_pylist()
        assert rows == records.to_arrow(layout=layout).to_pylist()

    def test_all_chunks_share_one_dictionary_of_topics(self, records: ConsumerRecords) -> None:
        left = iter([[part] for part in records.parts()])
        table = pa.table(arrow_steps(lambda: next(left, None), ["u", "t"]))
        assert [chunk.dictionary.to_pylist() for chunk in table["topic"].chunks] == [["u", "t"]] * 3
        assert table["topic"].to_pylist() == [record.topic for record in records]

    def test_nothing(self) -> None:
        table = pa.table(arrow_steps(lambda: None, []))
        assert (table.num_rows, table.schema) == (0, KAFKA)

    def test_the_text_of_an_error_reaches_the_receiver(self) -> None:
        def fail() -> None:
            raise UsageError("no step")

        with pytest.raises((OSError, pa.ArrowInvalid), match="UsageError: no step"):
            pa.table(arrow_steps(fail, []))

    def test_ctrl_c_is_no_mere_text(self) -> None:
        """The receiver makes an error of its own of it, which a program may pass over."""

        def interrupt() -> None:
            raise KeyboardInterrupt

        caught: list[BaseException] = []
        try:
            try:
                pa.table(arrow_steps(interrupt, []))
            except (OSError, pa.ArrowException) as error:
                caught.append(error)
            eventually(lambda: False, "Python to look for signals")
        except KeyboardInterrupt as error:
            caught.append(error)
        assert isinstance(caught[-1], KeyboardInterrupt)

    def test_they_are_not_made_by_hand(self) -> None:
        table = arrow_steps(lambda: None, [])
        assert repr(table) == "ArrowSteps(kafka)"
        with pytest.raises(TypeError, match=r"RecordRange\.arrow"):
            type(table)()
