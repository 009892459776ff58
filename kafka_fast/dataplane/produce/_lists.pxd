"""The lists of queues: which of them have something to send, and when."""

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link
from kafka_fast.dataplane.core.state cimport kf_producer, kf_queue


# Whether everything is to go out now: a flush, or callers blocked for memory.
cdef bint is_pressed(kf_producer* producer) noexcept nogil

# Take the queue out of the list that it stands in, if any.
cdef void unlink(sender_state* state, kf_queue* queue) noexcept nogil

# Put the queue into the list where it belongs now.
cdef void place(sender_state* state, kf_queue* queue, double now) noexcept nogil

# Move the lingering queues that are due to the ready ones.
cdef void promote(sender_state* state, kf_link* link, double now) noexcept nogil

# Report the queues that have data and no link, each once until it is routed.
cdef void ask_for_routes(sender_state* state) noexcept nogil
