"""The records of a poll: one set of slices, and every form that users want them in.

    slices ─► iteration, [i]        ConsumerRecord objects, made one by one
           ─► values(), keys() ...  lists
           ─► to_numpy()            arrays
           ─► to_arrow(), arrow()   tables, copied or as views
           ─► to_pandas(), to_polars()   DataFrames, by way of Arrow

Nothing is made before it is asked for. Each form is made from the slices, so asking twice costs
twice and changes nothing.

Thread: any, with the GIL; one consumer's thread in practice.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.list cimport PyList_New
from cpython.number cimport PyIndex_Check
from cpython.ref cimport Py_INCREF, Py_XINCREF
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.record._arrow_export cimport ArrowRecords, arrow_records
from kafka_fast.record._arrow_structs cimport (
    KF_PART_KEY, KF_PART_VALUE, kf_part, kf_part_len, kf_part_pos,
)
from kafka_fast.record._layout cimport kf_span
from kafka_fast.record._slices cimport RecordSlice
from kafka_fast.records._consumer_record cimport ConsumerRecord, new_record, set_objects

from bisect import bisect_right
from collections.abc import Iterable
from types import GenericAlias

from kafka_fast._hints import hint_at_names, name_type, refuse_new
from kafka_fast.peer_names import RECORDS
from kafka_fast.records.frames import (
    package_for, rows_array, to_arrow, to_pandas, to_polars,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition

cdef extern from "Python.h":
    # Declared with pointers, which saves two changes of a reference count per item.
    PyObject* PyBytes_FromStringAndSize(const char* data, Py_ssize_t size)
    PyObject* PyLong_FromLongLong(int64_t number)
    void PyList_SET_ITEM(object made, Py_ssize_t index, PyObject* item)
    PyObject* Py_None


# ---- items of columns: new references; NULL: an exception is set ----

cdef inline PyObject* bytes_item(const uint8_t* base, int32_t pos, int32_t size) noexcept:
    if size < 0:
        Py_XINCREF(Py_None)
        return Py_None
    return PyBytes_FromStringAndSize(<const char*>base + pos, size)


cdef int put_item(list column, Py_ssize_t index, PyObject* item) except -1:
    if item == NULL:
        raise MemoryError
    PyList_SET_ITEM(column, index, item)
    return 0


cdef Py_ssize_t put_objects(list column, Py_ssize_t at, list objects) except -1:
    for made in objects:
        Py_INCREF(made)
        PyList_SET_ITEM(column, at, <PyObject*>made)
        at += 1
    return at


cdef ConsumerRecord record_at(RecordSlice part, Py_ssize_t index):
    """Return the record at `index` of a slice."""
    cdef ConsumerRecord record = new_record(part.origin, part.records, part.start + index)
    cdef bint has_key = part.key_objects is not None
    cdef bint has_value = part.value_objects is not None
    if has_key or has_value:
        set_objects(record, part.key_objects[index] if has_key else None, has_key,
                    part.value_objects[index] if has_value else None, has_value)
    return record


@cython.final
@cython.freelist(8)
cdef class RecordIterator:
    """Iterates records, and with `refill` those of the next poll after them.

    Attributes:
        records: the ConsumerRecords that are being iterated.
        handed_out: how many of them were returned, the last one of which the caller may still be
            working on.
        is_left: whether the loop that got the last one has ended without an exception.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("a RecordIterator comes from ConsumerRecords or iterate()")

    def __reduce__(self):
        raise TypeError(
            "an iterator of records cannot be pickled or copied: begin another one with "
            "iter(records)"
        )

    @property
    def handed_out(self) -> int:
        """How many of `records` were returned."""
        return self.before + self.index

    def __iter__(self):
        return self

    def put(self, ConsumerRecords records not None) -> None:
        """Go on with these records instead of those that were not returned yet."""
        self.records = records
        self.part = None
        self.next_slice = self.index = self.end = self.before = 0
        self.asker = NULL

    def detach(self) -> None:
        """Note that no loop has the latest record: a poll has returned records since."""
        self.holder = self.asker = NULL
        self.is_left = False

    def interrupt(self) -> None:
        """Make the loop ask the consumer before its next record. Any thread."""
        self.interruptions += 1
        self.asker = NULL

    def __next__(self) -> ConsumerRecord:
        return self.take()

    cdef ConsumerRecord take(self):
        """Return the next record."""
        cdef Py_ssize_t index = self.index
        if index >= self.end:
            self.advance()
            index = 0
        self.index = index + 1
        return record_at(self.part, index)

    cpdef bint has_next(self) noexcept:
        """Return whether there is a record that needs no refill."""
        return self.index < self.end or self.next_slice < len(self.records.slices)

    cdef int advance(self) except -1:
        """Go to the next slice, of the next poll if need be."""
        cdef list slices = self.records.slices
        while self.next_slice >= len(slices):
            refilled = None if self.refill is None else self.refill()
            if refilled is None:
                raise StopIteration
            self.records = refilled
            self.part = None
            self.next_slice = self.index = self.end = self.before = 0
            slices = self.records.slices
        if self.part is not None:
            self.before += self.part.count
        self.part = <RecordSlice>slices[self.next_slice]
        self.next_slice += 1
        self.end = self.part.count
        self.index = 0
        return 0


