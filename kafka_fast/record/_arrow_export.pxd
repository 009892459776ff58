"""Records as Arrow, handed out through the C data interface."""

from kafka_fast.record._arrow_columns cimport kf_table, kf_table_type
from kafka_fast.record._arrow_structs cimport ArrowArray, ArrowSchema


# Slices as a table: rows in the slices' order, columns by the layout. Any thread, with the GIL.
cdef class ArrowRecords:
    cdef list slices             # of RecordSlice
    cdef dict topics             # name -> place in the dictionary of topics
    cdef list names              # encoded names of the topics
    cdef kf_table_type type
    cdef list failures           # gets the exceptions of streams, which pass on texts; or None

    cdef int know_topic(self, str topic) except -1
    cdef ArrowRecords with_slices(self, list slices)
    cdef int fill_schema(self, ArrowSchema* out) except -1
    cdef int fill_array(self, Py_ssize_t first, Py_ssize_t last, ArrowArray* out) except -1
    cdef int describe(self, Py_ssize_t first, Py_ssize_t last, kf_table* chunk) except -1
    cdef int refuse_bytes(self, Py_ssize_t first, const kf_table* chunk) except -1
    cdef Py_ssize_t chunk_end(self, Py_ssize_t first)


cdef ArrowRecords arrow_records(
    list slices, object layout, bint views, object headers, object columns, bint text,
    list failures=*
)
