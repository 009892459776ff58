"""What failures and long waits say of their causes."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.dataplane.core.state cimport kf_batch

# The error behind the failure of a batch, for one record.
cdef object cause_of(kf_batch* batch, Queues queues, str topic, int32_t partition)

# Say in the log what is waited for, once that has become long. Called after each slice of the wait,
# with what it returned the last time (None at first).
cdef object say_waiting(Queues queues, object wait, str what, kf_batch* batch)

# Say that this has been waited for long; it goes on when something is delivered.
cdef int say_long(Queues queues, str what) except -1

# What a wait in vain raises. `batch`: that was waited for; NULL: whatever was accepted first.
cdef object late(Queues queues, str what, kf_batch* batch, double since)
