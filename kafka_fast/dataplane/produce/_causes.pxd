"""What failures and long waits say of their causes."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.dataplane.core.state cimport kf_batch

# The error behind the failure of a batch, for one record.
cdef object cause_of(kf_batch* batch, Queues queues, str topic, int32_t partition)

# Log what is waited for, once the wait has become long. Call this after each slice of the wait,
# with what it returned the last time (None at first).
cdef object say_waiting(Queues queues, object wait, str what, kf_batch* batch)

# The error of a wait for a batch that was too long.
cdef object late(Queues queues, str what, kf_batch* batch, double since)
