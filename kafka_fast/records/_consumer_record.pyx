"""One record as a consumer hands it out.

Short keys, values and headers are copied when the record is made. A copy of 100 bytes costs less
than a second visit to the batch, and pins nothing. Long ones stay in the batch until they are read,
so a program that filters on keys does not pay for values. Until then the record keeps the fetched
buffer alive.

Thread: the caller's, with the GIL.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int32_t, uint8_t

from kafka_fast.record._arguments cimport pairs, whole
from kafka_fast.record._layout cimport kf_span
from kafka_fast.record._records cimport Records, read_headers
from kafka_fast.record._slices cimport Origin, new_origin

from types import GenericAlias

from kafka_fast._hints import hint_at_names, name_type, refuse_new
from kafka_fast.peer_names import RECORD
from kafka_fast.record.types import NO_LEADER_EPOCH, NO_TIMESTAMP, TimestampType

cdef extern from "Python.h":
    void PyObject_GC_Track(object)
    void PyObject_GC_UnTrack(void*)
    bint PyObject_GC_IsTracked(object)

cdef enum:
    EAGER_SIZE_MAX = 256  # measured: a longer copy that nobody reads costs more than a late one

cdef object UNREAD = object()
cdef tuple TIMESTAMP_TYPES = tuple(TimestampType)


cdef object bytes_or_none(const uint8_t* base, int32_t pos, int32_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char*>base + pos, size)


cdef ConsumerRecord new_record(Origin origin, Records records, Py_ssize_t index):
    cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
    cdef const kf_span* span = &records.spans[index]
    # Bytes form no cycle, so the garbage collector need not know of the record.
    PyObject_GC_UnTrack(<void*>record)
    record.origin = origin
    record.offset = span.offset
    record.timestamp_ms = span.timestamp
    record.key_size = span.key_len
    record.value_size = span.value_len
    if span.value_len <= EAGER_SIZE_MAX:
        record.value_ = bytes_or_none(records.base, span.value_pos, span.value_len)
    else:
        leave(record, records, index)
        record.value_ = UNREAD
    if span.key_len <= EAGER_SIZE_MAX:
        record.key_ = bytes_or_none(records.base, span.key_pos, span.key_len)
    else:
        leave(record, records, index)
        record.key_ = UNREAD
    if span.header_count == 0:
        record.headers_ = ()
    else:
        take_headers(record, records, index)
    return record


cdef void leave(ConsumerRecord record, Records records, Py_ssize_t index) noexcept:
    """Let the record remember where it is, because something of it is not copied."""
    record.unread = records
    record.index = <int32_t>index


cdef int take_headers(ConsumerRecord record, Records records, Py_ssize_t index) except -1:
    """Copy the headers as they stand, if they are short: most are never looked at."""
    cdef Py_ssize_t size = records.headers_size_at(index)
    record.header_count = records.spans[index].header_count
    if size > EAGER_SIZE_MAX:
        leave(record, records, index)
        record.headers_ = UNREAD
    else:
        record.headers_ = PyBytes_FromStringAndSize(
            <const char*>records.base + records.spans[index].headers_pos, size
        )
    return 0


cdef int set_objects(ConsumerRecord record, object key, bint has_key, object value,
                     bint has_value) except -1:
    if has_key:
        record.key_ = key
    if has_value:
        record.value_ = value
    let_go(record)
    if not PyObject_GC_IsTracked(record) and not (is_plain(record.key_)
                                                  and is_plain(record.value_)):
        PyObject_GC_Track(record)
    return 0


cdef bint is_plain(object part) noexcept:
    """Whether an object cannot lead back to the record."""
    return part is None or part is UNREAD or type(part) in (bytes, str, int, float, bool)


cdef void let_go(ConsumerRecord record) noexcept:
    """Give the buffer up once everything was read."""
    if not (record.key_ is UNREAD or record.value_ is UNREAD or record.headers_ is UNREAD):
        record.unread = None


@cython.final
@cython.freelist(1024)
cdef class ConsumerRecord:
    """One record of a partition. Immutable.

    Attributes:
        topic, partition, offset: where it stands.
        key, value: bytes or None; or what the deserializers made of them.
        headers: (name, bytes or None) pairs, in the order of the record.
        timestamp_ms: Unix ms; -1 if the record has none (message format v0).
        timestamp_type: who gave it.
        leader_epoch: epoch of the leader that wrote it, or -1.
        serialized_key_size, serialized_value_size: bytes they take in the log; -1 for None.
    """

    __class_getitem__ = classmethod(GenericAlias)  # ConsumerRecord[str, bytes]: of key and value

    def __init__(
        self,
        topic,
        partition,
        offset,
        key=None,
        value=None,
        *,
        timestamp_ms=NO_TIMESTAMP,
        timestamp_type=0,
        headers=(),
        leader_epoch=NO_LEADER_EPOCH,
        serialized_key_size=None,
        serialized_value_size=None,
    ) -> None:
        """Make a record by hand, as tests of a consumer's user do.

        Args:
            topic: its topic.
            partition: its partition.
            offset: in the partition's log.
            key: bytes, or any object, as a deserializer may make.
            value: the same.
            timestamp_ms: Unix ms.
            timestamp_type: a TimestampType.
            headers: (name, bytes or None) pairs.
            leader_epoch: of the batch.
            serialized_key_size: None takes the length of a key that is bytes.
            serialized_value_size: the same for the value.
        """
        if not isinstance(topic, str):
            raise TypeError(f"topic is a str, not {type(topic).__name__}: {topic!r}")
        self.origin = new_origin(
            topic, <int32_t>whole(partition, "partition", 32),
            <int32_t>whole(leader_epoch, "leader_epoch", 32),
            <int8_t>TimestampType(timestamp_type),
        )
        self.offset = whole(offset, "offset", 64)
        self.timestamp_ms = whole(timestamp_ms, "timestamp_ms", 64)
        self.key_ = key
        self.value_ = value
        self.headers_ = pairs(headers)
        self.key_size = size_of(key, serialized_key_size, "serialized_key_size")
        self.value_size = size_of(value, serialized_value_size, "serialized_value_size")

    cdef object read_key(self):
        if self.key_ is UNREAD:
            self.key_ = self.unread.key_at(self.index)
            let_go(self)
        return self.key_

    cdef object read_value(self):
        if self.value_ is UNREAD:
            self.value_ = self.unread.value_at(self.index)
            let_go(self)
        return self.value_

    @property
    def topic(self) -> str:
        """The record's topic."""
        return self.origin.topic

    @property
    def partition(self) -> int:
        """The record's partition."""
        return self.origin.partition

    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that wrote the record, or -1."""
        return self.origin.leader_epoch

    @property
    def timestamp_type(self) -> TimestampType:
        """Who gave the record its timestamp."""
        return TIMESTAMP_TYPES[self.origin.timestamp_type]

    @property
    def key(self):
        """The key, or what the deserializer made of it."""
        return self.key_ if self.key_ is not UNREAD else self.read_key()

    @property
    def value(self):
        """The value, or what the deserializer made of it."""
        return self.value_ if self.value_ is not UNREAD else self.read_value()

    @property
    def headers(self) -> tuple:
        """(name, value) pairs in their order; names that are not UTF-8 are repaired."""
        cdef bytes raw
        if self.headers_ is UNREAD:
            self.headers_ = self.unread.headers_at(self.index)
            let_go(self)
        elif PyBytes_CheckExact(self.headers_):
            raw = <bytes>self.headers_
            self.headers_ = read_headers(
                <const uint8_t*>PyBytes_AS_STRING(raw), <size_t>len(raw), self.header_count
            )
        return self.headers_

    @property
    def serialized_key_size(self) -> int:
        """Bytes of the key in the log; -1 if it is null."""
        return self.key_size

    @property
    def serialized_value_size(self) -> int:
        """Bytes of the value in the log; -1 if it is null."""
        return self.value_size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return parts_of(self) == parts_of(<ConsumerRecord>other)

    def __hash__(self) -> int:
        return hash((self.origin.topic, self.origin.partition, self.offset))

    def __reduce__(self):
        return restore, parts_of(self)

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, key={self.key!r}, value={self.value!r}, "
            f"timestamp_ms={self.timestamp_ms}, headers={self.headers!r})"
        )


cdef int32_t size_of(object part, object size, str what) except? -2:
    """Return a size that is given, or else the length of a part that is bytes."""
    if size is not None:
        return <int32_t>whole(size, what, 32)
    return <int32_t>len(part) if type(part) is bytes else -1


cdef tuple parts_of(ConsumerRecord record):
    return (
        record.origin.topic, record.origin.partition, record.offset, record.key, record.value,
        record.timestamp_ms, record.timestamp_type, record.headers, record.origin.leader_epoch,
        record.key_size, record.value_size,
    )


def restore(topic, partition, offset, key, value, timestamp_ms, timestamp_type, headers,
            leader_epoch, key_size, value_size) -> ConsumerRecord:
    """Return an unpickled record."""
    return ConsumerRecord(
        topic, partition, offset, key, value, timestamp_ms=timestamp_ms,
        timestamp_type=timestamp_type, headers=headers, leader_epoch=leader_epoch,
        serialized_key_size=key_size, serialized_value_size=value_size,
    )


name_type(
    ConsumerRecord, "kafka_fast",
    f"(topic, partition, offset, key=None, value=None, *, timestamp_ms={NO_TIMESTAMP}, "
    f"timestamp_type=0, headers=(), leader_epoch={NO_LEADER_EPOCH}, serialized_key_size=None, "
    "serialized_value_size=None)",
)
hint_at_names(ConsumerRecord, RECORD)
refuse_new(ConsumerRecord, "ConsumerRecord(topic, partition, offset, ...) makes a record")
