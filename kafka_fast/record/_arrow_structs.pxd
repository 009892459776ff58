"""The C declarations of Arrow's C data interface, and of the functions that build its structs."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.record._layout cimport kf_span


cdef extern from "kf_arrow.h" nogil:
    struct ArrowSchema:
        const char* format
        const char* name
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept nogil
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept nogil
        const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
        void (*release)(ArrowArrayStream*) noexcept nogil
        void* private_data


cdef extern from "kf_arrow_build.h" nogil:
    bint kf_schema_open(ArrowSchema* schema, const char* format, const char* name, bint nullable,
                        int64_t n_children)
    ArrowSchema* kf_schema_dictionary(ArrowSchema* schema)
    void kf_schema_release(ArrowSchema* schema)
    bint kf_array_open(ArrowArray* array, int64_t length, int64_t n_buffers, int64_t n_children)
    void* kf_array_buffer(ArrowArray* array, int64_t index, size_t size)
    void kf_array_lend(ArrowArray* array, int64_t index, const void* data)
    void kf_array_keep(ArrowArray* array, void* keeper, void (*drop)(void*) noexcept nogil)
    ArrowArray* kf_array_dictionary(ArrowArray* array)
    void kf_array_release(ArrowArray* array)


cdef extern from "kf_span_column.h" nogil:
    enum:
        KF_SPAN_VIEW_SIZE

    ctypedef enum kf_part:
        KF_PART_KEY
        KF_PART_VALUE

    ctypedef struct kf_span_sizes:
        int64_t key_bytes
        int64_t null_keys
        int64_t value_bytes
        int64_t null_values
        int64_t headers
        int64_t header_key_bytes
        int64_t header_value_bytes
        int64_t null_header_values

    ctypedef struct kf_header_columns:
        int32_t* lists
        int32_t* key_offsets
        uint8_t* keys
        int32_t* value_offsets
        uint8_t* values
        uint8_t* value_bits
        int32_t pairs

    int32_t kf_part_len(const kf_span* span, kf_part part)
    int32_t kf_part_pos(const kf_span* span, kf_part part)
    void kf_measure(const kf_span* spans, int64_t count, const uint8_t* base, size_t size,
                    kf_span_sizes* sizes)
    int64_t kf_part_no_text(const kf_span* spans, int64_t count, const uint8_t* base, kf_part part)
    void kf_part_copy(const kf_span* spans, int64_t count, const uint8_t* base, kf_part part,
                      int32_t* offsets, uint8_t* data)
    void kf_part_views(const kf_span* spans, int64_t count, const uint8_t* base, kf_part part,
                       int32_t buffer, int32_t start, uint8_t* views)
    void kf_part_validity(const kf_span* spans, int64_t count, kf_part part, uint8_t* bits,
                          int64_t first)
    void kf_span_offsets(const kf_span* spans, int64_t count, int64_t* out)
    void kf_span_timestamps(const kf_span* spans, int64_t count, int64_t* out)
    void kf_span_microseconds(const kf_span* spans, int64_t count, int64_t* out)
    void kf_headers_copy(const kf_span* spans, int64_t count, const uint8_t* base, size_t size,
                         int64_t first, kf_header_columns* out)
