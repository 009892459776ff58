"""Which batches of a chunk belong to aborted transactions, for `isolation.level=read_committed`.

A Fetch answer lists the aborted transactions that touch it: producer id and first offset. From
that offset on the producer's transactional batches are dropped, up to the control batch that ends
the transaction. Nothing else about the list is relied on: brokers send it out of order, with pairs
twice, and with producers that do not occur. A control batch may end a transaction that is not
listed, because it had no records. To miss an end would drop the producer's committed records for
ever.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafka_fast.dataplane.fetch._chunk cimport Chunk


@cython.final
cdef class AbortedTransactions:
    """The aborted transactions of one chunk, as its batches are read one after the other."""

    cdef bint cover(self, int64_t producer_id, int64_t last_offset) except -1:
        self.begin_until(last_offset)
        return producer_id in self.under_way

    cdef int end(self, int64_t producer_id, int64_t last_offset) except -1:
        self.begin_until(last_offset)
        self.under_way.discard(producer_id)
        return 0

    cdef int begin_until(self, int64_t last_offset) except -1:
        """Move transactions that begin at `last_offset` or below from `to_come` to `under_way`."""
        while self.to_come:
            first_offset, producer_id = self.to_come[len(self.to_come) - 1]
            if first_offset > last_offset:
                break
            self.under_way.add(producer_id)
            self.to_come.pop()
        return 0


cdef AbortedTransactions aborted_in(Chunk chunk):
    cdef AbortedTransactions made
    cdef int32_t i
    if chunk.chunk.aborted_count == 0:
        return None
    made = AbortedTransactions.__new__(AbortedTransactions)
    made.under_way = set()
    made.to_come = sorted([
        (chunk.chunk.aborted[i].first_offset, chunk.chunk.aborted[i].producer_id)
        for i in range(chunk.chunk.aborted_count)
    ], reverse=True)
    return made
