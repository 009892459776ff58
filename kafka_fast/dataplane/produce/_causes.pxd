"""What failures and long waits say of their causes."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.dataplane.core.state cimport kf_batch

# The error behind the failure of a batch, for one record.
cdef object cause_of(kf_batch* batch, Queues queues, str topic, int32_t partition)

# Log what is waited for, once the wait has become long. Call this after each slice of the wait,
# with what it returned the last time (None at first).
cdef object say_waiting(Queues queues, object wait, str what, kf_batch* batch)

# Log that a call has waited long for memory, which comes back when batches are delivered.
cdef int say_long(Queues queues, str what) except -1

# The error of a wait that was too long. `batch`: what it waited for; NULL: for the oldest batch.
cdef object late(Queues queues, str what, kf_batch* batch, double since)
