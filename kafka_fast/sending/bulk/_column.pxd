"""Columns of a bulk call: values, keys, headers, numbers, from Python's objects or raw buffers."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane.core.state cimport kf_record


cdef extern from "kf_column.h" nogil:
    enum kf_column_layout:
        KF_COLUMN_NULLS
        KF_COLUMN_OFFSETS32
        KF_COLUMN_OFFSETS64
        KF_COLUMN_STRIDED
        KF_COLUMN_PADDED
        KF_COLUMN_VIEWS

    ctypedef struct kf_column:
        int layout
        int64_t start
        const uint8_t* validity
        const void* offsets
        const uint8_t* data
        int64_t width
        int64_t stride
        const void* const* blobs
        const int64_t* blob_sizes
        int64_t blob_count

    ctypedef struct kf_header_column:
        kf_column lists
        kf_column keys
        kf_column values

    bint kf_bit(const uint8_t* bits, int64_t i)
    const uint8_t* kf_column_get(const kf_column* column, int64_t i, int64_t* len)
    int64_t kf_column_check(const kf_column* column, int64_t count, int64_t size)
    int64_t kf_headers_get(const kf_header_column* column, int64_t i, int64_t* count)
    size_t kf_headers_size(const kf_header_column* column, int64_t i)
    uint8_t* kf_put_headers(uint8_t* at, const kf_header_column* column, int64_t i)


# Keys or values: either Python's objects, or bytes in buffers that somebody owns.
cdef class Column:
    cdef object items        # list or tuple; None: `raw` holds
    cdef Py_ssize_t first    # item 0 within `items`
    cdef kf_column raw
    cdef int64_t count       # -1: as many as there are rows (a scalar)
    cdef object owner        # keeps the buffers alive

    cdef Column part(self, int64_t start, int64_t count)
    cdef object item(self, int64_t i)


# A Py_buffer as an object.
cdef class Buffer:
    cdef Py_buffer view
    cdef bint held

    cdef str format(self)
    cdef Py_ssize_t stride(self, int axis) noexcept

cdef Buffer typed_buffer(object source)

cdef Column scalar_column(bytes item)
cdef Column null_column(int64_t count)
cdef Buffer buffer_of(object source, str what)
# Raises UsageError if an item lies outside its buffers.
cdef int check_column(Column column, int64_t size, str what, int64_t first_row=*) except -1
# Columns of keys or values, one after the other, from whatever a caller may pass.
cdef list columns_of(object source, str topic, str what)
