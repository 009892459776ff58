"""What `async for record in consumer` iterates over."""

from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.records._record_loop cimport RecordLoop


cdef class AsyncRecords(RecordLoop):
    cdef object wait             # returns a coroutine that waits, and returns the next record
    cdef DataPlane plane         # knows the time
