"""The data plane's lists of queues, and the state that one of its turns leaves to the next."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core.link cimport kf_link
from kafka_fast.dataplane.core.state cimport kf_heartbeat, kf_plane, kf_producer, kf_queue


ctypedef struct sender_state:
    kf_plane* plane
    kf_link* links            # the open ones
    kf_heartbeat* heartbeats  # those that are being sent
    int wake_level            # after a step: who may end the sleep, enum kf_wake_level


# The open link of this id, or NULL.
cdef kf_link* find_link(sender_state* state, int32_t link_id) noexcept nogil

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
