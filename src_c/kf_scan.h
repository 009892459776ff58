/* Scan the records of a batch v2 into spans: one pass that validates everything and allocates
 * nothing. Objects, columns and Arrow are made from the spans afterwards, without another check.
 *
 * Positions in a span count from the first byte of the records section (after decompression).
 */
#ifndef KF_SCAN_H
#define KF_SCAN_H

#include "kf_record.h"

enum {
    KF_RECORD_SIZE_MIN = 7, /* length, attributes, two deltas, null key, null value, no headers */
    KF_HEADER_SIZE_MIN = 2, /* empty key, null value */
};

/* Where one record's parts stand. A null key or value has length -1 and position 0. */
typedef struct kf_span {
    int64_t offset;    /* in the log */
    int64_t timestamp; /* Unix ms */
    int32_t key_pos;
    int32_t key_len;
    int32_t value_pos;
    int32_t value_len;
    int32_t headers_pos; /* of the first header, after their count */
    int32_t header_count;
} kf_span;

/* What is wrong with a records section; the names are in kf_scan_text(). */
typedef enum kf_scan_error {
    KF_SCAN_OK = 0,
    KF_SCAN_HEADER,    /* offsets or count in the batch header that no batch can have */
    KF_SCAN_TOO_MANY,  /* more records announced than the bytes can hold */
    KF_SCAN_SHORT,     /* a record, or a varint, runs past the end */
    KF_SCAN_FIELD,     /* a length inside a record is negative or passes the record's end */
    KF_SCAN_HEADERS,   /* header count or lengths that do not fit, or a null header key */
    KF_SCAN_LENGTH,    /* a record's fields do not fill the length it announces */
    KF_SCAN_OFFSET,    /* offset deltas that do not rise, or pass the batch's last offset */
    KF_SCAN_LEFT_OVER, /* bytes after the last record */
} kf_scan_error;

static inline const char *kf_scan_text(kf_scan_error error) {
    switch (error) {
    case KF_SCAN_OK:
        return "is well formed";
    case KF_SCAN_HEADER:
        return "has offsets or a record count that no batch can have";
    case KF_SCAN_TOO_MANY:
        return "announces more records than its bytes can hold";
    case KF_SCAN_SHORT:
        return "ends inside this record";
    case KF_SCAN_FIELD:
        return "has a record whose key or value length is negative or passes the record's end";
    case KF_SCAN_HEADERS:
        return "has a record whose headers are malformed";
    case KF_SCAN_LENGTH:
        return "has a record whose fields do not fill its length";
    case KF_SCAN_OFFSET:
        return "has offset deltas that do not rise, or pass its last offset delta";
    case KF_SCAN_LEFT_OVER:
        return "has bytes left over after its records";
    }
    return "is malformed";
}

/* a + b as Java adds: timestamps may be any int64, so the sum may wrap. */
static inline int64_t kf_wrapping_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Read one length and skip that many bytes; -1 (null) is allowed. False if it is out of range. */
static inline bool kf_scan_field(kf_reader *body, const uint8_t *base, int32_t *pos, int32_t *len) {
    int32_t size = kf_read_varint(body);
    *len = size;
    *pos = size < 0 ? 0 : (int32_t)(body->pos - base);
    return !body->bad && size >= -1 && (size <= 0 || kf_read_span(body, size) != NULL);
}

static inline bool kf_scan_headers(kf_reader *body, int32_t count) {
    if (count < 0 || (size_t)count > kf_left(body) / KF_HEADER_SIZE_MIN) {
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        kf_read_span(body, kf_read_varint(body)); /* a key is never null: -1 sets `bad` */
        int32_t value_len = kf_read_varint(body);
        if (value_len != -1) {
            kf_read_span(body, value_len);
        }
    }
    return !body->bad;
}

/* Check what the header promises, before anything is sized by it: the count fits into the bytes,
 * and the batch's offsets are numbers a log can have. `size` is that of the records section. */
static inline kf_scan_error kf_scan_promise(const kf_batch_header *header, size_t size) {
    if (header->record_count < 0 || header->last_offset_delta < 0 || header->base_offset < 0 ||
        header->base_offset > INT64_MAX - header->last_offset_delta || size > INT32_MAX) {
        return KF_SCAN_HEADER;
    }
    return (size_t)header->record_count > size / KF_RECORD_SIZE_MIN ? KF_SCAN_TOO_MANY : KF_SCAN_OK;
}

/* Fill `out` with one span for each of the header's `record_count` records, which is all that
 * `reader` may hold. `*scanned` is the number of good records, so also the index of the bad one. */
static inline kf_scan_error kf_scan_records(kf_reader *reader, const kf_batch_header *header,
                                            kf_span *out, int32_t *scanned) {
    const uint8_t *base = reader->pos;
    const bool append_time = (header->attributes & KF_ATTRIBUTE_LOG_APPEND_TIME) != 0;
    int32_t last_delta = -1;
    *scanned = 0;
    kf_scan_error promise = kf_scan_promise(header, kf_left(reader));
    if (promise != KF_SCAN_OK) {
        return promise;
    }
    for (int32_t i = 0; i < header->record_count; i++) {
        kf_span *span = &out[i];
        kf_reader body;
        kf_enter(reader, &body, kf_read_varint(reader)); /* cannot read its neighbour */
        kf_read_i8(&body);                               /* attributes: none are defined */
        int64_t timestamp_delta = kf_read_varlong(&body);
        int32_t offset_delta = kf_read_varint(&body);
        if (body.bad) {
            return KF_SCAN_SHORT;
        }
        if (offset_delta <= last_delta || offset_delta > header->last_offset_delta) {
            return KF_SCAN_OFFSET;
        }
        last_delta = offset_delta;
        span->offset = header->base_offset + offset_delta;
        span->timestamp = append_time ? header->max_timestamp
                                      : kf_wrapping_add(header->base_timestamp, timestamp_delta);
        if (!kf_scan_field(&body, base, &span->key_pos, &span->key_len) ||
            !kf_scan_field(&body, base, &span->value_pos, &span->value_len)) {
            return KF_SCAN_FIELD;
        }
        span->header_count = kf_read_varint(&body);
        span->headers_pos = (int32_t)(body.pos - base);
        if (body.bad || (span->header_count != 0 && !kf_scan_headers(&body, span->header_count))) {
            return KF_SCAN_HEADERS;
        }
        if (!kf_leave(reader, &body)) {
            return KF_SCAN_LENGTH;
        }
        *scanned = i + 1;
    }
    return kf_left(reader) == 0 ? KF_SCAN_OK : KF_SCAN_LEFT_OVER;
}

#endif /* KF_SCAN_H */
