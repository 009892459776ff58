"""What `async for record in consumer` iterates over: one record after the other, without end.

    __anext__ ─► NextRecord ─┬─► the next record of the poll, at once
                             └─► `wait`: the first record, the next poll, a record that needs
                                 attention, or a turn for the event loop's other tasks

Thread: that of an event loop.
"""

cimport cython

from kafka_fast.dataplane.core._loop_share cimport share_is_over
from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.core._ready_call cimport ReadyCall, send_in_steps
from kafka_fast.records._consumer_records cimport RecordIterator
from kafka_fast.records._record_loop cimport RecordLoop

from kafka_fast._hints import name_type, refuse_new, refused_new


@cython.final
cdef class AsyncRecords(RecordLoop):
    """The asynchronous iterator of one loop.

    Args:
        records: what all loops of the consumer take their records from.
        wait: is given this iterator. Returns a coroutine that waits, and then returns the next
            record, by `take_next`.
        frame: the frame whose `async for` statement runs this loop; None: not known.
        plane: knows the time.
    """

    def __init__(self, RecordIterator records not None, object wait=None, object frame=None,
                 DataPlane plane=None):
        if plane is None:
            refused_new(AsyncRecords)
        RecordLoop.__init__(self, records, frame)
        self.wait = wait
        self.plane = plane

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef NextRecord call = NextRecord.__new__(NextRecord)
        call.records = self
        return call


@cython.final
cdef class NextRecord(ReadyCall):
    """The coroutine of one `__anext__`."""

    cdef AsyncRecords records

    cdef object begin(self):
        cdef AsyncRecords own = self.records
        if own is None:
            raise TypeError("NextRecord is made by AsyncRecords")
        if (own.is_undisturbed() and own.records.has_next()
                and not share_is_over(own.plane.plane.env.now(own.plane.plane.env.context))):
            return own.records.take()
        self.rest = own.wait(own)
        return None

    cdef int drop(self) except -1:
        self.records = None
        return 0


send_in_steps(NextRecord)
name_type(AsyncRecords, "kafka_fast.aio")
refuse_new(AsyncRecords, "a loop is begun by aiter(consumer)")
name_type(NextRecord, "kafka_fast.aio")
