"""What `async for record in consumer` iterates over: one record after the other, without end.

    __anext__ ─► NextRecord ─┬─► the next record of the poll, at once
                             ├─► `begin`: for the first record of a loop
                             └─► `wait`: the next poll, or a turn for the loop's other tasks

Thread: that of an event loop.
"""

cimport cython

from kafka_fast.dataplane.core._loop_share cimport share_is_over
from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.core._ready_call cimport ReadyCall, send_in_steps
from kafka_fast.dataplane.fetch._consumer_records cimport RecordIterator


@cython.final
cdef class AsyncRecords:
    """An asynchronous iterator over records.

    Args:
        records: The records that were taken, and are not reached yet.
        begin: Returns a coroutine that begins the loop, and returns its first record.
        wait: Returns a coroutine that waits, and then returns the next record.
        plane: Knows the time.
    """

    def __init__(self, RecordIterator records not None, object begin, object wait,
                 DataPlane plane not None):
        self.records = records
        self.first = begin
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
        if own.first is not None:
            self.rest = own.first()
            own.first = None
            return None
        if (own.records.has_next()
                and not share_is_over(own.plane.plane.env.now(own.plane.plane.env.context))):
            return next(own.records)
        self.rest = own.wait()
        return None

    cdef int drop(self) except -1:
        self.records = None
        return 0


send_in_steps(NextRecord)
