"""What a caller keeps of a bulk call."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport realloc

from kafka_fast.dataplane.core.state cimport kf_batch, kf_batch_ref
from kafka_fast.dataplane.produce._queues cimport Queues


# Records of one call that stand in a row in one batch. A position counts the records of the call in
# the order in which they were appended.
ctypedef struct batch_slice:
    kf_batch* batch  # one reference
    int64_t first    # position of the first of them
    int32_t index    # of that one within the batch
    int32_t count    # of the records


# A growing array of slices.
ctypedef struct slice_list:
    batch_slice* items
    Py_ssize_t count
    Py_ssize_t capacity


# Make room for one more slice; False if there is no memory.
cdef inline bint reserve_slice(slice_list* slices) noexcept nogil:
    cdef Py_ssize_t capacity
    cdef void* items
    if slices.count < slices.capacity:
        return True
    capacity = 2 * slices.capacity + 8
    items = realloc(slices.items, capacity * sizeof(batch_slice))
    if items == NULL:
        return False
    slices.items = <batch_slice*>items
    slices.capacity = capacity
    return True


# The batch of the last slice: kf_queue_append_run takes no second reference to it.
cdef inline kf_batch* last_batch(const slice_list* slices) noexcept nogil:
    return slices.items[slices.count - 1].batch if slices.count > 0 else NULL


# Note a run of records; room for a slice is reserved, `last` is what last_batch said before.
cdef inline void add_run(slice_list* slices, kf_batch* last, kf_batch* batch, int32_t index,
                         int32_t count, int64_t position) noexcept nogil:
    cdef batch_slice* item
    if batch == last:
        item = &slices.items[slices.count - 1]
        if index == item.index + item.count and position == item.first + item.count:
            item.count += count
            return
        kf_batch_ref(batch)
    item = &slices.items[slices.count]
    slices.count += 1
    item.batch = batch
    item.first = position
    item.index = index
    item.count = count


cdef class BatchFuture:
    cdef Queues queues           # where the records went
    cdef slice_list slices       # where they are, in the order of appending
    cdef Py_ssize_t ended        # slices before this one have ended
    cdef uint32_t* rows          # row by position; NULL: rows and positions are the same
    cdef list refused            # (position, count, DeliveryError) of records in no batch
    cdef object refusal          # why no further row was accepted, or None
    cdef int64_t record_count    # of the call, refused ones included
    cdef int64_t timestamp_ms    # of all records, unless `timestamps` has each row's
    cdef int64_t* timestamps     # by row; NULL: all rows have the same, or no callback needs them
    cdef bint seen               # the outcome was read, or a callback will be told
    cdef list in_loops           # (callback, context) that loops will call; None: there were none

    cdef int64_t row_of(self, int64_t position) noexcept
    cdef int refuse(self, int64_t position, int64_t count, object error) except -1
    cdef int mark_seen(self) except -1
    cdef int urge(self) except -1
    cdef bint wait_all(self, timeout) except -1
    cdef int when_done(self, object callback) except -1
    cdef int deliver_each(self, object on_delivery) except -1


cdef BatchFuture new_batch_future(Queues queues)
