"""Which batches of a chunk belong to aborted transactions."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.fetch._chunk cimport Chunk


cdef class AbortedTransactions:
    cdef list to_come   # (first offset, producer id), the lowest last
    cdef set under_way  # producers whose transactional records are to be dropped

    # Whether the records of a transactional batch are to be dropped. Batches come by offset.
    cdef bint cover(self, int64_t producer_id, int64_t last_offset) except -1

    cdef int begin_until(self, int64_t last_offset) except -1

    # A control batch of the producer has ended its transaction, one way or the other.
    cdef int end(self, int64_t producer_id, int64_t last_offset) except -1


# What a chunk says of aborted transactions; None if that is nothing.
cdef AbortedTransactions aborted_in(Chunk chunk)
