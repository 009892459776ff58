/* The record batch v2 (KIP-98): its 61-byte header, and one record written in place after it.
 *
 * The header, big-endian; the CRC covers everything from `attributes` to the end of the batch:
 *
 *   baseOffset int64 | batchLength int32 | partitionLeaderEpoch int32 | magic int8 | crc uint32 |
 *   attributes int16 | lastOffsetDelta int32 | baseTimestamp int64 | maxTimestamp int64 |
 *   producerId int64 | producerEpoch int16 | baseSequence int32 | recordsCount int32
 *
 * A record:
 *
 *   length          varint   of everything after it
 *   attributes      int8     0
 *   timestampDelta  varlong
 *   offsetDelta     varint
 *   key             varint length (-1: null), bytes
 *   value           varint length (-1: null), bytes
 *   headers         varint count, then (varint length, key bytes, varint length (-1: null), value)
 *
 * Callers of kf_record_put: the append path (many records of one batch) and record/_writer. Headers
 * arrive already encoded, count included, because their shape belongs to Python.
 */
#ifndef KF_RECORD_H
#define KF_RECORD_H

#include "kf_wire.h"

/* Byte positions in the header, for those who patch a sealed batch. */
enum {
    KF_BATCH_POS_BASE_OFFSET = 0,
    KF_BATCH_POS_LENGTH = 8, /* of the bytes after this field */
    KF_BATCH_POS_LEADER_EPOCH = 12,
    KF_BATCH_POS_MAGIC = 16,
    KF_BATCH_POS_CRC = 17,
    KF_BATCH_POS_ATTRIBUTES = 21, /* first byte under the CRC */
    KF_BATCH_POS_LAST_OFFSET_DELTA = 23,
    KF_BATCH_POS_BASE_TIMESTAMP = 27,
    KF_BATCH_POS_MAX_TIMESTAMP = 35,
    KF_BATCH_POS_PRODUCER_ID = 43,
    KF_BATCH_POS_PRODUCER_EPOCH = 51,
    KF_BATCH_POS_BASE_SEQUENCE = 53,
    KF_BATCH_POS_RECORD_COUNT = 57,
    KF_BATCH_HEADER_SIZE = 61,
    KF_BATCH_LENGTH_PREFIX = 12, /* baseOffset and batchLength: what batchLength does not count */
    KF_BATCH_LENGTH_MIN = KF_BATCH_HEADER_SIZE - KF_BATCH_LENGTH_PREFIX,
    KF_BATCH_MAGIC = 2,
};

/* Bits of the attributes field. */
enum {
    KF_ATTRIBUTE_CODEC = 0x07, /* a kf_codec */
    KF_ATTRIBUTE_LOG_APPEND_TIME = 0x08,
    KF_ATTRIBUTE_TRANSACTIONAL = 0x10,
    KF_ATTRIBUTE_CONTROL = 0x20,
    KF_ATTRIBUTE_DELETE_HORIZON = 0x40, /* baseTimestamp is the delete horizon (KIP-534) */
};

typedef struct kf_batch_header {
    int64_t base_offset;
    int32_t length; /* bytes after the length field: 49 and the records */
    int32_t leader_epoch;
    int8_t magic;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t record_count;
} kf_batch_header;

/* Write the 61 bytes at `at`. The CRC is left zero: it is known last, and patched by the caller
 * with kf_put_i32(at + KF_BATCH_POS_CRC, ...). */
static inline void kf_batch_header_put(uint8_t *at, const kf_batch_header *header) {
    at = kf_put_i64(at, header->base_offset);
    at = kf_put_i32(at, header->length);
    at = kf_put_i32(at, header->leader_epoch);
    at = kf_put_i8(at, KF_BATCH_MAGIC);
    at = kf_put_i32(at, 0);
    at = kf_put_i16(at, header->attributes);
    at = kf_put_i32(at, header->last_offset_delta);
    at = kf_put_i64(at, header->base_timestamp);
    at = kf_put_i64(at, header->max_timestamp);
    at = kf_put_i64(at, header->producer_id);
    at = kf_put_i16(at, header->producer_epoch);
    at = kf_put_i32(at, header->base_sequence);
    kf_put_i32(at, header->record_count);
}

