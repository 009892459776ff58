"""Answers to the steady-state form of Fetch."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link
from kafka_fast.dataplane.core.structs cimport kf_frame


# What an answer came to, for the pace of the next fetch.
ctypedef struct fetch_outcome:
    bint brought             # records, for somebody who wants them
    int32_t throttle_ms

# Take the answer to the Fetch in flight. False: it is malformed, or no answer to that request.
cdef bint answer_fetch(sender_state* state, kf_link* link, kf_frame* frame,
                       fetch_outcome* outcome) noexcept nogil
