/* Columns of bytes: the keys, values or topics of many records, wherever they came from.
 *
 * A column borrows its buffers: Arrow's, numpy's or the caller's own. Only this file knows where an
 * item's bytes are. `kf_column_check` runs once over a column that comes in, so `kf_column_get`
 * checks nothing.
 */
#ifndef KF_COLUMN_H
#define KF_COLUMN_H

#include "kf_wire.h"

enum kf_column_layout {
    KF_COLUMN_NULLS = 0,     /* every item is null */
    KF_COLUMN_OFFSETS32 = 1, /* item i is data[offsets[i]:offsets[i + 1]], offsets int32 */
    KF_COLUMN_OFFSETS64 = 2, /* the same with int64 */
    KF_COLUMN_STRIDED = 3, /* item i is `width` bytes at data + i * stride; stride 0: a scalar */
    KF_COLUMN_PADDED = 4, /* the same without trailing zero bytes (numpy's `S`) */
    KF_COLUMN_VIEWS = 5, /* Arrow's binary views: 16 bytes each, short items inline */
};

enum {
    KF_VIEW_SIZE = 16,
    KF_VIEW_INLINE_MAX = 12,
};

typedef struct kf_column {
    int layout; /* enum kf_column_layout */
    int64_t start; /* place of item 0 in the buffers: slices share them */
    const uint8_t *validity; /* bit i, least significant first: item i is not null; or NULL */
    const void *offsets; /* OFFSETS */
    const uint8_t *data; /* bytes; of VIEWS the views */
    int64_t width, stride; /* STRIDED, PADDED */
    const void *const *blobs; /* VIEWS: where long items lie */
    const int64_t *blob_sizes;
    int64_t blob_count;
} kf_column;

static inline bool kf_bit(const uint8_t *bits, int64_t i) {
    return bits[i >> 3] >> (i & 7) & 1;
}

/* Arrow's integers are the machine's own; their alignment is recommended, not promised. */
static inline int32_t kf_view_i32(const uint8_t *view, int pos) {
    int32_t number;
    memcpy(&number, view + pos, sizeof number);
    return number;
}

static inline int64_t kf_offset32(const kf_column *column, int64_t i) {
    int32_t offset;
    memcpy(&offset, (const uint8_t *)column->offsets + i * (int64_t)sizeof offset, sizeof offset);
    return offset;
}

static inline int64_t kf_offset64(const kf_column *column, int64_t i) {
    int64_t offset;
    memcpy(&offset, (const uint8_t *)column->offsets + i * (int64_t)sizeof offset, sizeof offset);
    return offset;
}

/* Return item `i` and its length; NULL and -1 if it is null. */
static inline const uint8_t *kf_column_get(const kf_column *column, int64_t i, int64_t *len) {
    i += column->start;
    if (column->validity != NULL && !kf_bit(column->validity, i)) {
        *len = -1;
        return NULL;
    }
    if (column->layout == KF_COLUMN_OFFSETS32) {
        int64_t from = kf_offset32(column, i);
        *len = kf_offset32(column, i + 1) - from;
        return column->data + from;
    }
    if (column->layout == KF_COLUMN_OFFSETS64) {
        int64_t from = kf_offset64(column, i);
        *len = kf_offset64(column, i + 1) - from;
        return column->data + from;
    }
    if (column->layout == KF_COLUMN_STRIDED || column->layout == KF_COLUMN_PADDED) {
        const uint8_t *item = column->data + i * column->stride;
        int64_t size = column->width;
        while (column->layout == KF_COLUMN_PADDED && size > 0 && item[size - 1] == 0) {
            size--;
        }
        *len = size;
        return item;
    }
    if (column->layout == KF_COLUMN_VIEWS) {
        const uint8_t *view = column->data + i * KF_VIEW_SIZE;
        *len = kf_view_i32(view, 0);
        return *len <= KF_VIEW_INLINE_MAX
                   ? view + 4
                   : (const uint8_t *)column->blobs[kf_view_i32(view, 8)] + kf_view_i32(view, 12);
    }
    *len = -1;
    return NULL;
}

