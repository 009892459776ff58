"""Write record batches of message format v2, for the wire API and the embedded broker.

The producer's append path does not come through here: it writes the same bytes with the same
kf_record_put(), but into its own slabs and without a Python call per batch.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafka_fast._wire._checksum cimport crc32c_update
from kafka_fast.record._arguments cimport whole
from kafka_fast.record._layout cimport (
    KF_ATTRIBUTE_CONTROL, KF_ATTRIBUTE_LOG_APPEND_TIME, KF_ATTRIBUTE_TRANSACTIONAL,
    KF_BATCH_HEADER_SIZE, KF_BATCH_LENGTH_PREFIX, KF_BATCH_MAGIC, KF_BATCH_POS_ATTRIBUTES,
    KF_BATCH_POS_CRC, KF_VARINT_MAX, kf_batch_header, kf_batch_header_put, kf_batch_header_read,
    kf_put_bytes, kf_put_i32, kf_put_varint, kf_reader, kf_reader_of, kf_record, kf_record_put,
    kf_record_size_max,
)

import struct

from kafka_fast._hints import name_type
from kafka_fast.errors import UsageError
from kafka_fast.record.compression import compress
from kafka_fast.record.types import Codec, ControlType

cdef enum:
    FIRST_CAPACITY = 1024


cdef bytes encode_headers(object headers):
    cdef Py_ssize_t size = KF_VARINT_MAX
    cdef uint8_t* start
    cdef uint8_t* at
    cdef bytes out
    cdef bytes part
    parts = []
    for pair in headers:
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise TypeError(f"a header is a (name, value) pair, not {pair!r}") from None
        if not isinstance(name, str):
            raise TypeError(f"a header's name is a str, not {type(name).__name__}")
        part = name.encode()
        size += len(part) + 2 * KF_VARINT_MAX
        parts.append(part)
        part = header_value(name, value)
        if part is not None:
            size += len(part)
        parts.append(part)
    if not parts:
        return None
    out = PyBytes_FromStringAndSize(NULL, size)
    start = <uint8_t*>PyBytes_AS_STRING(out)
    at = kf_put_varint(start, len(parts) // 2)
    for part in parts:
        if part is None:
            at = kf_put_varint(at, -1)
        else:
            at = kf_put_varint(at, len(part))
            at = kf_put_bytes(at, PyBytes_AS_STRING(part), <size_t>len(part))
    return out[:at - start]


cdef bytes header_value(str name, object value):
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(
            f"the value of header {name!r} is bytes-like, str or None, not {type(value).__name__}"
        ) from None


@cython.final
cdef class RecordBatchBuilder:
    """Collects records and builds one batch.

    Args:
        codec: compression of the records.
        level: the codec's own level; None is the default of `compress()`.
        base_offset: log offset of the first record. Producers leave 0: the broker assigns it.
        leader_epoch: -1 for producers.
        producer_id, producer_epoch, base_sequence: of an idempotent producer; -1 for none.
        is_transactional, is_control: attributes of the batch.
        log_append_time_ms: timestamp for the whole batch, instead of the records' own timestamps.
    """

    cdef uint8_t* data     # owned; room for the header, then the records
    cdef size_t capacity   # bytes allocated at `data`
    cdef size_t used       # bytes written, the header's room included
    cdef kf_batch_header header
    cdef int64_t log_append_time_ms
    cdef object codec
    cdef object level

    def __init__(
        self,
        *,
        codec=Codec.NONE,
        level: int | None = None,
        base_offset=0,
        leader_epoch=-1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        bint is_transactional=False,
        bint is_control=False,
        log_append_time_ms=None,
    ) -> None:
        self.codec = Codec(codec)
        self.level = level
        self.header.base_offset = whole(base_offset, "base_offset", 64)
        self.header.leader_epoch = <int32_t>whole(leader_epoch, "leader_epoch", 32)
        self.header.producer_id = whole(producer_id, "producer_id", 64)
        self.header.producer_epoch = <int16_t>whole(producer_epoch, "producer_epoch", 16)
        self.header.base_sequence = <int32_t>whole(base_sequence, "base_sequence", 32)
        self.header.attributes = <int16_t>self.codec
        self.header.base_timestamp = -1
        self.header.max_timestamp = -1
        if is_transactional:
            self.header.attributes |= KF_ATTRIBUTE_TRANSACTIONAL
        if is_control:
            self.header.attributes |= KF_ATTRIBUTE_CONTROL
        if log_append_time_ms is not None:
            self.log_append_time_ms = whole(log_append_time_ms, "log_append_time_ms", 64)
            self.header.attributes |= KF_ATTRIBUTE_LOG_APPEND_TIME

    def __cinit__(self):
        self.used = KF_BATCH_HEADER_SIZE
        self.codec = Codec.NONE
        self.header.last_offset_delta = -1

    def __dealloc__(self):
        PyMem_RawFree(self.data)

    def __reduce__(self):
        raise TypeError(
            "a RecordBatchBuilder cannot be pickled or copied: build() the batch, which is bytes"
        )

    cdef int reserve(self, size_t more) except -1:
        cdef size_t capacity = max(self.capacity, <size_t>FIRST_CAPACITY)
        cdef uint8_t* data
        if self.used + more <= self.capacity:
            return 0
        while capacity < self.used + more:
            capacity *= 2
        data = <uint8_t*>PyMem_RawRealloc(self.data, capacity)
        if data is NULL:
            raise MemoryError
        self.data = data
        self.capacity = capacity
        return 0

    def append(
        self, key, value, timestamp_ms, headers=(), *, offset_delta=None
    ) -> int:
        """Add a record; return its offset delta, its number in the batch.

        Args:
            key, value: bytes-like, or None.
            timestamp_ms: Unix ms. The first record's timestamp is the batch's base timestamp.
            headers: (name, value) pairs; a value is bytes-like, str or None.
            offset_delta: a number above the last record's, for batches with gaps, such as
                compaction leaves.

        Raises:
            UsageError: the batch would exceed 2 GiB, or the offset delta does not rise.
        """
        cdef int32_t delta = self.header.last_offset_delta + 1
        cdef int32_t given_delta
        cdef int64_t at = whole(timestamp_ms, "timestamp_ms", 64)
        cdef kf_record record
        cdef Py_buffer key_view
        cdef Py_buffer value_view
        cdef bytes encoded = encode_headers(headers) if headers else None
        if offset_delta is not None:
            given_delta = <int32_t>whole(offset_delta, "offset_delta", 32)
            if given_delta < delta:
                raise UsageError(f"offset delta {given_delta} after {delta - 1}: they must rise")
            delta = given_delta
        record.headers = NULL
        record.headers_size = 0
        if encoded is not None:
            record.headers = <const uint8_t*>PyBytes_AS_STRING(encoded)
            record.headers_size = len(encoded)
        hold(key, &key_view, &record.key, &record.key_len)
        try:
            hold(value, &value_view, &record.value, &record.value_len)
            try:
                self.put(&record, at, delta)
            finally:
                release(value, &value_view)
        finally:
            release(key, &key_view)
        return delta

    cdef int put(self, kf_record* record, int64_t timestamp_ms, int32_t delta) except -1:
        cdef size_t worst = kf_record_size_max(record)
        if worst > <size_t>INT32_MAX - self.used:
            raise UsageError(f"a record batch ends at 2 GiB; this one has {self.used} bytes")
        self.reserve(worst)
        if self.header.record_count == 0:
            self.header.base_timestamp = timestamp_ms
            self.header.max_timestamp = timestamp_ms
        self.used = <size_t>(
            kf_record_put(
                self.data + self.used, record, timestamp_ms - self.header.base_timestamp, delta
            ) - self.data
        )
        self.header.max_timestamp = max(self.header.max_timestamp, timestamp_ms)
        self.header.last_offset_delta = delta
        self.header.record_count += 1
        return 0

    def __len__(self) -> int:
        return self.header.record_count

    @property
    def size(self) -> int:
        """Size of the batch so far, in bytes without compression."""
        return self.used

    def build(self, *, last_offset_delta=None) -> bytes:
        """Return the batch with its CRC. The builder can go on and build again.

        Args:
            last_offset_delta: a number above the last record's, for batches whose last records
                compaction has removed. Without any record, the result is an empty batch.
        """
        cdef kf_batch_header header = self.header
        cdef int32_t given_delta
        cdef bytes out
        cdef bytes packed
        cdef uint8_t* at
        cdef const uint8_t* records
        cdef size_t size = self.used - KF_BATCH_HEADER_SIZE
        if last_offset_delta is not None:
            given_delta = <int32_t>whole(last_offset_delta, "last_offset_delta", 32)
            if given_delta < header.last_offset_delta:
                raise UsageError(
                    f"last offset delta {given_delta} is below the last record's, "
                    f"{header.last_offset_delta}"
                )
            header.last_offset_delta = given_delta
        if header.last_offset_delta < 0:
            raise UsageError("a batch without records needs a last offset delta")
        if header.attributes & KF_ATTRIBUTE_LOG_APPEND_TIME != 0:
            header.max_timestamp = self.log_append_time_ms
        self.reserve(0)
        records = self.data + KF_BATCH_HEADER_SIZE
        if self.codec and size != 0:
            packed = compress(self.codec, PyMemoryView_FromMemory(
                <char*>records, <Py_ssize_t>size, PyBUF_READ
            ), self.level)
            records = <const uint8_t*>PyBytes_AS_STRING(packed)
            size = <size_t>len(packed)
        out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size + KF_BATCH_HEADER_SIZE)
        at = <uint8_t*>PyBytes_AS_STRING(out)
        memcpy(at + KF_BATCH_HEADER_SIZE, records, size)
        put_header(at, size, &header)
        return out


cdef void put_header(uint8_t* at, size_t records_size, kf_batch_header* header) noexcept nogil:
    """Write header and CRC; the `records_size` bytes behind the header are already in place."""
    cdef size_t size = KF_BATCH_HEADER_SIZE + records_size
    header.length = <int32_t>(size - KF_BATCH_LENGTH_PREFIX)
    kf_batch_header_put(at, header)
    kf_put_i32(at + KF_BATCH_POS_CRC, <int32_t>crc32c_update(
        0, at + KF_BATCH_POS_ATTRIBUTES, size - KF_BATCH_POS_ATTRIBUTES
    ))


cdef int hold(object data, Py_buffer* view, const uint8_t** at, int64_t* size) except -1:
    """Take the buffer of a key or value; give it back with release()."""
    if data is None:
        at[0] = NULL
        size[0] = -1
        return 0
    PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
    at[0] = <const uint8_t*>view.buf
    size[0] = view.len
    return 0


cdef int release(object data, Py_buffer* view) except -1:
    if data is not None:
        PyBuffer_Release(view)
    return 0


def build_control_batch(
    kind: ControlType,
    *,
    base_offset,
    producer_id,
    producer_epoch,
    timestamp_ms,
    coordinator_epoch=0,
    leader_epoch=-1,
) -> bytes:
    """Return the control batch that ends a transaction of this producer."""
    builder = RecordBatchBuilder(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    key = struct.pack(">hh", 0, ControlType(kind))
    value = struct.pack(">hi", 0, whole(coordinator_epoch, "coordinator_epoch", 32))
    builder.append(key, value, timestamp_ms)
    return builder.build()


def stamp_batch(
    object batch not None,
    *,
    base_offset,
    leader_epoch,
    log_append_time_ms=None,
) -> None:
    """Write a produced batch's offset and leader epoch into it, as a leader does on append.

    The CRC does not cover offset and epoch. It covers a log append time, which needs a new CRC.

    Args:
        batch: a writable buffer that holds exactly one batch of message format v2, already
            checked.
        base_offset: log offset of the first record.
        leader_epoch: epoch of the leader that appends the batch.
        log_append_time_ms: timestamp for all records; None keeps the producer's timestamps.

    Raises:
        UsageError: the buffer does not hold exactly one batch.
    """
    cdef Py_buffer view
    cdef kf_reader reader
    cdef kf_batch_header header
    cdef uint8_t* at
    cdef size_t records_size
    cdef int64_t offset = whole(base_offset, "base_offset", 64)
    cdef int32_t epoch = <int32_t>whole(leader_epoch, "leader_epoch", 32)
    cdef int64_t append_time = (
        -1 if log_append_time_ms is None
        else whole(log_append_time_ms, "log_append_time_ms", 64)
    )
    PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
    try:
        reader = kf_reader_of(view.buf, <size_t>view.len)
        kf_batch_header_read(&reader, &header)
        if (
            reader.bad
            or header.magic != KF_BATCH_MAGIC
            or <int64_t>header.length + KF_BATCH_LENGTH_PREFIX != view.len
        ):
            raise UsageError(f"{view.len} bytes that are not exactly one record batch v2")
        at = <uint8_t*>view.buf
        records_size = <size_t>view.len - KF_BATCH_HEADER_SIZE
        header.base_offset = offset
        header.leader_epoch = epoch
        if log_append_time_ms is not None:
            header.attributes |= KF_ATTRIBUTE_LOG_APPEND_TIME
            header.max_timestamp = append_time
            put_header(at, records_size, &header)
        else:
            kf_batch_header_put(at, &header)
            kf_put_i32(at + KF_BATCH_POS_CRC, <int32_t>header.crc)
    finally:
        PyBuffer_Release(&view)


name_type(RecordBatchBuilder, "kafka_fast.record")
