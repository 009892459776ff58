"""The rows of a bulk call: columns of one length, checked before anything is sent."""

from libc.stdint cimport int64_t

from kafka_fast.sending._fields cimport is_odd_time
from kafka_fast.sending.bulk._column cimport Column, kf_header_column


# Integers of n rows; -1 means that none is given.
cdef class Numbers:
    cdef int64_t* items
    cdef int64_t count  # -1: `scalar` is every row's
    cdef int64_t scalar
    cdef int64_t odd    # the first integer that is an odd time (see `is_odd_time`), or 0


# Headers of n rows. At most one of the three is set.
cdef class HeaderColumn:
    cdef bytes scalar          # every row's, encoded
    cdef list encoded          # each row's, encoded, or None
    cdef kf_header_column raw  # each row's in buffers, if `owner` is set
    cdef object owner          # keeps the buffers alive
    cdef int64_t count         # -1: scalar, or none at all

    cdef HeaderColumn part(self, int64_t start, int64_t count)


# Rows that lie in one piece of each column.
cdef class Rows:
    cdef str topic             # for messages
    cdef Column values
    cdef Column keys           # None: no row has one
    cdef HeaderColumn headers
    cdef Numbers partitions
    cdef Numbers timestamps
    cdef int64_t first         # first row of this piece, in the call's numbering
    cdef int64_t partition_start  # row 0 within `partitions`
    cdef int64_t timestamp_start  # and within `timestamps`
    cdef int64_t count

    cdef int64_t partition_of(self, int64_t i) noexcept nogil
    cdef int64_t timestamp_of(self, int64_t i) noexcept nogil


# Note an integer that may be a time of another unit than ms; a datetime never is.
cdef inline void note_odd(Numbers numbers, int64_t number) noexcept:
    if numbers.odd == 0 and is_odd_time(number):
        numbers.odd = number


cdef Numbers new_numbers(int64_t count)
cdef Numbers scalar_number(int64_t number)
# Pieces of rows from the arguments of send_many.
cdef list rows_of(str topic, object values, object keys, object partitions, object timestamps_ms,
                  object headers)
