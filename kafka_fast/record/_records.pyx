"""The records of a batch: checked spans, and the objects that are made from them."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.number cimport PyIndex_Check
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint8_t

from kafka_fast.record._arguments cimport pairs, whole
from kafka_fast.record._layout cimport (
    kf_read_span, kf_read_varint, kf_reader, kf_reader_of, kf_span,
)

from kafka_fast._hints import name_type, refuse_new


@cython.final
@cython.no_gc  # bytes, and tuples of str and bytes, cannot form a cycle
@cython.freelist(512)
cdef class Record:
    """One record. Immutable; owns its bytes.

    Attributes:
        offset: log offset.
        timestamp_ms: Unix ms; -1 in message format v0.
        key, value: bytes, or None.
        headers: (name, bytes or None) pairs, in the order of the record.
    """

    def __init__(
        self, offset, timestamp_ms, key, value, headers=()
    ) -> None:
        self.offset = whole(offset, "offset", 64)
        self.timestamp_ms = whole(timestamp_ms, "timestamp_ms", 64)
        self.key = bytes_or_none(key, "key")
        self.value = bytes_or_none(value, "value")
        self.headers = pairs(headers)

    cdef tuple parts(self):
        return (self.offset, self.timestamp_ms, self.key, self.value, self.headers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self.parts() == (<Record>other).parts()

    def __hash__(self) -> int:
        return hash(self.parts())

    def __reduce__(self):
        return Record, self.parts()

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp_ms={self.timestamp_ms}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )


cdef bytes bytes_or_none(object part, str what):
    if part is not None and type(part) is not bytes:
        raise TypeError(f"{what} is bytes or None, not {type(part).__name__}: {part!r}")
    return part


cdef object bytes_at(const uint8_t* base, int32_t pos, int32_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char*>base + pos, size)


cdef tuple read_headers(const uint8_t* data, size_t size, int32_t count):
    """Return headers; bytes of a name that are not UTF-8 are replaced, as in Java's client."""
    cdef kf_reader reader = kf_reader_of(data, size)
    cdef const uint8_t* at
    cdef int32_t length
    headers = []
    for _ in range(count):
        length = kf_read_varint(&reader)
        at = kf_read_span(&reader, length)
        name = PyUnicode_DecodeUTF8(<char*>at, length, b"replace")
        length = kf_read_varint(&reader)
        at = kf_read_span(&reader, length) if length >= 0 else reader.pos
        headers.append((name, bytes_at(at, 0, length)))
    return tuple(headers)


cdef Records new_records(object owner, const uint8_t* base, size_t size, Py_ssize_t count):
    """Return Records with room for `count` spans, which the caller fills."""
    cdef Records records = Records.__new__(Records)
    records.owner = owner
    records.base = base
    records.size = size
    if count > 0:
        records.spans = <kf_span*>PyMem_RawMalloc(<size_t>count * sizeof(kf_span))
        if records.spans is NULL:
            raise MemoryError
    records.count = count
    return records


@cython.final
cdef class Records:
    """The records of one batch: a sequence that makes each Record on demand.

    Columns cost less than records: `values()` makes only the values.
    """

    def __init__(self, *arguments, **named) -> None:
        raise TypeError("Records come from RecordBatch.records()")

    def __reduce__(self):
        raise TypeError(
            "Records refer to the bytes of their batch and cannot be pickled or copied: use "
            "list(records)"
        )

    def __dealloc__(self):
        PyMem_RawFree(self.spans)

    cdef object key_at(self, Py_ssize_t index):
        return bytes_at(self.base, self.spans[index].key_pos, self.spans[index].key_len)

    cdef object value_at(self, Py_ssize_t index):
        return bytes_at(self.base, self.spans[index].value_pos, self.spans[index].value_len)

    cdef tuple headers_at(self, Py_ssize_t index):
        cdef kf_span* span = &self.spans[index]
        if span.header_count == 0:
            return ()
        return read_headers(
            self.base + span.headers_pos, self.size - <size_t>span.headers_pos, span.header_count
        )

    cdef Py_ssize_t headers_size_at(self, Py_ssize_t index) noexcept:
        cdef kf_span* span = &self.spans[index]
        cdef const uint8_t* start = self.base + span.headers_pos
        cdef kf_reader reader = kf_reader_of(start, self.size - <size_t>span.headers_pos)
        cdef int32_t left = 2 * span.header_count  # names and values
        while left > 0:
            kf_read_span(&reader, max(kf_read_varint(&reader), 0))
            left -= 1
        return <Py_ssize_t>(reader.pos - start)

    cdef Record record_at(self, Py_ssize_t index):
        cdef Record record = Record.__new__(Record)
        record.offset = self.spans[index].offset
        record.timestamp_ms = self.spans[index].timestamp
        record.key = self.key_at(index)
        record.value = self.value_at(index)
        record.headers = self.headers_at(index)
        return record

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index):
        cdef Py_ssize_t at
        if isinstance(index, slice):
            return [self.record_at(i) for i in range(*index.indices(self.count))]
        if not PyIndex_Check(index):
            raise TypeError(f"the index of a record is an int or a slice, not {index!r}")
        at = index
        if at < 0:
            at += self.count
        if at < 0 or at >= self.count:
            raise IndexError(f"record {index} of {self.count}")
        return self.record_at(at)

    def __iter__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            yield self.record_at(i)

    def keys(self) -> list:
        """Return the keys: bytes or None."""
        cdef Py_ssize_t i
        return [self.key_at(i) for i in range(self.count)]

    def values(self) -> list:
        """Return the values: bytes or None."""
        cdef Py_ssize_t i
        return [self.value_at(i) for i in range(self.count)]

    def headers(self) -> list:
        """Return the headers: one tuple of (name, value) pairs for each record."""
        cdef Py_ssize_t i
        return [self.headers_at(i) for i in range(self.count)]

    def offsets(self) -> list:
        """Return the log offsets."""
        cdef Py_ssize_t i
        return [self.spans[i].offset for i in range(self.count)]

    def timestamps(self) -> list:
        """Return the timestamps in Unix ms."""
        cdef Py_ssize_t i
        return [self.spans[i].timestamp for i in range(self.count)]


name_type(Record, "kafka_fast.record")
name_type(Records, "kafka_fast.record")
refuse_new(Records, "Records come from RecordBatch.records()")
