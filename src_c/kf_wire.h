/* Read and write cursors over foreign bytes: the only pointer arithmetic on bytes that came from
 * a peer, and the only place that knows Kafka's primitive encodings.
 *
 * Reads never fail one by one: a read past the end returns zero and sets `bad`, which stays set.
 * The caller checks `bad` once per unit of work (record, partition, frame). Lengths are compared
 * with what is left (`n > end - pos`), never added to a pointer first, so nothing can overflow.
 *
 * The `kf_put_*` functions write without a check: the caller has reserved the worst case before.
 */
#ifndef KF_WIRE_H
#define KF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    KF_VARINT_MAX = 5,   /* bytes of the longest 32-bit varint */
    KF_VARLONG_MAX = 10, /* bytes of the longest 64-bit varint */
};

/* ---- big-endian integers at a known-good address ---- */

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define KF_BE16(value) (value)
#define KF_BE32(value) (value)
#define KF_BE64(value) (value)
#else
#define KF_BE16(value) __builtin_bswap16(value)
#define KF_BE32(value) __builtin_bswap32(value)
#define KF_BE64(value) __builtin_bswap64(value)
#endif

static inline uint16_t kf_load_u16(const uint8_t *at) {
    return (uint16_t)((uint16_t)at[0] << 8 | at[1]);
}

static inline uint32_t kf_load_u32(const uint8_t *at) {
    uint32_t raw;
    memcpy(&raw, at, sizeof raw);
    return KF_BE32(raw);
}

static inline uint64_t kf_load_u64(const uint8_t *at) {
    uint64_t raw;
    memcpy(&raw, at, sizeof raw);
    return KF_BE64(raw);
}

static inline uint8_t *kf_put_i8(uint8_t *at, int8_t value) {
    *at = (uint8_t)value;
    return at + 1;
}

static inline uint8_t *kf_put_i16(uint8_t *at, int16_t value) {
    uint16_t raw = KF_BE16((uint16_t)value);
    memcpy(at, &raw, sizeof raw);
    return at + 2;
}

static inline uint8_t *kf_put_i32(uint8_t *at, int32_t value) {
    uint32_t raw = KF_BE32((uint32_t)value);
    memcpy(at, &raw, sizeof raw);
    return at + 4;
}

static inline uint8_t *kf_put_i64(uint8_t *at, int64_t value) {
    uint64_t raw = KF_BE64((uint64_t)value);
    memcpy(at, &raw, sizeof raw);
    return at + 8;
}

static inline uint8_t *kf_put_bytes(uint8_t *at, const void *data, size_t len) {
    if (len != 0) {
        memcpy(at, data, len);
    }
    return at + len;
}

/* ---- varints: zigzag for signed values, as in protocol buffers ---- */

