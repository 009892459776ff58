"""From queues to requests."""

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link


# Whether a request may be built now: there is something to send, and the window has room.
cdef bint may_drain(sender_state* state, kf_link* link, double now) noexcept nogil
# Build requests from what is ready while the link's window has room.
cdef void drain(sender_state* state, kf_link* link, double now) noexcept nogil
