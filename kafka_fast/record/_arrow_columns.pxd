"""The columns of a table of records, as Arrow schemas and arrays."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from kafka_fast.record._arrow_structs cimport ArrowArray, ArrowSchema, kf_part, kf_span_sizes
from kafka_fast.record._layout cimport kf_span


# The spans of one slice, for C code.
cdef struct kf_run:
    const kf_span* spans
    int64_t count
    const uint8_t* base
    size_t size               # bytes at `base`
    const uint8_t* blob       # views point into this: `base`, or the whole buffer around `base`
    size_t blob_size          # below 2 GiB
    int32_t partition
    int32_t topic             # place in the dictionary of topics
    int8_t timestamp_type


# The input for the rows of one array.
cdef struct kf_table:
    kf_run* runs
    int64_t run_count
    int64_t rows
    bint is_spark
    bint views
    const char** names        # of the topics
    const int32_t* name_lens
    int64_t name_count
    kf_span_sizes sizes       # of all runs together
    bint too_large            # a column would pass the 2 GiB that its offsets can address


# Make the table's type. False: no memory; there is nothing to release.
cdef bint table_schema(
    ArrowSchema* out, bint is_spark, bint headers, bint views
) noexcept nogil

# Make the chunk's rows. False: no memory, or `chunk.too_large`; there is nothing to release.
cdef bint table_array(kf_table* chunk, bint headers, ArrowArray* out) noexcept nogil

# Return the column of keys or of values in the result of table_array.
cdef ArrowArray* bytes_child(kf_table* chunk, kf_part part, ArrowArray* table) noexcept nogil
