"""Arrow's columns, taken in through the C data interface."""

from libc.stdint cimport int64_t

from kafka_fast.record._arrow_structs cimport ArrowArray, ArrowArrayStream, ArrowSchema
from kafka_fast.sending.bulk._column cimport Column
from kafka_fast.sending.bulk._rows cimport HeaderColumn, Numbers


# Arrays of one type, one after the other.
cdef class ArrowSource:
    cdef object capsules             # keep what was not moved out of them
    cdef ArrowSchema* schema
    cdef ArrowArrayStream* stream    # NULL: there is one array, `only`
    cdef ArrowArray* only

    cdef ArrowChunk next_chunk(self)


# One array, owned.
cdef class ArrowChunk:
    cdef ArrowArray array
    cdef ArrowSource source          # has its schema


# A column of a chunk: the chunk itself, or one of its children.
cdef class ArrowColumn:
    cdef ArrowChunk chunk            # keeps the memory
    cdef const ArrowSchema* schema
    cdef const ArrowArray* array
    cdef int64_t first               # place of row 0 in the array, without the array's own offset
    cdef int64_t count
    cdef int64_t first_row           # what the call counts its row 0 as


cdef ArrowSource open_source(object data)
cdef ArrowColumn whole_column(ArrowChunk chunk, int64_t first_row)
cdef ArrowColumn child_column(ArrowColumn parent, int64_t index)
cdef str format_of(const ArrowSchema* schema)
# The number of a struct's field; None if there is none of the name.
cdef list field_names(const ArrowSchema* schema)
cdef object field_index(const ArrowSchema* schema, str name)

# Raise TypeError if the type does not fit, which a schema tells before there is a row.
cdef int check_bytes_type(const ArrowSchema* schema, str what) except -1
cdef int check_number_type(const ArrowSchema* schema, str what) except -1
cdef int check_header_type(const ArrowSchema* schema, str what) except -1

# The column as a bulk call reads it; UsageError for a row that is not what it must be.
cdef Column bytes_column(ArrowColumn source, str what)
cdef int fill_numbers(Numbers numbers, int64_t start, ArrowColumn source, str topic,
                      str what) except -1
cdef HeaderColumn header_column(ArrowColumn source, str what)
