"""The state that one turn of the data plane leaves to the next, and what both sides do with it."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core.link cimport kf_link
from kafka_fast.dataplane.core.state cimport kf_heartbeat, kf_plane


ctypedef struct sender_state:
    kf_plane* plane
    kf_link* links            # the open ones
    kf_heartbeat* heartbeats  # those that are being sent
    int wake_level            # after a turn: who may end the sleep, enum kf_wake_level


# The open link of this id, or NULL.
cdef kf_link* find_link(sender_state* state, int32_t link_id) noexcept nogil

# Send no Produce or Fetch over the link until then, and count no time: its broker reads nothing.
cdef void pause_until(kf_link* link, double until) noexcept nogil

# The same for `throttle_ms`, as the broker asks (KIP-219), which is reported; 0: it does not ask.
cdef void throttle(sender_state* state, kf_link* link, int32_t throttle_ms,
                   double now) noexcept nogil
