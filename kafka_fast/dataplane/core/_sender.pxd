"""The data plane's turn."""

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.state cimport kf_plane


cdef void sender_init(sender_state* state, kf_plane* plane) noexcept nogil

# Close what links are left, and free what the sender owns itself.
cdef void sender_destroy(sender_state* state) noexcept nogil

# Carry out commands, read, expire, drain, write. Returns when to be called again at the latest
# (monotonic seconds; 0: only when woken). Never blocks, calls no clock.
cdef double turn_plane(sender_state* state, double now) noexcept nogil
