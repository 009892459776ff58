"""Counts of failures, by topic."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.state cimport kf_batch


cdef class LossCounts:
    cdef dict records        # topic -> how many of its records
    cdef kf_batch* batch     # that of the first of them, referenced; NULL: there was none
    cdef object error        # the first one's error, where it was in no batch

    # Count records of a topic. The batch holds one of them; where it is NULL, `error` is theirs.
    cdef int add(self, str topic, int64_t count, kf_batch* batch, object error) except -1

    # Count what `others` count.
    cdef int add_all(self, LossCounts others) except -1

    # Count so many records of a topic no longer.
    cdef int remove(self, str topic, int64_t count) except -1

    cdef void take_first(self, kf_batch* batch, object error) noexcept
    cdef void forget_first(self) noexcept
