"""The records of a poll."""

from kafka_fast.record._arrow_structs cimport kf_part
from kafka_fast.record._slices cimport RecordSlice
from kafka_fast.records._consumer_record cimport ConsumerRecord


cdef class ConsumerRecords:
    cdef list slices          # of RecordSlice, none of them empty, by partition
    cdef Py_ssize_t count     # records in all of them
    cdef list starts          # index of each slice's first record; made when first asked for

    cdef Py_ssize_t slice_of(self, Py_ssize_t index) except -1
    cdef list cut(self, Py_ssize_t start, Py_ssize_t stop)
    cdef dict grouped(self)
    cdef list part_column(self, kf_part which)      # keys or values
    cdef list number_column(self, bint timestamps)  # or offsets


cdef class RecordIterator:
    cdef readonly ConsumerRecords records
    cdef object refill            # None: these are all
    cdef RecordSlice part         # the slice that is being iterated; None at first
    cdef Py_ssize_t next_slice
    cdef Py_ssize_t index         # of the next record, within `part`
    cdef Py_ssize_t end
    cdef Py_ssize_t before        # records of the slices in front of `part`
    # A consumer has one of these for all its loops. The two loops are compared, never used.
    cdef void* holder             # the loop that has the latest record; NULL: none
    cdef void* asker              # whose next record needs no attention; NULL: nobody's
    cdef readonly bint is_left    # the latest record's loop has ended without an exception
    cdef int interruptions        # how often `interrupt` was called

    cpdef bint has_next(self) noexcept
    cdef ConsumerRecord take(self)
    cdef int advance(self) except -1


cdef ConsumerRecords new_consumer_records(list slices)
cdef ConsumerRecord record_at(RecordSlice part, Py_ssize_t index)
