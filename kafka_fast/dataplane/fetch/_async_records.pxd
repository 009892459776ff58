"""What `async for record in consumer` iterates over."""

from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.fetch._consumer_records cimport RecordIterator


cdef class AsyncRecords:
    cdef RecordIterator records  # those that were taken, and are not reached yet
    cdef object first            # returns a coroutine that begins the loop; None: it has begun
    cdef object wait             # returns a coroutine that waits, and returns the next record
    cdef DataPlane plane         # knows the time
