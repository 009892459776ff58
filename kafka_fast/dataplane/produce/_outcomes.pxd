"""How a batch leaves a request: in the log, back to its queue, or too late."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.produce._lists cimport sender_state
from kafka_fast.dataplane.produce._produce cimport produce_answer
from kafka_fast.dataplane.core.link cimport kf_link
from kafka_fast.dataplane.core.state cimport kf_batch, kf_queue


# The batch is in the log.
cdef void complete(sender_state* state, kf_batch* batch, const produce_answer* answer,
                   double now) noexcept nogil

# A batch came back without success: freeze its queue. `answer` is NULL if there was none. Post the
# event that tells of the failure, then call `report`.
cdef void come_back(sender_state* state, kf_batch* batch,
                    const produce_answer* answer) noexcept nogil

# Ask the control plane to judge the queue, if it is frozen and nothing of it is in flight.
cdef void report(sender_state* state, kf_queue* queue) noexcept nogil

# Place the queues that have news; report frozen ones if they can be judged now.
cdef void read_inbox(sender_state* state, double now) noexcept nogil

# Fail the batches that are older than delivery.timeout.ms.
cdef void expire(sender_state* state, double now) noexcept nogil

# Send nothing over the link for `throttle_ms`, as the broker asks (KIP-219); 0: it does not ask.
cdef void mute(sender_state* state, kf_link* link, int32_t throttle_ms, double now) noexcept nogil
