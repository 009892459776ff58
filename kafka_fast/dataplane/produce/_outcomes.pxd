"""How a batch leaves a request: in the log, back to its queue, or too late."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link, kf_request


# Freeze the queues of the batches that failed, then complete the others. False: the answer does not
# fit the request.
cdef bint answer_produce(sender_state* state, kf_link* link, kf_request* request,
                         const uint8_t* frame, int64_t size, double now) noexcept nogil

# Complete the batches of a request that expects no answer: it is written.
cdef void complete_unanswered(sender_state* state, const kf_request* request,
                              double now) noexcept nogil

# The request's link has closed: its batches come back, and their queues freeze.
cdef void end_produce(sender_state* state, const kf_request* request) noexcept nogil

# Let the queues that went over a link that has closed look for another one.
cdef void unroute(sender_state* state, const kf_link* link, double now) noexcept nogil

# Place the queues that have news; report frozen ones if they can be judged now.
cdef void read_inbox(sender_state* state, double now) noexcept nogil

# Fail the batches that are older than delivery.timeout.ms.
cdef void expire(sender_state* state, double now) noexcept nogil
