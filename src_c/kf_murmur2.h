/* Murmur2 with Kafka's seed, and the partition it gives: a key must land where Java's client and
 * every other client send it, so nothing here may ever change.
 */
#ifndef KF_MURMUR2_H
#define KF_MURMUR2_H

#include "kf_wire.h"

/* Hash `len` bytes. Kafka reads four bytes at a time, little-endian, and takes it as int32. */
static inline uint32_t kf_murmur2(const uint8_t *data, size_t len) {
    const uint32_t multiplier = 0x5bd1e995U;
    const uint8_t *tail = data + (len & ~(size_t)3);
    uint32_t hash = 0x9747b28cU ^ (uint32_t)len;
    for (; data != tail; data += 4) {
        uint32_t word = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                        (uint32_t)data[3] << 24;
        word *= multiplier;
        word ^= word >> 24;
        word *= multiplier;
        hash = hash * multiplier ^ word;
    }
    switch (len & 3) {
    case 3:
        hash ^= (uint32_t)tail[2] << 16; /* fall through */
    case 2:
        hash ^= (uint32_t)tail[1] << 8; /* fall through */
    case 1:
        hash = (hash ^ tail[0]) * multiplier;
        break;
    default:
        break;
    }
    hash ^= hash >> 13;
    hash *= multiplier;
    return hash ^ hash >> 15;
}

/* The partition of a key: the hash without its sign bit, modulo the partitions (at least 1). */
static inline int32_t kf_partition_for_key(const uint8_t *key, size_t len,
                                           int32_t partition_count) {
    return (int32_t)(kf_murmur2(key, len) & 0x7fffffffU) % partition_count;
}

#endif /* KF_MURMUR2_H */
