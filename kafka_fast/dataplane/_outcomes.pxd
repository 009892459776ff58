"""How a batch leaves a request: in the log, back to its queue, or too late."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane._lists cimport sender_state
from kafka_fast.dataplane._produce cimport produce_answer
from kafka_fast.dataplane.state cimport kf_batch, kf_event, kf_queue, kf_row


# The batch is in the log.
cdef void complete(sender_state* state, kf_batch* batch, const produce_answer* answer,
                   double now) noexcept nogil

# A batch came back without success: freeze its queue and add a row to the event. `answer` is
# NULL if there was none.
cdef void come_back(sender_state* state, kf_event* event, kf_batch* batch,
                    const produce_answer* answer) noexcept nogil

# Say in `row` where the queue, and the batch if it is not NULL, stand.
cdef void fill_row(kf_row* row, kf_queue* queue, const kf_batch* batch) noexcept nogil

# Fail the batches that are older than delivery.timeout.ms.
cdef void expire(sender_state* state, double now) noexcept nogil
