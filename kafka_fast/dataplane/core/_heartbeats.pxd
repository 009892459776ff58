"""Heartbeats: requests that the data plane sends every period."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link, kf_request
from kafka_fast.dataplane.core.commands cimport kf_send_between
from kafka_fast.dataplane.core.structs cimport kf_heartbeat


# Begin to send a heartbeat, which the data plane owns from here on. Another of its token ends.
cdef void start_heartbeats(sender_state* state, kf_heartbeat* heartbeat,
                           double now) noexcept nogil

# End heartbeats; an answer that is still to come is swallowed.
cdef void stop_heartbeats(sender_state* state, int64_t token) noexcept nogil
cdef void stop_all_heartbeats(sender_state* state) noexcept nogil

# Send another request once as soon as nothing of its heartbeats is in flight. It is dropped if an
# answer that the control plane had not seen has gone up, or goes up before the request is sent.
cdef void send_between(sender_state* state, kf_send_between* command) noexcept nogil

# Queue what is due; if the user is stuck, end all heartbeats.
cdef void send_heartbeats(sender_state* state, double now) noexcept nogil

# The link was closed: the heartbeats that went over it end.
cdef void lose_heartbeats(sender_state* state, const kf_link* link, int reason) noexcept nogil

# Whether heartbeats go over the link.
cdef bint has_heartbeats(const sender_state* state, int32_t link_id) noexcept nogil

# When send_heartbeats has something to do; 0: never.
cdef double heartbeat_deadline(sender_state* state) noexcept nogil

# Take the answer to a heartbeat, its correlation id included. Returns the token under which it is
# to go up, or 0: nobody needs it.
cdef int64_t handle_heartbeat(sender_state* state, const kf_request* request, const uint8_t* frame,
                              int64_t size, double now) noexcept nogil
