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


cdef enum:
    COLUMN_COUNT_MAX = 8

cdef enum kf_table_column:
    TOPIC
    PARTITION
    OFFSET
    TIMESTAMP
    TIMESTAMP_TYPE
    KEY
    VALUE
    HEADERS


# The type of a table.
cdef struct kf_table_type:
    bint is_spark             # the layout is "spark", not "kafka"
    bint views                # long keys and values are not copied, but pin their buffer
    bint text                 # keys and values are strings
    int64_t count             # of columns
    kf_table_column[COLUMN_COUNT_MAX] columns


# The input for the rows of one array.
cdef struct kf_table:
    const kf_table_type* type
    kf_run* runs
    int64_t run_count
    int64_t rows
    const char** names        # of the topics
    const int32_t* name_lens
    int64_t name_count
    kf_span_sizes sizes       # of all runs together
    bint too_large            # a column would pass the 2 GiB that its offsets can address
    bint no_text              # with `text`: something is no UTF-8
    kf_part no_text_part      # the part of a record in which that is
    int64_t no_text_run       # the run of that record
    int64_t no_text_row       # its place within the run


# The columns of a layout, in its order.
cdef const kf_table_column* layout_columns(bint is_spark) noexcept nogil

# Make the table's type. False: no memory; there is nothing to release.
cdef bint table_schema(ArrowSchema* out, const kf_table_type* type) noexcept nogil

# Make the chunk's rows. False: no memory, `chunk.too_large` or `chunk.no_text`; there is nothing to
# release.
cdef bint table_array(kf_table* chunk, ArrowArray* out) noexcept nogil

# Return the column of keys or of values in the result of table_array; NULL: it has none.
cdef ArrowArray* bytes_child(kf_table* chunk, kf_part part, ArrowArray* table) noexcept nogil
