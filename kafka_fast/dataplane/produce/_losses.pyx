"""Counts of failures, by topic: those that nobody can observe, and those that nobody has read yet.

Any thread may count and take, also in a finalizer. The GIL is their only lock. So each change is a
single step: it runs no Python code, and makes nothing that the garbage collector knows of, because
a collection may run users' code. Whoever has taken counts makes an error of them (`losses_of` in
_observers); that is Python code, of which an interruption leaves the counts whole.

Thread: any, with the GIL.
"""

cimport cython
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.state cimport kf_batch, kf_batch_ref, kf_batch_unref


@cython.final
@cython.no_gc_clear  # a handle that goes with the same garbage may still count
cdef class LossCounts:
    """Records of one producer that failed. It must not outlive the producer's Queues."""

    def __cinit__(self):
        self.records = {}

    cdef int add(self, str topic, int64_t count, kf_batch* batch, object error) except -1:
        before = self.records.get(topic)
        self.records[topic] = count if before is None else count + <int64_t>before
        self.take_first(batch, error)
        return 0

    cdef int add_all(self, LossCounts others) except -1:
        for topic, count in others.records.items():
            self.add(topic, count, others.batch, others.error)
        return 0

    cdef int remove(self, str topic, int64_t count) except -1:
        cdef int64_t left = <int64_t>self.records[topic] - count
        if left > 0:
            self.records[topic] = left
            return 0
        del self.records[topic]
        if not self.records:
            self.forget_first()
        return 0

    cdef void take_first(self, kf_batch* batch, object error) noexcept:
        if self.batch != NULL or self.error is not None:
            return
        if batch != NULL:
            kf_batch_ref(batch)
        self.batch = batch
        self.error = error

    cdef void forget_first(self) noexcept:
        cdef kf_batch* batch = self.batch
        self.batch = NULL
        self.error = None
        if batch != NULL:
            kf_batch_unref(batch)

    def __dealloc__(self):
        if self.batch != NULL:
            kf_batch_unref(self.batch)