cdef RecordIterator new_iterator(ConsumerRecords records, object refill):
    cdef RecordIterator iterator = RecordIterator.__new__(RecordIterator)
    iterator.records = records
    iterator.refill = refill
    return iterator


def iterate(refill not None) -> RecordIterator:
    """Iterate record by record over the results of many polls.

    Args:
        refill: called when the record after the last one is asked for; returns ConsumerRecords, or
            None at the end.
    """
    return new_iterator(ConsumerRecords(), refill)


cdef object not_slices(given):
    return TypeError(
        "slices are the parts() of other ConsumerRecords, which come from poll(), not "
        f"{given!r}"
    )


cdef ConsumerRecords new_consumer_records(list slices):
    cdef ConsumerRecords made = ConsumerRecords.__new__(ConsumerRecords)
    cdef RecordSlice part
    made.slices = slices
    for part in slices:
        made.count += part.count
    return made


@cython.final
cdef class ConsumerRecords:
    """Records of some partitions: a sequence, ordered by offset within each partition.

    A record is made when it is asked for. Columns cost less than records, and Arrow least; Arrow
    has keys and values as they stand in the log, whatever the deserializers make of them.
    """

    __class_getitem__ = classmethod(GenericAlias)  # ConsumerRecords[str, bytes]: of key and value

    def __init__(self, slices=()) -> None:
        """Put the slices of PartitionReader.take() together, those of one partition in a row."""
        cdef RecordSlice part
        self.slices = []
        if not isinstance(slices, Iterable):
            raise not_slices(slices)
        for one in slices:
            if not isinstance(one, RecordSlice):
                raise not_slices(one)
            part = <RecordSlice>one
            if part.count != 0:
                self.slices.append(part)
                self.count += part.count

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count != 0

    def __iter__(self) -> RecordIterator:
        return new_iterator(self, None)

    def __getitem__(self, index):
        """Return one record, or those of a slice as ConsumerRecords."""
        cdef Py_ssize_t at, start, stop, step
        if isinstance(index, slice):
            start, stop, step = index.indices(self.count)
            if step == 1:
                return new_consumer_records(self.cut(start, stop))
            parts = []
            for at in range(start, stop, step):
                parts += self.cut(at, at + 1)
            return new_consumer_records(parts)
        if not PyIndex_Check(index):
            raise TypeError(
                f"the index of a record is an int or a slice, not {index!r}; by_partition() has "
                "the records of one partition"
            )
        at = index
        if at < 0:
            at += self.count
        if at < 0 or at >= self.count:
            raise IndexError(f"record {index} of {self.count}")
        start = self.slice_of(at)
        return record_at(<RecordSlice>self.slices[start], at - <Py_ssize_t>self.starts[start])

    cdef Py_ssize_t slice_of(self, Py_ssize_t index) except -1:
        """Return the number of the slice that has a record; the index must be in range."""
        cdef RecordSlice part
        cdef Py_ssize_t start = 0
        if self.starts is None:
            self.starts = []
            for part in self.slices:
                self.starts.append(start)
                start += part.count
        return bisect_right(self.starts, index) - 1

    cdef list cut(self, Py_ssize_t start, Py_ssize_t stop):
        """Return slices of the records from `start` to before `stop`."""
        cdef list parts = []
        cdef RecordSlice part
        cdef Py_ssize_t first, count, at
        if start >= stop:
            return parts
        for at in range(self.slice_of(start), len(self.slices)):
            part = <RecordSlice>self.slices[at]
            first = <Py_ssize_t>self.starts[at]
            if first >= stop:
                break
            count = min(stop - first, part.count) - max(start - first, 0)
            parts.append(part.part(max(start - first, 0), count))
        return parts

    # ---- columns ----

    def values(self) -> list:
        """Return the values: bytes or None, or what the deserializer made of them."""
        return self.part_column(KF_PART_VALUE)

    def keys(self) -> list:
        """Return the keys: bytes or None, or what the deserializer made of them."""
        return self.part_column(KF_PART_KEY)

    cdef list part_column(self, kf_part which):
        cdef list column = PyList_New(self.count)
        cdef list objects
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t i
        cdef RecordSlice part
        cdef const kf_span* spans
        for part in self.slices:
            objects = part.key_objects if which == KF_PART_KEY else part.value_objects
            if objects is not None:
                at = put_objects(column, at, objects)
                continue
            spans = part.records.spans + part.start
            for i in range(part.count):
                put_item(column, at, bytes_item(
                    part.records.base, kf_part_pos(&spans[i], which), kf_part_len(&spans[i], which)
                ))
                at += 1
        return column

    def offsets(self) -> list:
        """Return the log offsets."""
        return self.number_column(False)

    def timestamps(self) -> list:
        """Return the timestamps: Unix ms, -1 for none."""
        return self.number_column(True)

    cdef list number_column(self, bint timestamps):
        cdef list column = PyList_New(self.count)
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t i
        cdef RecordSlice part
        cdef const kf_span* spans
        for part in self.slices:
            spans = part.records.spans + part.start
            for i in range(part.count):
                put_item(column, at, PyLong_FromLongLong(
                    spans[i].timestamp if timestamps else spans[i].offset
                ))
                at += 1
        return column

    def headers(self) -> list:
        """Return the headers: one tuple of (name, value) pairs for each record."""
        cdef RecordSlice part
        cdef Py_ssize_t i
        return [
            part.records.headers_at(i)
            for part in self.slices
            for i in range(part.start, part.start + part.count)
        ]

    # ---- partitions ----

    def parts(self) -> list:
        """Return the slices that the records are made from."""
        return list(self.slices)

    def partitions(self) -> list:
        """Return the partitions that have records here, in the order of their records."""
        return list(self.grouped())

    def by_partition(self) -> dict:
        """Return TopicPartition -> its ConsumerRecords."""
        return {tp: new_consumer_records(parts) for tp, parts in self.grouped().items()}

    def next_offsets(self) -> dict:
        """Return TopicPartition -> OffsetAndMetadata: what to commit once all of these are done.

        The offset is that of the record to read next, gaps and markers passed over; the leader
        epoch is that of the last record.
        """
        cdef RecordSlice part
        cdef dict found = {}
        for tp, parts in self.grouped().items():
            last = max(parts, key=next_offset_of)
            part = <RecordSlice>last
            found[tp] = OffsetAndMetadata(part.next_offset, part.origin.leader_epoch)
        return found

    cdef dict grouped(self):
        """Return TopicPartition -> list of its slices."""
        cdef RecordSlice part
        cdef RecordSlice before = None
        cdef dict found = {}
        cdef list same
        for part in self.slices:
            if (before is None or before.origin.partition != part.origin.partition
                    or before.origin.topic != part.origin.topic):
                tp = TopicPartition(part.origin.topic, part.origin.partition)
                same = found.setdefault(tp, [])
            same.append(part)
            before = part
        return found

    # ---- numpy and Arrow ----

    def to_numpy(self) -> dict:
        """Return column name -> numpy array.

        `topic`, `key` and `value` are arrays of objects; `partition` is int32, `offset` int64,
        `timestamp` datetime64[ms].

        Raises:
            UsageError: numpy is not installed.
        """
        numpy = package_for("to_numpy()", "numpy")
        cdef list columns = [
            PyByteArray_FromStringAndSize(NULL, self.count * width) for width in (4, 8, 8)
        ]
        cdef int32_t* partitions = <int32_t*>PyByteArray_AS_STRING(columns[0])
        cdef int64_t* offsets = <int64_t*>PyByteArray_AS_STRING(columns[1])
        cdef int64_t* timestamps = <int64_t*>PyByteArray_AS_STRING(columns[2])
        cdef RecordSlice part
        cdef Py_ssize_t i
        cdef Py_ssize_t at = 0
        topics = numpy.empty(self.count, dtype=object)
        for part in self.slices:
            topics[at:at + part.count] = part.origin.topic
            for i in range(part.start, part.start + part.count):
                partitions[at] = part.origin.partition
                offsets[at] = part.records.spans[i].offset
                timestamps[at] = part.records.spans[i].timestamp
                at += 1
        keys = numpy.empty(self.count, dtype=object)
        values = numpy.empty(self.count, dtype=object)
        keys[:] = self.keys()
        values[:] = self.values()
        return {
            "topic": topics,
            "partition": numpy.frombuffer(columns[0], dtype="=i4"),
            "offset": numpy.frombuffer(columns[1], dtype="=i8"),
            "timestamp": numpy.frombuffer(columns[2], dtype="=M8[ms]"),
            "key": keys,
            "value": values,
        }

    def arrow(self, *, layout="kafka", bint views=False, headers=None, columns=None,
              bint text=False) -> ArrowRecords:
        """Return the records as a table for any library that takes Arrow; pyarrow is not needed.

        Args:
            layout: "kafka" for Kafka's own names, "spark" for the columns and types of Spark's
                Kafka source.
            views: point into the fetched buffers instead of copying keys and values; the buffers
                are pinned until the table is released. Pays for values of some hundred bytes and
                more; the receiver must know Arrow's binary views.
            headers: whether there is a column of headers; None: in "kafka" only.
            columns: names of the layout's columns, to have these only, in this order; what is not
                named costs nothing.
            text: make keys and values strings, where they are bytes otherwise. A key or value that
                is no UTF-8 is a SerializationError, in the call that takes the rows.

        Raises:
            UsageError: there is no such layout or column.
        """
        return arrow_records(self.slices, layout, views, headers, columns, text)

    def to_arrow(self, *, layout="kafka", bint views=False, headers=None, columns=None,
                 bint text=False):
        """Return the records as a pyarrow.Table; the arguments are those of `arrow`.

        Raises:
            SerializationError: with `text`, a key or value is no UTF-8.
            UsageError: pyarrow is not installed.
        """
        failures = []
        return to_arrow(lambda: arrow_records(
            self.slices, layout, views, headers, columns, text, failures
        ), failures)

    def to_pandas(self, *, layout="kafka", headers=None, columns=None, bint text=False):
        """Return the records as a pandas.DataFrame; the arguments are those of `arrow`.

        Raises:
            SerializationError: with `text`, a key or value is no UTF-8.
            UsageError: pandas or pyarrow is not installed.
        """
        failures = []
        return to_pandas(lambda: arrow_records(
            self.slices, layout, False, headers, columns, text, failures
        ), failures)

    def to_polars(self, *, layout="kafka", bint views=False, headers=None, columns=None,
                  bint text=False):
        """Return the records as a polars.DataFrame; the arguments are those of `arrow`.

        Raises:
            SerializationError: with `text`, a key or value is no UTF-8.
            UsageError: polars is not installed.
        """
        failures = []
        return to_polars(lambda: arrow_records(
            self.slices, layout, views, headers, columns, text, failures
        ), failures)

    def __array__(self, dtype=None, copy=None):
        """Return a row object for each record: this is how pandas.DataFrame(records) gets columns.
        """
        return rows_array([self], dtype)

    def __arrow_c_stream__(self, requested_schema=None):
        """Return the records as an Arrow stream of the layout "kafka"."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_array__(self, requested_schema=None):
        """Return the records as one Arrow array of the layout "kafka"."""
        return self.arrow().__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self):
        """Return the type of the layout "kafka"."""
        return self.arrow().__arrow_c_schema__()

    def __reduce__(self):
        raise TypeError(
            "ConsumerRecords refer to fetched buffers and cannot be pickled or copied: use "
            "list(records), or records.to_arrow()"
        )

    def __repr__(self) -> str:
        return f"ConsumerRecords({self.count} records of {len(self.grouped())} partitions)"


def next_offset_of(RecordSlice part not None) -> int:
    """Return where a reader goes on after the slice."""
    return part.next_offset


name_type(RecordIterator, "kafka_fast.consumer")
refuse_new(ConsumerRecords, "ConsumerRecords come from poll()")
refuse_new(RecordIterator, "a RecordIterator comes from ConsumerRecords or iterate()")
name_type(ConsumerRecords, "kafka_fast")
hint_at_names(ConsumerRecords, RECORDS)
