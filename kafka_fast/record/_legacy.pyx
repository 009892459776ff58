"""Records of message formats v0 and v1, as old log segments hold them.

A message is a single record, or wraps a compressed message set. The result is the same Records as
for format v2, so callers need not know the format. This code is not tuned: such segments are read
once, if ever.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT32_MAX, int8_t, int32_t, int64_t, uint8_t, uint32_t

from kafka_fast.record._compress cimport Plain
from kafka_fast.record._layout cimport (
    KF_ATTRIBUTE_CODEC, KF_ATTRIBUTE_LOG_APPEND_TIME, kf_left, kf_reader, kf_reader_of, kf_span,
)
from kafka_fast.record._reader cimport RecordBatch
from kafka_fast.record._records cimport Records, new_records

from zlib import crc32

cdef extern from "kf_legacy.h" nogil:
    ctypedef struct kf_message:
        int64_t offset
        uint32_t crc
        int8_t magic
        int8_t attributes
        int64_t timestamp
        int32_t pos
        int32_t size
        int32_t key_pos
        int32_t key_len
        int32_t value_pos
        int32_t value_len

    bint kf_message_read(kf_reader* reader, const uint8_t* base, kf_message* message)
    int64_t kf_message_count(kf_reader reader)


def read_messages(RecordBatch batch not None, bint check_crc, Py_ssize_t max_size) -> Records:
    """Return the records of one outer message; its CRC has been checked before."""
    cdef kf_reader reader = kf_reader_of(batch.data, batch.size_)
    cdef kf_message outer
    cdef Records records
    if batch.size_ > INT32_MAX or not kf_message_read(&reader, batch.data, &outer):
        raise batch.corrupt("is a malformed message of format v0 or v1")
    if outer.offset < 0:
        raise batch.corrupt("has an offset that no log can have")
    batch.codec  # raises if the codec is unknown
    if outer.attributes & KF_ATTRIBUTE_CODEC != 0:
        return read_wrapped(batch, &outer, check_crc, max_size)
    records = new_records(batch.source, batch.data, batch.size_, 1)
    fill_span(&records.spans[0], &outer)
    return records


cdef Records read_wrapped(
    RecordBatch batch, kf_message* outer, bint check_crc, Py_ssize_t max_size
):
    """Return the records of the compressed message set in the value of `outer`."""
    if outer.value_len < 0:
        raise batch.corrupt("is a compressed message without a value")
    cdef Plain plain = batch.decompressed(
        <size_t>outer.value_pos, <size_t>outer.value_len, min(max_size, INT32_MAX)
    )
    cdef kf_reader reader = kf_reader_of(plain.out.data, plain.out.size)
    cdef int64_t count = kf_message_count(reader)
    cdef Records records
    cdef kf_message inner
    cdef Py_ssize_t i = 0
    if count < 0:
        raise batch.corrupt("holds a malformed message set")
    if count == 0:
        raise batch.corrupt("is compressed, but holds no message")
    batch.check_places(plain.out.size, count, max_size)
    records = new_records(plain, plain.out.data, plain.out.size, count)
    while kf_left(&reader) != 0:
        kf_message_read(&reader, plain.out.data, &inner)
        if inner.magic != outer.magic:
            raise batch.corrupt(f"of format v{outer.magic} holds a message of v{inner.magic}")
        if inner.attributes & KF_ATTRIBUTE_CODEC != 0:
            raise batch.corrupt("holds a message that is compressed once more")
        if check_crc and inner.crc != crc_of(plain.out.data + inner.pos, inner.size):
            raise batch.corrupt(f"holds a message with a wrong CRC (message {i} of {count})")
        fill_span(&records.spans[i], &inner)
        i += 1
    place(batch, records, outer)
    return records


cdef uint32_t crc_of(const uint8_t* data, int32_t size):
    return crc32(PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ))


cdef void fill_span(kf_span* span, kf_message* message) noexcept nogil:
    span.offset = message.offset
    span.timestamp = message.timestamp
    span.key_pos = message.key_pos
    span.key_len = message.key_len
    span.value_pos = message.value_pos
    span.value_len = message.value_len
    span.headers_pos = 0
    span.header_count = 0


cdef int place(RecordBatch batch, Records records, kf_message* outer) except -1:
    """Turn inner offsets into log offsets, and apply the broker's timestamp if there is one."""
    cdef Py_ssize_t i
    cdef int64_t last = records.spans[records.count - 1].offset
    cdef int64_t base = 0
    if outer.magic == 1:
        for i in range(records.count):
            if outer.attributes & KF_ATTRIBUTE_LOG_APPEND_TIME != 0:
                records.spans[i].timestamp = outer.timestamp
        # Some producers leave the outer offset 0; it then has no meaning.
        if outer.offset != 0:
            if last < 0 or last > outer.offset:
                raise batch.corrupt(f"holds messages up to offset {last}, beyond its own")
            base = outer.offset - last
    last = -1
    for i in range(records.count):
        if records.spans[i].offset <= last:
            raise batch.corrupt("holds messages whose offsets do not rise")
        last = records.spans[i].offset
        records.spans[i].offset += base
    return 0
