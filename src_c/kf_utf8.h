/* UTF-8 that may be wrong: header names come from anybody, and Arrow's strings must be right.
 * Each maximal ill-formed part becomes U+FFFD, as Python's and Java's decoders have it. */
#ifndef KF_UTF8_H
#define KF_UTF8_H

#include "kf_wire.h"

enum { KF_UTF8_REPLACEMENT_SIZE = 3 };

/* Measure the sequence at `at`, which is before `end`. True: it is one character; false: those
 * bytes are to be replaced together. */
static inline bool kf_utf8_step(const uint8_t *at, const uint8_t *end, size_t *size) {
    uint8_t lead = at[0];
    uint8_t low = 0x80, high = 0xbf; /* of the second byte: no overlong, surrogate, or > 10FFFF */
    size_t need;
    *size = 1;
    if (lead < 0x80) {
        return true;
    }
    if (lead >= 0xc2 && lead <= 0xdf) {
        need = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        need = 3;
        low = lead == 0xe0 ? 0xa0 : low;
        high = lead == 0xed ? 0x9f : high;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        need = 4;
        low = lead == 0xf0 ? 0x90 : low;
        high = lead == 0xf4 ? 0x8f : high;
    } else {
        return false;
    }
    while (*size < need) {
        if (*size == (size_t)(end - at) || at[*size] < low || at[*size] > high) {
            return false;
        }
        low = 0x80;
        high = 0xbf;
        *size += 1;
    }
    return true;
}

/* Whether the text needs no repair. */
static inline bool kf_utf8_is_whole(const uint8_t *text, int32_t len) {
    const uint8_t *at = text, *end = text + len;
    size_t size;
    while (at < end) {
        uint64_t word = 0;
        if (end - at >= (ptrdiff_t)sizeof word) {
            memcpy(&word, at, sizeof word);
            if ((word & 0x8080808080808080u) == 0) { /* ASCII, as most text is */
                at += sizeof word;
                continue;
            }
        }
        if (!kf_utf8_step(at, end, &size)) {
            return false;
        }
        at += size;
    }
    return true;
}

/* Bytes that `len` bytes take after the repair. */
static inline int64_t kf_utf8_size(const uint8_t *text, int32_t len) {
    const uint8_t *end = text + len;
    int64_t whole = 0;
    size_t size;
    for (const uint8_t *at = text; at < end; at += size) {
        bool good = kf_utf8_step(at, end, &size);
        whole += good ? (int64_t)size : KF_UTF8_REPLACEMENT_SIZE;
    }
    return whole;
}

/* Write the repaired text; return where it ends. */
static inline uint8_t *kf_put_utf8(uint8_t *out, const uint8_t *text, int32_t len) {
    const uint8_t *end = text + len;
    size_t size;
    for (const uint8_t *at = text; at < end; at += size) {
        out = kf_utf8_step(at, end, &size)
                  ? kf_put_bytes(out, at, size)
                  : kf_put_bytes(out, "\xef\xbf\xbd", KF_UTF8_REPLACEMENT_SIZE);
    }
    return out;
}

#endif /* KF_UTF8_H */
