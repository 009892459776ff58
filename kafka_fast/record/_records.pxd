"""Records as spans, which the consumer's columns and Arrow read too.

A reader of `Records.spans` and `Records.base` need not check anything again: the scan has checked
everything except the UTF-8 of header names.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from kafka_fast.record._layout cimport kf_span


cdef class Record:
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp_ms
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers

    cdef tuple parts(self)


cdef class Records:
    cdef object owner         # holds `base`: the batch's BatchBytes, or the decompressed bytes
    cdef const uint8_t* base  # positions in the spans count from here
    cdef size_t size          # bytes at `base`
    cdef kf_span* spans       # owned; `count` of them
    cdef Py_ssize_t count

    cdef object key_at(self, Py_ssize_t index)
    cdef object value_at(self, Py_ssize_t index)
    cdef tuple headers_at(self, Py_ssize_t index)
    cdef Py_ssize_t headers_size_at(self, Py_ssize_t index) noexcept  # bytes from headers_pos on
    cdef Record record_at(self, Py_ssize_t index)


# Return Records with room for `count` spans, which the caller fills at once.
cdef Records new_records(object owner, const uint8_t* base, size_t size, Py_ssize_t count)

# Return `count` headers; the scan has checked that they stand in these bytes.
cdef tuple read_headers(const uint8_t* data, size_t size, int32_t count)