/* Read the 61 bytes; `reader->bad` is set, and the fields read as zero, if they are not there.
 * Nothing is judged here: magic and length are the caller's to check. */
static inline void kf_batch_header_read(kf_reader *reader, kf_batch_header *header) {
    header->base_offset = kf_read_i64(reader);
    header->length = kf_read_i32(reader);
    header->leader_epoch = kf_read_i32(reader);
    header->magic = kf_read_i8(reader);
    header->crc = (uint32_t)kf_read_i32(reader);
    header->attributes = kf_read_i16(reader);
    header->last_offset_delta = kf_read_i32(reader);
    header->base_timestamp = kf_read_i64(reader);
    header->max_timestamp = kf_read_i64(reader);
    header->producer_id = kf_read_i64(reader);
    header->producer_epoch = kf_read_i16(reader);
    header->base_sequence = kf_read_i32(reader);
    header->record_count = kf_read_i32(reader);
}

enum {
    KF_RECORD_OVERHEAD_MAX = KF_VARINT_MAX * 4 + KF_VARLONG_MAX + 2, /* without headers' bytes */
};

/* The parts of one record; a null key or value has data NULL and len -1. */
typedef struct kf_record {
    const uint8_t *key;
    int64_t key_len;
    const uint8_t *value;
    int64_t value_len;
    const uint8_t *headers; /* varint count and the headers, or NULL for none */
    int64_t headers_size;   /* bytes at `headers` */
} kf_record;

/* Bytes of the record after its length field. */
static inline size_t kf_record_body_size(const kf_record *record, int64_t timestamp_delta,
                                         int32_t offset_delta) {
    size_t key = record->key_len > 0 ? (size_t)record->key_len : 0;
    size_t value = record->value_len > 0 ? (size_t)record->value_len : 0;
    size_t headers = record->headers != NULL ? (size_t)record->headers_size : 1;
    return 1 + kf_varint_size(timestamp_delta) + kf_varint_size(offset_delta) +
           kf_varint_size(record->key_len) + key + kf_varint_size(record->value_len) + value +
           headers;
}

/* An upper bound of the whole record's size, cheap enough for an admission check. */
static inline size_t kf_record_size_max(const kf_record *record) {
    size_t key = record->key_len > 0 ? (size_t)record->key_len : 0;
    size_t value = record->value_len > 0 ? (size_t)record->value_len : 0;
    size_t headers = record->headers != NULL ? (size_t)record->headers_size : 1;
    return KF_RECORD_OVERHEAD_MAX + key + value + headers;
}

/* Write the record at `at`, where its size is reserved; return the byte after it. */
static inline uint8_t *kf_record_put(uint8_t *at, const kf_record *record, int64_t timestamp_delta,
                                     int32_t offset_delta) {
    at = kf_put_varint(at, (int64_t)kf_record_body_size(record, timestamp_delta, offset_delta));
    *at++ = 0;
    at = kf_put_varint(at, timestamp_delta);
    at = kf_put_varint(at, offset_delta);
    at = kf_put_varint(at, record->key_len);
    if (record->key_len > 0) {
        at = kf_put_bytes(at, record->key, (size_t)record->key_len);
    }
    at = kf_put_varint(at, record->value_len);
    if (record->value_len > 0) {
        at = kf_put_bytes(at, record->value, (size_t)record->value_len);
    }
    if (record->headers != NULL) {
        return kf_put_bytes(at, record->headers, (size_t)record->headers_size);
    }
    *at++ = 0;
    return at;
}

#endif /* KF_RECORD_H */
