"""An Arrow table, array or stream as pieces of rows."""

from libc.stdint cimport int64_t

from kafka_fast.sending.bulk._arrow cimport ArrowColumn, ArrowSource
from kafka_fast.sending.bulk._column cimport Column
from kafka_fast.sending.bulk._rows cimport Numbers, Rows


cdef class Table:
    cdef ArrowSource source  # of record batches
    cdef str topic           # for messages; None: `topics` has each row's
    cdef object value        # number of the column
    cdef object key          # this and the next: number of the column, or None
    cdef object headers
    cdef object partition
    cdef object timestamp
    cdef object topics
    cdef Column topic_names  # of the rows returned last
    cdef int64_t row_count   # returned so far

    cdef Rows next_rows(self)
    cdef str what(self, str role)
    cdef Numbers numbers(self, ArrowColumn whole, object index, str what)


cdef Table open_table(object data, str topic, dict names)
