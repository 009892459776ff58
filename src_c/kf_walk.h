/* From batch header to batch header: where a fetched piece of a log ends, and where to go on.
 *
 * Only lengths and offsets are read, of any format. The user's thread checks the rest, with the
 * batch's CRC. The last batch may be cut off: a broker sends bytes, not batches.
 */
#ifndef KF_WALK_H
#define KF_WALK_H

#include "kf_legacy.h"
#include "kf_record.h"

typedef struct kf_walked {
    size_t size;         /* of the whole batches */
    int64_t next_offset; /* behind them */
    int32_t last_epoch;  /* leader epoch of the last one; -1: older formats have none */
    bool broken;         /* behind them is no batch, or one that ends no later than they do */
} kf_walked;

/* The offset behind the batch at `reader`, or -1 if its header makes no sense. Reads the 17 bytes
 * up to the magic, and more of a v2 batch that is there in full. */
static inline int64_t kf_walk_batch(kf_reader reader, size_t *size, int32_t *epoch) {
    size_t left = kf_left(&reader);
    int64_t base_offset = kf_read_i64(&reader);
    int32_t length = kf_read_i32(&reader);
    int32_t last_delta = 0;
    *epoch = kf_read_i32(&reader);
    int8_t magic = kf_read_i8(&reader);
    int32_t shortest = magic == KF_BATCH_MAGIC ? KF_BATCH_LENGTH_MIN
                                               : KF_MESSAGE_SIZE_MIN - KF_BATCH_LENGTH_PREFIX;
    if (magic < 0 || magic > KF_BATCH_MAGIC || base_offset < 0 || length < shortest) {
        return -1;
    }
    *size = KF_BATCH_LENGTH_PREFIX + (size_t)length;
    if (magic != KF_BATCH_MAGIC) {
        *epoch = -1;
    } else if (*size <= left) {
        kf_read_span(&reader, KF_BATCH_POS_LAST_OFFSET_DELTA - KF_BATCH_POS_MAGIC - 1);
        last_delta = kf_read_i32(&reader);
    }
    return last_delta < 0 || base_offset >= INT64_MAX - last_delta ? -1
                                                                   : base_offset + last_delta + 1;
}

/* Walk over what was fetched from `position` on. Each batch must end behind the one before it. The
 * first ones may end below the position: the user's thread passes over them. */
static inline void kf_walk(const uint8_t *data, size_t size, int64_t position, kf_walked *walked) {
    kf_reader reader = kf_reader_of(data, size);
    int64_t floor = 0; /* the next batch must end behind it */
    walked->size = 0;
    walked->next_offset = position;
    walked->last_epoch = -1;
    walked->broken = false;
    while (kf_left(&reader) > KF_BATCH_POS_MAGIC) {
        size_t batch_size = 0;
        int32_t epoch;
        int64_t next_offset = kf_walk_batch(reader, &batch_size, &epoch);
        if (next_offset >= 0 && batch_size > kf_left(&reader)) {
            return; /* cut off */
        }
        if (next_offset < 0 || next_offset <= floor) {
            walked->broken = true;
            return;
        }
        floor = next_offset;
        if (next_offset > position) {
            walked->next_offset = next_offset;
            walked->last_epoch = epoch;
        }
        kf_read_span(&reader, (int64_t)batch_size);
        walked->size = size - kf_left(&reader);
    }
}

#endif /* KF_WALK_H */
