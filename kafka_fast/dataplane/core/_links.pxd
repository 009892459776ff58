"""What the data plane does with a link: read and understand, write, close."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link


# Read what is there and handle its frames. False: the link was closed.
cdef bint receive(sender_state* state, kf_link* link, double now) noexcept nogil

# Write what can be written. False: the link was closed.
cdef bint flush_out(sender_state* state, kf_link* link, double now) noexcept nogil

# Close the link and hand back its batches and requests. After this nothing refers to the link.
cdef void close_link(sender_state* state, kf_link* link, int reason, int64_t detail,
                     double now) noexcept nogil
