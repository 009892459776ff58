"""Frames that are sent again and again: heartbeats."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane._lists cimport sender_state
from kafka_fast.dataplane.link cimport kf_link, kf_request
from kafka_fast.dataplane.structs cimport kf_command, kf_fetcher, kf_repeat


# Begin to repeat a frame, which the data plane owns from here on. One of the same token is over.
cdef void add_repeat(kf_fetcher* fetcher, kf_repeat* repeat, double now) noexcept nogil

# End a repetition; an answer that is still to come is swallowed.
cdef void stop_repeat(kf_fetcher* fetcher, int64_t token) noexcept nogil

# Send another request once as soon as nothing of its repetition is in flight. It is dropped if an
# answer has gone up, or goes up before it is sent, that the control plane had not heard of.
cdef void interject(kf_fetcher* fetcher, kf_command* command) noexcept nogil

# Queue what is due, and end what has lived long enough.
cdef void send_repeats(sender_state* state, double now) noexcept nogil

# The link was closed: what was repeated over it is over.
cdef void lose_repeats(sender_state* state, const kf_link* link, int reason) noexcept nogil

# Whether a frame is repeated over the link.
cdef bint has_repeat(const kf_fetcher* fetcher, int32_t link_id) noexcept nogil

# When send_repeats has something to do; 0: never.
cdef double repeat_deadline(kf_fetcher* fetcher) noexcept nogil

# Take the answer to a repeated frame, its correlation id included. Returns the token under which it
# is to go up, or 0: nobody needs it.
cdef int64_t handle_repeat(kf_fetcher* fetcher, const kf_request* request, const uint8_t* frame,
                           int64_t size, double now) noexcept nogil
