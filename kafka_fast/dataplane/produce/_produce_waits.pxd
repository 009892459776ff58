"""What a producer's callers wait for: the fate of their records, and room in buffer.memory."""

from kafka_fast.dataplane.core.state cimport kf_producer
from kafka_fast.dataplane.produce._queues cimport Queues


cdef class ProduceWaits:
    cdef Queues queues
    cdef kf_producer* producer  # that of the queues

    cdef tuple oldest(self)
    cpdef bint has_room(self, size_t size) noexcept
    cpdef str no_room(self, str topic)
    cpdef say_no_room(self, str topic, double max_block)
    cpdef no_room_error(self, str topic, double max_block, double since)
