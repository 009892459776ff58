"""Timestamps of a batch's records, read from the spans without a Python object per record."""

from libc.stdint cimport int64_t

from kafka_fast.record._records cimport Records


def timestamp_range(Records records not None) -> tuple[int, int]:
    """Return the smallest and the largest timestamp of at least one record, Unix ms."""
    if records.count == 0:
        raise ValueError("no records")
    cdef int64_t low = records.spans[0].timestamp
    cdef int64_t high = low
    cdef int64_t timestamp
    cdef Py_ssize_t i
    for i in range(records.count):
        timestamp = records.spans[i].timestamp
        low = min(low, timestamp)
        high = max(high, timestamp)
    return low, high


def first_reaching(Records records not None, int64_t timestamp) -> tuple[int, int] | None:
    """Return (offset, timestamp) of the first record at `timestamp` or later, or None."""
    cdef Py_ssize_t i
    for i in range(records.count):
        if records.spans[i].timestamp >= timestamp:
            return records.spans[i].offset, records.spans[i].timestamp
    return None
