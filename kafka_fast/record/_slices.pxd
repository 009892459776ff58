"""Slices: ranges of records in a batch, with the partition that the records come from."""

from libc.stdint cimport int8_t, int32_t, int64_t

from kafka_fast.record._records cimport Records


# What the records of a batch have in common. An Origin pins no buffer, so each record may keep one.
cdef class Origin:
    cdef str topic
    cdef int32_t partition
    cdef int32_t leader_epoch      # of the batch; -1 if it has none
    cdef int8_t timestamp_type     # a TimestampType


# The records of one batch from number `start` to `start + count - 1`.
cdef class RecordSlice:
    cdef Origin origin
    cdef Records records
    cdef Py_ssize_t start
    cdef Py_ssize_t count
    cdef int64_t next_offset       # where a reader goes on after the slice
    cdef list key_objects          # deserialized keys; None without a deserializer
    cdef list value_objects

    cdef RecordSlice part(self, Py_ssize_t start, Py_ssize_t count)


cdef Origin new_origin(str topic, int32_t partition, int32_t leader_epoch, int8_t timestamp_type)
cdef RecordSlice new_slice(Origin origin, Records records, Py_ssize_t start, Py_ssize_t count,
                           int64_t next_offset)
