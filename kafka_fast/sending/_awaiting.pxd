"""What event loops wait for."""

from libc.stdint cimport uintptr_t

from kafka_fast.dataplane.core.state cimport kf_batch
from kafka_fast.dataplane.produce._queues cimport Queues


cdef class LoopWaits:
    """Everything that one event loop awaits of one client's queues."""

    cdef readonly object loop
    cdef unsigned long thread  # in which the loop runs
    cdef Queues queues       # whose batches are awaited
    cdef object take         # notes which batches have ended, and hands their waits over
    cdef object wake         # ends the loop's sleep; any thread
    cdef dict open           # address of a batch that has not ended -> its BatchWaits
    cdef BatchWaits last     # of `open`, the one that was used last
    cdef list ended          # BatchWaits whose batch has ended, and which are still to be told
    cdef list parted         # BatchWaits of whose batches only parts have ended, still to be told
    cdef list known          # see run_due; None: none were added since the loop's last iteration
    cdef bint settling       # the loop is awake and will look at `ended` and `parted`
    cdef object __weakref__

    cdef int call_soon(self, object callback, object future, object context) except -1
    cdef BatchWaits find(self, kf_batch* batch)
    cdef BatchWaits add(self, kf_batch* batch)

    # Take note of the end of a batch, or of a part of it; any thread, with the GIL.
    cdef int hand_over(self, BatchWaits waits) except -1
    cdef int hand_over_part(self, BatchWaits waits) except -1

    cdef int take_parts(self, list due) except -1


cdef class BatchWaits:
    """What one event loop awaits of one batch."""

    cdef LoopWaits owner
    cdef uintptr_t address   # of the batch, which may be gone
    cdef dict waiting        # future -> (callback, context, …), or a callback without context
    cdef set given_up        # futures that were cancelled; None: none was

    cdef int add(self, object future, object callback, object context) except -1
    cdef int remove(self, object future, object callback) except -1
    cdef bint cancel(self, object future) except -1
    cdef int tell(self, object future, tuple callbacks) except -1


cdef class Waiter:
    cdef public bint _asyncio_future_blocking  # asyncio's sign of a future that a task awaits
    cdef BatchWaits waits    # what the loop awaits of the batch
    cdef object awaited      # keeps the batch
    cdef bint given_up       # the wait was cancelled


# The event loop that runs in this thread, or None.
cdef object running_loop()

# The same, found faster in a loop that has awaited records of these queues.
cdef object loop_for(Queues queues)

# What a loop awaits that has awaited records of these queues, and runs in this thread; or None.
cdef LoopWaits last_waits(Queues queues)

# What the running event loop awaits of the queues; None outside of event loops.
cdef LoopWaits running_waits(Queues queues)

# What this loop, which runs in this thread, awaits of the queues; None if they were closed.
cdef LoopWaits waits_in(Queues queues, object loop)

# A new waiter for a batch, which `awaited` must keep.
cdef Waiter new_waiter(BatchWaits waits, object awaited)
