"""What failures and long waits say of their causes."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core.state cimport kf_batch
from kafka_fast.dataplane.produce._queues cimport Queues

cdef enum:
    ANY_RECORD = -1  # in place of a record's index: the error that tells most of the batch

# The error behind the failure of a batch, for the record at this index.
cdef object cause_of(kf_batch* batch, Queues queues, str topic, int32_t partition, int32_t index)

# Whether the record at this index was refused only because of others in its batch.
cdef bint is_collateral(kf_batch* batch, Queues queues, int32_t index) except -1

# The indices of the records for which a batch was refused, as far as the broker has named them.
cdef list wrong_records(kf_batch* batch, Queues queues)

# Log what is waited for, once the wait has become long. Call this after each slice of the wait,
# with what it returned the last time (None at first).
cdef object say_waiting(Queues queues, object wait, str what, kf_batch* batch)

# The error of a wait for a batch that was too long.
cdef object timeout_error(Queues queues, str what, kf_batch* batch, double since)
