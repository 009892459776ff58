"""Murmur2 as Kafka's default partitioner uses it."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef extern from "kf_murmur2.h" nogil:
    uint32_t kf_murmur2(const uint8_t* data, size_t len)
    int32_t kf_partition_for_key(const uint8_t* key, size_t len, int32_t partition_count)


def murmur2(object data not None) -> int:
    """Return the hash of `data` as Java's int: negative for half of all keys."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    cdef uint32_t hashed = kf_murmur2(<const uint8_t*>view.buf, <size_t>view.len)
    PyBuffer_Release(&view)
    return <int32_t>hashed


def partition_for_key(object key not None, int32_t partition_count) -> int:
    """Return the partition that every Kafka client with the default partitioner gives to `key`."""
    cdef Py_buffer view
    if partition_count < 1:
        raise ValueError(f"a topic has at least one partition, not {partition_count}")
    PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
    cdef int32_t partition = kf_partition_for_key(
        <const uint8_t*>view.buf, <size_t>view.len, partition_count
    )
    PyBuffer_Release(&view)
    return partition
