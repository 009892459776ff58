"""What became of the records of ended batches, and who is told."""

from libc.stdint cimport int32_t, int64_t

from kafka_fast.dataplane.core.state cimport kf_batch
from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.sending._awaiting cimport BatchWaits, LoopWaits, Waiter


# Have `callback(error, metadata)` called once the record's fate is known. With `holds` the callback
# takes over the handle that KF_HOLD_HANDLE has counted. Without `holds` the callback must keep the
# batch itself.
cdef int observe(Queues queues, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                 object callback, bint holds) except -1

# The same for a record without a handle, appended with KF_HOLD_HANDLE.
cdef int observe_alone(Queues queues, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                       object callback) except -1

# A callback of several records that is called with each part of them that ends: their batch may be
# split. It is called once more for nothing now and then.
cdef class PartObserver:
    pass

# Have `callback(…)` called once the fate of all these records is known, or of each part of them for
# a PartObserver. The arguments mean nothing. The callback keeps the batch.
cdef int observe_records(Queues queues, kf_batch* batch, int32_t index, int32_t records,
                         object callback) except -1

# Give up `count` of the batch's handles, `seen` of them after they were read.
cdef int drop_holds(kf_batch* batch, int32_t count, int32_t seen) except -1

# What the loop awaits of the batch. It is made on first use, which also has the batch sent.
cdef BatchWaits waits_of(LoopWaits loop, kf_batch* batch)

# What the running event loop's task waits for until the batch has ended; `awaited` must keep it.
cdef Waiter waiter_for(Queues queues, kf_batch* batch, object awaited)

# Metadata of a delivered record, whose batch was not split.
cdef object metadata_of(kf_batch* batch, Queues queues, int32_t index, int64_t timestamp_ms)

# (error or None, metadata) of a record whose batch has ended.
cdef tuple outcome_of(kf_batch* batch, Queues queues, int32_t index, int64_t timestamp_ms)

# The DeliveryError of a batch that has failed, as the record at this index has it; by default the
# one that tells most.
cdef object failure_of(kf_batch* batch, Queues queues, int32_t index=*)

# Whether a batch that was not split has failed, and the user was not told so at the shut-down.
cdef bint has_failed_untold(Queues queues, kf_batch* batch) noexcept

# Note that somebody learns of the outcome of `count` records of the batch that they were appended
# to, or will; once that batch is counted: of failed ones.
cdef int tell(Queues queues, kf_batch* batch, int32_t count) except -1

# Count failures whose handle a finalizer has dropped. The batch was not split; NULL: the records
# are in none, and `error` is theirs.
cdef int add_late(Queues queues, kf_batch* batch, object error, int64_t count) except -1
