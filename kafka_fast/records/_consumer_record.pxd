"""One record as a consumer hands it out."""

from libc.stdint cimport int32_t, int64_t

from kafka_fast.record._records cimport Records
from kafka_fast.record._slices cimport Origin


cdef class ConsumerRecord:
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp_ms
    cdef int32_t key_size          # in the log, before a deserializer; -1: null
    cdef int32_t value_size        # the same of the value
    cdef int32_t header_count
    cdef int32_t index             # within `unread`
    cdef Origin origin             # topic, partition, leader epoch, type of timestamp
    cdef object key_               # UNREAD: still in the batch
    cdef object value_
    cdef object headers_           # a tuple; bytes: as they stand in a record; or UNREAD
    cdef Records unread            # has what is UNREAD, and so pins its buffer; else None

    cdef object read_key(self)
    cdef object read_value(self)


# The record at `index`. Its short parts are copied; the long ones stay in the batch until read.
cdef ConsumerRecord new_record(Origin origin, Records records, Py_ssize_t index)

# Put what deserializers made in place of key or value.
cdef int set_objects(ConsumerRecord record, object key, bint has_key, object value,
                     bint has_value) except -1
