"""Kafka's primitive encodings, the record batch and the partitioner's hash, as declared in src_c/.

For every compiled module that reads or writes the wire; no code of its own.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "kf_wire.h" nogil:
    enum:
        KF_VARINT_MAX

    ctypedef struct kf_reader:
        const uint8_t* pos
        const uint8_t* end
        bint bad

    kf_reader kf_reader_of(const void* data, size_t len)
    size_t kf_left(const kf_reader* reader)
    const uint8_t* kf_read_span(kf_reader* reader, int64_t len)
    int8_t kf_read_i8(kf_reader* reader)
    int16_t kf_read_i16(kf_reader* reader)
    int32_t kf_read_i32(kf_reader* reader)
    int64_t kf_read_i64(kf_reader* reader)
    int32_t kf_read_varint(kf_reader* reader)
    uint32_t kf_read_uvarint(kf_reader* reader)
    void kf_skip_tags(kf_reader* reader)
    uint8_t* kf_put_i8(uint8_t* at, int8_t value)
    uint8_t* kf_put_i16(uint8_t* at, int16_t value)
    uint8_t* kf_put_i32(uint8_t* at, int32_t value)
    uint8_t* kf_put_i64(uint8_t* at, int64_t value)
    uint8_t* kf_put_uvarint(uint8_t* at, uint64_t raw)
    uint8_t* kf_put_varint(uint8_t* at, int64_t value)
    uint8_t* kf_put_bytes(uint8_t* at, const void* data, size_t len)
    size_t kf_uvarint_size(uint64_t raw)
    size_t kf_varint_size(int64_t value)


cdef extern from "kf_record.h" nogil:
    enum:
        KF_BATCH_POS_BASE_OFFSET
        KF_BATCH_POS_LENGTH
        KF_BATCH_POS_LEADER_EPOCH
        KF_BATCH_POS_MAGIC
        KF_BATCH_POS_CRC
        KF_BATCH_POS_ATTRIBUTES
        KF_BATCH_POS_LAST_OFFSET_DELTA
        KF_BATCH_POS_BASE_TIMESTAMP
        KF_BATCH_POS_MAX_TIMESTAMP
        KF_BATCH_POS_PRODUCER_ID
        KF_BATCH_POS_PRODUCER_EPOCH
        KF_BATCH_POS_BASE_SEQUENCE
        KF_BATCH_POS_RECORD_COUNT
        KF_BATCH_HEADER_SIZE
        KF_BATCH_LENGTH_PREFIX
        KF_BATCH_LENGTH_MIN
        KF_BATCH_MAGIC
        KF_ATTRIBUTE_CODEC
        KF_ATTRIBUTE_LOG_APPEND_TIME
        KF_ATTRIBUTE_TRANSACTIONAL
        KF_ATTRIBUTE_CONTROL
        KF_ATTRIBUTE_DELETE_HORIZON
        KF_RECORD_OVERHEAD_MAX

    ctypedef struct kf_batch_header:
        int64_t base_offset
        int32_t length
        int32_t leader_epoch
        int8_t magic
        uint32_t crc
        int16_t attributes
        int32_t last_offset_delta
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int16_t producer_epoch
        int32_t base_sequence
        int32_t record_count

    ctypedef struct kf_record:
        const uint8_t* key
        int64_t key_len
        const uint8_t* value
        int64_t value_len
        const uint8_t* headers
        int64_t headers_size

    void kf_batch_header_put(uint8_t* at, const kf_batch_header* header)
    void kf_batch_header_read(kf_reader* reader, kf_batch_header* header)
    size_t kf_record_size_max(const kf_record* record)
    uint8_t* kf_record_put(
        uint8_t* at, const kf_record* record, int64_t timestamp_delta, int32_t offset_delta
    )


cdef extern from "kf_murmur2.h" nogil:
    int32_t kf_partition_for_key(const uint8_t* key, size_t len, int32_t partition_count)


cdef extern from "kf_walk.h" nogil:
    ctypedef struct kf_walked:
        size_t size
        int64_t next_offset
        int32_t last_epoch
        bint broken

    void kf_walk(const uint8_t* data, size_t size, int64_t position, kf_walked* walked)
