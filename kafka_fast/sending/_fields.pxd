"""The parts of a record as callers bring them, and the callback beside them."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues


# The bytes of a key or value, borrowed from the object for one append.
cdef struct borrowed:
    const uint8_t* data  # NULL: null
    int64_t len          # -1: null
    Py_buffer view       # held if `data` came through the buffer protocol
    bint has_view


# Borrow the bytes of bytes, str (as UTF-8), None or any bytes-like object.
cdef int borrow(borrowed* field, object value, str topic, str what) except -1
cdef void give_back(borrowed* field) noexcept

# The end of an error about a key or value of the wrong type: which serializer takes it.
cdef str serializer_for(object value, str what)

# The headers as they stand in a record, count included; None if there are none.
cdef bytes encode_headers(object headers, str topic)

# Refuse a callback that cannot be called: `name` is the argument, `told` what it is called with.
cdef int check_callback(object callback, str name, str told) except -1

# The partition's number, which must exist.
cdef int32_t check_partition(TopicQueues topic, object partition) except -1

# The timestamp in Unix ms; it is given as that, or as a datetime with a time zone. A number that
# must be in another unit is logged, once for the client of `queues`.
cdef int64_t check_timestamp(Queues queues, TopicQueues topic, object timestamp_ms) except? -1

# Log, once for the client of `queues`, that a timestamp is most likely in another unit than ms.
cdef int suspect_time(Queues queues, str topic, int64_t ms) except -1

# Whether a time in ms may be meant in another unit; `likely_unit` of `times` says in which one.
cdef inline bint is_odd_time(int64_t ms) noexcept nogil:
    return (ms >= 94_694_400 and ms < 4_102_444_800LL) or ms >= 94_694_400_000_000LL

# The timestamp in Unix ms of what is no integer. `what` names it in an error.
cdef int64_t time_of(object given, str what) except? -1
