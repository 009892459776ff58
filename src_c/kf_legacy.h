/* Message sets of formats v0 and v1, which Kafka wrote before 0.11. Only read, never written.
 *
 *   offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | [v1: timestamp int64] |
 *   key length int32 (-1: null), bytes | value length int32 (-1: null), bytes
 *
 * A compressed message holds a message set in its value, one level deep. There v1 counts offsets
 * from zero, and the outer message has the offset of the last inner one (KIP-31); v0 keeps
 * absolute offsets.
 */
#ifndef KF_LEGACY_H
#define KF_LEGACY_H

#include "kf_record.h"
#include "kf_scan.h"

enum {
    KF_MESSAGE_SIZE_MIN = 26, /* v0 with null key and null value, offset and size included */
};

/* One message; `pos` fields count from the reader's first byte, as in kf_span. */
typedef struct kf_message {
    int64_t offset;
    uint32_t crc;
    int8_t magic;
    int8_t attributes;
    int64_t timestamp; /* -1 in v0 */
    int32_t pos;       /* of the magic: the first byte under the CRC */
    int32_t size;      /* of the bytes under the CRC */
    int32_t key_pos;
    int32_t key_len;
    int32_t value_pos;
    int32_t value_len;
} kf_message;

static inline void kf_message_field(kf_reader *body, const uint8_t *base, int32_t *pos,
                                    int32_t *len) {
    *len = kf_read_i32(body);
    *pos = (int32_t)(body->pos - base);
    if (*len == -1) {
        *pos = 0;
    } else {
        kf_read_span(body, *len);
    }
}

/* Read the next message of a set that begins at `base` and is below 2 GiB. False if it is not
 * well formed to its last byte, or of a format other than v0 and v1. */
static inline bool kf_message_read(kf_reader *reader, const uint8_t *base, kf_message *message) {
    kf_reader body;
    message->offset = kf_read_i64(reader);
    kf_enter(reader, &body, kf_read_i32(reader));
    message->crc = (uint32_t)kf_read_i32(&body);
    message->pos = (int32_t)(body.pos - base);
    message->size = (int32_t)kf_left(&body);
    message->magic = kf_read_i8(&body);
    message->attributes = kf_read_i8(&body);
    message->timestamp = message->magic == 1 ? kf_read_i64(&body) : -1;
    kf_message_field(&body, base, &message->key_pos, &message->key_len);
    kf_message_field(&body, base, &message->value_pos, &message->value_len);
    return kf_leave(reader, &body) && message->magic >= 0 && message->magic <= 1;
}

/* Count the messages of a whole set, or return -1 if one is not well formed. */
static inline int64_t kf_message_count(kf_reader reader) {
    const uint8_t *base = reader.pos;
    int64_t count = 0;
    while (kf_left(&reader) != 0) {
        kf_message message;
        if (!kf_message_read(&reader, base, &message)) {
            return -1;
        }
        count++;
    }
    return count;
}

#endif /* KF_LEGACY_H */
