"""Partitions of many keys at once, as the default partitioner chooses them.

Thread: the caller's; the GIL is free while keys are hashed.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.sending.bulk._column cimport Column, kf_column_get

from kafka_fast.sending.bulk._arrow import arrow_columns

cdef extern from "kf_murmur2.h" nogil:
    int32_t kf_partition_for_key(const uint8_t* key, size_t len, int32_t partition_count)


def partitions_of_columns(keys, int32_t partitions):
    """Return int32 numbers as bytes, one for each key of an Arrow array or stream; -1 for null."""
    cdef Column column
    cdef int64_t size, i
    cdef int64_t total = 0
    cdef const uint8_t* key
    cdef list columns = arrow_columns(keys, "keys")
    for column in columns:
        total += column.count
    cdef bytes found = PyBytes_FromStringAndSize(NULL, 4 * total)
    cdef int32_t* at = <int32_t*>PyBytes_AS_STRING(found)
    for column in columns:
        with nogil:
            for i in range(column.count):
                key = kf_column_get(&column.raw, i, &size)
                at[i] = -1 if key == NULL else kf_partition_for_key(key, <size_t>size, partitions)
        at += column.count
    return found
