/* One record of a record batch v2 (KIP-98), written in place into a batch buffer.
 *
 *   length          varint   of everything after it
 *   attributes      int8     0
 *   timestampDelta  varlong
 *   offsetDelta     varint
 *   key             varint length (-1: null), bytes
 *   value           varint length (-1: null), bytes
 *   headers         varint count, then (varint length, key bytes, varint length (-1: null), value)
 *
 * Callers: the append path (many records of one batch) and record/_writer. Headers arrive already
 * encoded, count included, because their shape belongs to Python.
 */
#ifndef KF_RECORD_H
#define KF_RECORD_H

#include "kf_wire.h"

enum {
    KF_BATCH_HEADER_SIZE = 61, /* record batch v2: from baseOffset up to and with recordsCount */
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
