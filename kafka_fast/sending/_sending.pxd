"""`send` in an event loop."""

from kafka_fast.sending._accumulator cimport Accumulator


cdef class AsyncSender:
    cdef Accumulator accumulator  # where records go
    cdef object spare_call        # a SendCall that has ended; None: none has
    cdef int left                 # sends until the clock is read again
    cdef bint runs_users_code     # each send runs code of the user's: it is a coroutine
    cdef public int in_line       # sends that wait for room
    cdef public size_t wanted     # bytes of buffer.memory that they need, about
    cdef readonly object _origin  # allocated with the producer: tracemalloc names its line by it

    cdef bint is_share_over(self) noexcept
    cdef bint has_room_for_all(self) noexcept
    cdef bint may_send(self) noexcept
