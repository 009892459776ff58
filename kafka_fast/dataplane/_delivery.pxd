"""What a caller keeps of a record that was sent."""

from libc.stdint cimport int32_t, int64_t

from kafka_fast.dataplane._awaiting cimport Waiter
from kafka_fast.dataplane._plane cimport DataPlane
from kafka_fast.dataplane.state cimport kf_batch


# 32 bytes: who keeps a million of them pays for the memory most of all. A handle holds its plane,
# too, which it finds by way of the batch.
cdef class DeliveryFuture:
    cdef kf_batch* batch         # held by its `handles` count
    cdef int32_t place           # twice the index within the batch, and 1 once somebody has read
    #                              the outcome, or will be told
    cdef int32_t delay           # ms from the batch's first timestamp to the record's, or FAR


# A handle for a record that was appended with KF_HOLD_HANDLE.
cdef DeliveryFuture new_delivery(DataPlane plane, kf_batch* batch, int32_t index,
                                 int64_t timestamp_ms)

# Have `callback(error, metadata)` called once the record's fate is known. With `holds` the callback
# takes over the hold of a record that was appended with KF_HOLD_HANDLE; without, the callback must
# keep the batch itself.
cdef int observe(DataPlane plane, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                 object callback, bint holds) except -1

# Register a callback beside the handle.
cdef int observe_beside(DeliveryFuture future, object callback) except -1

# (error or None, metadata) of a record whose batch has ended.
cdef tuple outcome_of(kf_batch* batch, DataPlane plane, int32_t index, int64_t timestamp_ms)

# Wait without the GIL until the batch has ended; False when `deadline` (monotonic; 0: never) has
# passed.
cdef bint wait_for(DataPlane plane, kf_batch* batch, double deadline) except -1

# What the running event loop's task waits for until the batch has ended; `awaited` must keep it.
cdef Waiter waiter_for(DataPlane plane, kf_batch* batch, object awaited)

# The DeliveryError of a batch that has failed, as one of its records has it.
cdef object failure_of(kf_batch* batch, DataPlane plane)

# Count failures that nobody can observe any more; `error` is one of them.
cdef int add_lost(DataPlane plane, object error, int64_t count) except -1
