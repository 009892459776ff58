"""`send` in an event loop."""

from kafka_fast.dataplane.produce._accumulator cimport Accumulator


cdef class AsyncSender:
    cdef Accumulator accumulator  # where records go
    cdef bint runs_users_code          # each send runs code of the user's: it is a coroutine
    cdef readonly object _origin  # allocated with the producer: tracemalloc names its line by it
