"""From queues to requests."""

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link


# Build requests from what is ready while the link's window has room.
cdef void drain(sender_state* state, kf_link* link, double now) noexcept nogil
