"""One loop over the records of a consumer."""


from kafka_fast.records._consumer_record cimport ConsumerRecord
from kafka_fast.records._consumer_records cimport RecordIterator


cdef class RecordLoop:
    cdef RecordIterator records  # shared by all loops of one consumer
    cdef void* frame             # whose `for` statement runs this loop; not owned; NULL: not known
    cdef int interruptions       # of `records`, when the latest record was asked for
    cdef bint has_begun          # a record was asked for

    cdef bint is_undisturbed(self) noexcept
    cpdef bint begin_next(self) noexcept
    cpdef ConsumerRecord take_next(self)