static inline uint64_t kf_zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t kf_unzigzag(uint64_t raw) {
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

/* Bytes that `raw` takes as an unsigned varint: ceil(significant bits / 7), at least one. */
static inline size_t kf_uvarint_size(uint64_t raw) {
    unsigned bits = 64U - (unsigned)__builtin_clzll(raw | 1);
    return (bits * 9U + 64U) / 64U;
}

static inline size_t kf_varint_size(int64_t value) {
    return kf_uvarint_size(kf_zigzag(value));
}

/* One and two bytes have cases of their own: lengths and deltas repeat from record to record, so
 * the branch predictor learns them (measured faster than a loop and than PDEP). */
static inline uint8_t *kf_put_uvarint(uint8_t *at, uint64_t raw) {
    if (raw < 0x80) {
        at[0] = (uint8_t)raw;
        return at + 1;
    }
    if (raw < 0x4000) {
        at[0] = (uint8_t)(raw | 0x80);
        at[1] = (uint8_t)(raw >> 7);
        return at + 2;
    }
    while (raw >= 0x80) {
        *at++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *at++ = (uint8_t)raw;
    return at;
}

static inline uint8_t *kf_put_varint(uint8_t *at, int64_t value) {
    return kf_put_uvarint(at, kf_zigzag(value));
}

/* ---- the read cursor ---- */

typedef struct kf_reader {
    const uint8_t *pos; /* next byte to read; never past `end` */
    const uint8_t *end;
    bool bad; /* a read asked for more than there was, or met a malformed varint */
} kf_reader;

static inline kf_reader kf_reader_of(const void *data, size_t len) {
    static const uint8_t nothing[1]; /* an empty buffer may be NULL, and NULL + 0 is undefined */
    const uint8_t *start = data == NULL ? nothing : (const uint8_t *)data;
    kf_reader reader = {start, start + len, false};
    return reader;
}

static inline size_t kf_left(const kf_reader *reader) {
    return (size_t)(reader->end - reader->pos);
}

/* Take `len` bytes and return where they start, or NULL (and set `bad`) if they are not there. */
static inline const uint8_t *kf_read_span(kf_reader *reader, int64_t len) {
    const uint8_t *start = reader->pos;
    if (reader->bad || len < 0 || (uint64_t)len > kf_left(reader)) {
        reader->bad = true;
        return NULL;
    }
    reader->pos += len;
    return start;
}

static inline int8_t kf_read_i8(kf_reader *reader) {
    const uint8_t *at = kf_read_span(reader, 1);
    return at == NULL ? 0 : (int8_t)*at;
}

static inline int16_t kf_read_i16(kf_reader *reader) {
    const uint8_t *at = kf_read_span(reader, 2);
    return at == NULL ? 0 : (int16_t)kf_load_u16(at);
}

static inline int32_t kf_read_i32(kf_reader *reader) {
    const uint8_t *at = kf_read_span(reader, 4);
    return at == NULL ? 0 : (int32_t)kf_load_u32(at);
}

static inline int64_t kf_read_i64(kf_reader *reader) {
    const uint8_t *at = kf_read_span(reader, 8);
    return at == NULL ? 0 : (int64_t)kf_load_u64(at);
}

/* Read at most `width` bytes of an unsigned varint whose value fits in `bits` bits. */
static inline uint64_t kf_read_uvarint_wide(kf_reader *reader, int width, unsigned bits) {
    const uint8_t *at = reader->pos;
    uint64_t raw = 0;
    if (reader->bad) {
        return 0;
    }
    for (int i = 0; i < width && at < reader->end; i++) {
        uint8_t byte = *at++;
        unsigned shift = 7U * (unsigned)i;
        if (shift + 7 > bits && (byte & 0x7f) >> (bits - shift) != 0) {
            break; /* bits beyond the width of the type */
        }
        raw |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            reader->pos = at;
            return raw;
        }
    }
    reader->bad = true;
    return 0;
}

static inline uint32_t kf_read_uvarint(kf_reader *reader) {
    if (!reader->bad && reader->pos < reader->end && *reader->pos < 0x80) {
        return *reader->pos++;
    }
    return (uint32_t)kf_read_uvarint_wide(reader, KF_VARINT_MAX, 32);
}

static inline int32_t kf_read_varint(kf_reader *reader) {
    return (int32_t)kf_unzigzag(kf_read_uvarint(reader));
}

static inline int64_t kf_read_varlong(kf_reader *reader) {
    if (!reader->bad && reader->pos < reader->end && *reader->pos < 0x80) {
        return kf_unzigzag(*reader->pos++);
    }
    return kf_unzigzag(kf_read_uvarint_wide(reader, KF_VARLONG_MAX, 64));
}

/* Open a sub-cursor over the next `len` bytes: what is read through it cannot touch its
 * neighbour. Both cursors are bad if the bytes are not there. */
static inline void kf_enter(kf_reader *outer, kf_reader *inner, int64_t len) {
    const uint8_t *start = kf_read_span(outer, len);
    inner->bad = start == NULL;
    inner->pos = start == NULL ? outer->end : start;
    inner->end = start == NULL ? outer->end : start + len;
}

/* Close a sub-cursor: true if it was well formed and read to its last byte. */
static inline bool kf_leave(kf_reader *outer, const kf_reader *inner) {
    if (inner->bad || inner->pos != inner->end) {
        outer->bad = true;
    }
    return !outer->bad;
}

/* Skip a tagged-field section (KIP-482): count, then (tag, size, bytes) each, tags ascending. */
static inline void kf_skip_tags(kf_reader *reader) {
    uint32_t count = kf_read_uvarint(reader);
    uint32_t last = 0;
    if (count > kf_left(reader) / 2) {
        reader->bad = true;
    }
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint32_t tag = kf_read_uvarint(reader);
        if (i != 0 && tag <= last) {
            reader->bad = true;
        }
        last = tag;
        kf_read_span(reader, (int64_t)kf_read_uvarint(reader));
    }
}

#endif /* KF_WIRE_H */
