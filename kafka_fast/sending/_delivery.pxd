"""What a caller keeps of a record that was sent."""

from libc.stdint cimport int32_t, int64_t

from kafka_fast.dataplane.core.state cimport kf_batch
from kafka_fast.dataplane.produce._queues cimport Queues


# 32 bytes, because a caller may keep a million handles. A handle also holds a reference to its
# Queues, which it finds through the batch.
cdef class DeliveryFuture:
    cdef kf_batch* batch         # held by its `handles` count
    cdef int32_t place           # twice the index within the batch; plus 1 once the outcome was
    #                              read, or a callback will be told
    cdef int32_t delay           # ms from the batch's first timestamp to the record's, or FAR


# A handle for a record that was appended with KF_HOLD_HANDLE.
cdef DeliveryFuture new_delivery(Queues queues, kf_batch* batch, int32_t index,
                                 int64_t timestamp_ms)

# Register a callback beside the handle.
cdef int observe_beside(DeliveryFuture future, object callback) except -1

# Wait without the GIL until the fate of some records of the batch is known; False when `deadline`
# (monotonic; 0: never) has passed.
cdef bint wait_for(Queues queues, kf_batch* batch, int32_t index, int32_t count,
                   double deadline) except -1
