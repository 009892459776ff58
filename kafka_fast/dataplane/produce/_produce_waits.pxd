"""What a producer's callers wait for: the fate of their records, and room in buffer.memory."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.state cimport kf_producer
from kafka_fast.dataplane.produce._queues cimport Queues


# One call's wait for room in buffer.memory.
ctypedef struct room_wait:
    double began     # monotonic seconds; 0: the wait has not begun
    double deadline  # when max.block.ms ends
    double tell_at   # when the log tells of the wait; NEVER once it has


cdef class ProduceWaits:
    cdef Queues queues
    cdef kf_producer* producer  # that of the queues

    cdef double now(self) noexcept
    cdef tuple oldest(self)
    cpdef FlushWait begin_flush(self, double deadline)
    cpdef bint has_room(self, size_t size) noexcept
    cpdef void begin_wait_for_room(self) noexcept
    cpdef void end_wait_for_room(self) noexcept
    cdef void begin_room(self, room_wait* wait, double max_block, double now) noexcept
    cdef double next_look(self, room_wait* wait, str topic, double now) except -1.0
    cdef str no_room(self, str topic)
    cdef object no_room_error(self, const room_wait* wait, str topic)


cdef class FlushWait:
    cdef ProduceWaits waits
    cdef int64_t serial      # of the last batch that it waits for
    cdef double deadline     # monotonic seconds
    cdef object log          # a LongWait; None: the flush has not waited yet

    cpdef bint is_over(self) noexcept
    cpdef double next_look(self) except -1.0


cdef class RoomWait:
    cdef ProduceWaits waits
    cdef room_wait wait
    cdef str topic
