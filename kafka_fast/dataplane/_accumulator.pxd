"""The append path: from a caller's objects to a record in a partition's open batch."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane._partitioner cimport partitioner
from kafka_fast.dataplane._plane cimport DataPlane, Topic
from kafka_fast.dataplane.state cimport kf_batch
from kafka_fast.dataplane.wire cimport kf_record


# The bytes of a key or value, borrowed from the object for one append.
cdef struct borrowed:
    const uint8_t* data  # NULL: null
    int64_t len          # -1: null
    Py_buffer view       # held if `data` came through the buffer protocol
    bint has_view


# Borrow the bytes of bytes, str (as UTF-8), None or any bytes-like object.
cdef int borrow(borrowed* field, object value, str topic, str what) except -1
cdef void give_back(borrowed* field) noexcept

# The headers as they stand in a record, count included; None if there are none.
cdef bytes encode_headers(object headers, str topic)

# The partition's number, which must exist.
cdef int32_t check_partition(Topic topic, object partition) except -1


cdef class Accumulator:
    cdef readonly DataPlane plane
    cdef object last_name        # of the last append: callers stay with a topic for a while
    cdef Topic last_topic        # what that name means
    cdef partitioner how
    cdef object custom_partitioner
    cdef object on_delivery      # of every record, or None
    cdef bint transforms         # serializers are set: values go through `_serialize` first
    cdef double max_block        # seconds

    cdef Topic topic_of(self, object name)
    cdef int wait_for_memory(self, Topic topic, size_t need, double* deadline) except -1
    cdef int append(self, Topic topic, const kf_record* record, object partition,
                    int64_t timestamp_ms, int hold, kf_batch** batch, int32_t* index) except -1
    cdef int add(self, object topic, object value, object key, object partition,
                 object timestamp_ms, object headers, int hold, kf_batch** batch, int32_t* index,
                 int64_t* timestamp) except -1
    cdef int refuse_size(self, Topic topic, const kf_record* record) except -1
