"""Requests of the steady-state form of Fetch."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link, kf_request
from kafka_fast.dataplane.core.structs cimport kf_fetcher, kf_stream


# Whether the stream is to be fetched over this link now.
cdef bint is_fetched(kf_stream* stream, const kf_link* link) noexcept nogil

# Put the streams that are fetched over this link into `fetcher.scratch`; return how many, or -1:
# out of memory.
cdef int32_t gather_streams(kf_fetcher* fetcher, const kf_link* link) noexcept nogil

# Build the next request of the link's session for the `count` gathered streams; NULL: out of
# memory.
cdef kf_request* build_fetch(sender_state* state, kf_link* link, int32_t count,
                             int32_t max_bytes) noexcept nogil
