/* Columns of scanned records, in the layouts of Arrow's buffers. The caller sizes the output by
 * what kf_measure counts; the scan has checked everything else.
 *
 * A run is `count` spans of one batch, `first` the row that the first of them has in the column.
 */
#ifndef KF_SPAN_COLUMN_H
#define KF_SPAN_COLUMN_H

#include "kf_scan.h"
#include "kf_utf8.h"

enum {
    KF_SPAN_VIEW_SIZE = 16,
    KF_SPAN_VIEW_INLINE_MAX = 12,
    KF_SPAN_VIEW_PREFIX = 4,
    KF_SPAN_AHEAD = 8, /* views whose prefixes are prefetched from memory */
};

typedef enum kf_part {
    KF_PART_KEY,
    KF_PART_VALUE,
} kf_part;

static inline int32_t kf_part_len(const kf_span *span, kf_part part) {
    return part == KF_PART_KEY ? span->key_len : span->value_len;
}

static inline int32_t kf_part_pos(const kf_span *span, kf_part part) {
    return part == KF_PART_KEY ? span->key_pos : span->value_pos;
}

/* What columns of some records need. */
typedef struct kf_span_sizes {
    int64_t key_bytes, null_keys;
    int64_t value_bytes, null_values;
    int64_t headers; /* pairs */
    int64_t header_key_bytes, header_value_bytes, null_header_values;
} kf_span_sizes;

/* Read the next header. The scan has checked that all follow `headers_pos`. A null value has the
 * length -1. */
static inline void kf_header_next(kf_reader *reader, const uint8_t **key, int32_t *key_len,
                                  const uint8_t **value, int32_t *value_len) {
    *key_len = kf_read_varint(reader);
    *key = kf_read_span(reader, *key_len);
    *value_len = kf_read_varint(reader);
    *value = kf_read_span(reader, *value_len < 0 ? 0 : *value_len);
}

static inline kf_reader kf_headers_of(const kf_span *span, const uint8_t *base, size_t size) {
    return kf_reader_of(base + span->headers_pos, size - (size_t)span->headers_pos);
}

static inline void kf_measure_headers(const kf_span *spans, int64_t count, const uint8_t *base,
                                      size_t size, kf_span_sizes *sizes) {
    for (int64_t i = 0; i < count; i++) {
        kf_reader reader = kf_headers_of(&spans[i], base, size);
        for (int32_t pair = 0; pair < spans[i].header_count; pair++) {
            const uint8_t *key, *value;
            int32_t key_len, value_len;
            kf_header_next(&reader, &key, &key_len, &value, &value_len);
            sizes->header_key_bytes += kf_utf8_size(key, key_len);
            sizes->header_value_bytes += value_len < 0 ? 0 : value_len;
            sizes->null_header_values += value_len < 0;
        }
    }
}

/* Add what a run needs: one pass over its spans, for all columns together. `size` is that of the
 * bytes at `base`. */
static inline void kf_measure(const kf_span *spans, int64_t count, const uint8_t *base, size_t size,
                              kf_span_sizes *sizes) {
    int64_t headers = 0;
    for (int64_t i = 0; i < count; i++) {
        const kf_span *span = &spans[i];
        sizes->key_bytes += span->key_len < 0 ? 0 : span->key_len;
        sizes->null_keys += span->key_len < 0;
        sizes->value_bytes += span->value_len < 0 ? 0 : span->value_len;
        sizes->null_values += span->value_len < 0;
        headers += span->header_count;
    }
    sizes->headers += headers;
    if (headers != 0) {
        kf_measure_headers(spans, count, base, size, sizes);
    }
}

/* Return the first row whose key or value is no UTF-8; -1: all are, or are null. */
static inline int64_t kf_part_no_text(const kf_span *spans, int64_t count, const uint8_t *base,
                                      kf_part part) {
    for (int64_t i = 0; i < count; i++) {
        int32_t len = kf_part_len(&spans[i], part);
        if (len > 0 && !kf_utf8_is_whole(base + kf_part_pos(&spans[i], part), len)) {
            return i;
        }
    }
    return -1;
}

/* Copy a run's keys or values to data + offsets[0], and fill offsets[1:count + 1]. */
static inline void kf_part_copy(const kf_span *spans, int64_t count, const uint8_t *base,
                                kf_part part, int32_t *offsets, uint8_t *data) {
    int32_t end = offsets[0];
    uint8_t *at = data + end;
    for (int64_t i = 0; i < count; i++) {
        int32_t len = kf_part_len(&spans[i], part);
        if (len > 0) {
            memcpy(at, base + kf_part_pos(&spans[i], part), (size_t)len);
            at += len;
            end += len;
        }
        offsets[i + 1] = end;
    }
}