static inline bool kf_view_is_sound(const kf_column *column, int64_t i) {
    const uint8_t *view = column->data + i * KF_VIEW_SIZE;
    int32_t len = kf_view_i32(view, 0);
    if (len <= KF_VIEW_INLINE_MAX) {
        return len >= 0;
    }
    int32_t blob = kf_view_i32(view, 8);
    int32_t pos = kf_view_i32(view, 12);
    return blob >= 0 && blob < column->blob_count && pos >= 0 && len <= column->blob_sizes[blob] &&
           pos <= column->blob_sizes[blob] - len;
}

/* Return the first of `count` items whose offsets or view point outside (`size` bytes of data;
 * -1: not known), or -1 if all are sound. */
static inline int64_t kf_column_check(const kf_column *column, int64_t count, int64_t size) {
    int64_t last = 0;
    for (int64_t i = column->start; i < column->start + count; i++) {
        if (column->layout == KF_COLUMN_VIEWS) {
            bool valid = column->validity == NULL || kf_bit(column->validity, i);
            if (valid && !kf_view_is_sound(column, i)) {
                return i - column->start;
            }
            continue;
        }
        int64_t from, to;
        if (column->layout == KF_COLUMN_OFFSETS32) {
            from = kf_offset32(column, i);
            to = kf_offset32(column, i + 1);
        } else if (column->layout == KF_COLUMN_OFFSETS64) {
            from = kf_offset64(column, i);
            to = kf_offset64(column, i + 1);
        } else {
            break;
        }
        if (from < last || to < from || (size >= 0 && to > size)) {
            return i - column->start;
        }
        last = to;
    }
    return -1;
}

/* Headers of many records: item i has the pairs offsets[i] to offsets[i + 1] of two columns. */
typedef struct kf_header_column {
    kf_column lists; /* OFFSETS, without data */
    kf_column keys, values;
} kf_header_column;

/* Return where item i's pairs begin, and how many there are; none if the item is null. */
static inline int64_t kf_headers_get(const kf_header_column *column, int64_t i, int64_t *count) {
    const kf_column *lists = &column->lists;
    i += lists->start;
    *count = 0;
    if (lists->validity != NULL && !kf_bit(lists->validity, i)) {
        return 0;
    }
    if (lists->layout == KF_COLUMN_OFFSETS32) {
        int64_t first = kf_offset32(lists, i);
        *count = kf_offset32(lists, i + 1) - first;
        return first;
    }
    int64_t first = kf_offset64(lists, i);
    *count = kf_offset64(lists, i + 1) - first;
    return first;
}

/* Bytes that item i's headers take in a record, their count included. */
static inline size_t kf_headers_size(const kf_header_column *column, int64_t i) {
    int64_t count, len;
    int64_t first = kf_headers_get(column, i, &count);
    size_t size = kf_varint_size(count);
    for (int64_t pair = first; pair < first + count; pair++) {
        kf_column_get(&column->keys, pair, &len);
        size += kf_varint_size(len) + (size_t)(len > 0 ? len : 0);
        kf_column_get(&column->values, pair, &len);
        size += kf_varint_size(len) + (size_t)(len > 0 ? len : 0);
    }
    return size;
}

static inline uint8_t *kf_put_item(uint8_t *at, const kf_column *column, int64_t i) {
    int64_t len;
    const uint8_t *item = kf_column_get(column, i, &len);
    at = kf_put_varint(at, len);
    return kf_put_bytes(at, item, (size_t)(len > 0 ? len : 0));
}

/* Write item i's headers as they stand in a record, in the bytes that kf_headers_size counts. */
static inline uint8_t *kf_put_headers(uint8_t *at, const kf_header_column *column, int64_t i) {
    int64_t count;
    int64_t first = kf_headers_get(column, i, &count);
    at = kf_put_varint(at, count);
    for (int64_t pair = first; pair < first + count; pair++) {
        at = kf_put_item(at, &column->keys, pair);
        at = kf_put_item(at, &column->values, pair);
    }
    return at;
}

#endif /* KF_COLUMN_H */