/* Fill one binary view for each key or value; long ones point into buffer number `buffer`, where
 * the records begin at `start`. */
static inline void kf_part_views(const kf_span *spans, int64_t count, const uint8_t *base,
                                 kf_part part, int32_t buffer, int32_t start, uint8_t *views) {
    for (int64_t i = 0; i < count; i++, views += KF_SPAN_VIEW_SIZE) {
        int32_t len = kf_part_len(&spans[i], part);
        int32_t pos = kf_part_pos(&spans[i], part);
        if (i + KF_SPAN_AHEAD < count) {
            __builtin_prefetch(base + kf_part_pos(&spans[i + KF_SPAN_AHEAD], part));
        }
        memset(views, 0, KF_SPAN_VIEW_SIZE);
        if (len <= 0) {
            continue;
        }
        memcpy(views, &len, sizeof len);
        if (len <= KF_SPAN_VIEW_INLINE_MAX) {
            memcpy(views + sizeof len, base + pos, (size_t)len);
        } else {
            memcpy(views + sizeof len, base + pos, KF_SPAN_VIEW_PREFIX);
            pos += start;
            memcpy(views + 8, &buffer, sizeof buffer);
            memcpy(views + 12, &pos, sizeof pos);
        }
    }
}

/* Set the bits of what is not null, from bit `first` on; the bitmap was zeroed. */
static inline void kf_part_validity(const kf_span *spans, int64_t count, kf_part part,
                                    uint8_t *bits, int64_t first) {
    for (int64_t i = 0; i < count; i++) {
        int64_t row = first + i;
        bits[row >> 3] |= (uint8_t)((kf_part_len(&spans[i], part) >= 0) << (row & 7));
    }
}

static inline void kf_span_offsets(const kf_span *spans, int64_t count, int64_t *out) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = spans[i].offset;
    }
}

static inline void kf_span_timestamps(const kf_span *spans, int64_t count, int64_t *out) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = spans[i].timestamp;
    }
}

/* The same in microseconds; a number that int64 cannot hold becomes the last one that it can. */
static inline void kf_span_microseconds(const kf_span *spans, int64_t count, int64_t *out) {
    const int64_t limit = INT64_MAX / 1000;
    for (int64_t i = 0; i < count; i++) {
        int64_t ms = spans[i].timestamp;
        out[i] = 1000 * (ms > limit ? limit : ms < -limit ? -limit : ms);
    }
}

/* ---- headers ---- */

/* Where the columns of headers grow: each `offsets` has its first entry already. */
typedef struct kf_header_columns {
    int32_t *lists; /* row -> its first pair */
    int32_t *key_offsets;
    uint8_t *keys;
    int32_t *value_offsets;
    uint8_t *values;
    uint8_t *value_bits; /* validity of the values, zeroed; NULL if none is null */
    int32_t pairs;       /* written so far */
} kf_header_columns;

static inline void kf_headers_copy(const kf_span *spans, int64_t count, const uint8_t *base,
                                   size_t size, int64_t first, kf_header_columns *out) {
    for (int64_t i = 0; i < count; i++) {
        if (spans[i].header_count != 0) {
            kf_reader reader = kf_headers_of(&spans[i], base, size);
            for (int32_t pair = 0; pair < spans[i].header_count; pair++) {
                const uint8_t *key, *value;
                int32_t key_len, value_len;
                int32_t at = out->pairs++;
                kf_header_next(&reader, &key, &key_len, &value, &value_len);
                uint8_t *end = kf_put_utf8(out->keys + out->key_offsets[at], key, key_len);
                out->key_offsets[at + 1] = (int32_t)(end - out->keys);
                if (out->value_bits != NULL && value_len >= 0) {
                    out->value_bits[at >> 3] |= (uint8_t)(1 << (at & 7));
                }
                value_len = value_len < 0 ? 0 : value_len;
                kf_put_bytes(out->values + out->value_offsets[at], value, (size_t)value_len);
                out->value_offsets[at + 1] = out->value_offsets[at] + value_len;
            }
        }
        out->lists[first + i + 1] = out->pairs;
    }
}

#endif /* KF_SPAN_COLUMN_H */
