/* Filling a batch: its slabs, and the place where the next record goes. Private to kf_batch.c,
 * which gives a batch its first slab, and to kf_queue.c and kf_split.c, which alone write records.
 *
 * Thread: the one that holds the queue's lock, while the batch is open. The data plane fills the
 * children of a split batch.
 */
#ifndef KF_FILL_H
#define KF_FILL_H

#include "kf_queue.h"

/* Add a slab: records go there from now on. */
static inline void kf_fill_slab(kf_batch *batch, kf_slab *slab) {
    if (batch->slabs == NULL) {
        batch->slabs = slab;
    } else {
        batch->last_slab->next = slab;
    }
    batch->last_slab = slab;
    batch->at = slab->data;
    batch->end = slab->data + slab->capacity;
}

/* Note how much of the last slab is in use; until now only `at` said so. */
static inline void kf_fill_close(kf_batch *batch) {
    batch->last_slab->size = (size_t)(batch->at - batch->last_slab->data);
}

static inline size_t kf_fill_room(const kf_batch *batch) {
    return batch->last_slab->capacity - (size_t)(batch->at - batch->last_slab->data);
}

/* Encode a record as number `index`; there must be room for it at `at`. */
static inline void kf_fill_record(kf_batch *batch, const kf_record *record, int64_t timestamp_ms,
                                  int32_t index) {
    uint8_t *start = batch->at;
    batch->at = kf_record_put(start, record, timestamp_ms - batch->base_timestamp, index);
    batch->size += (size_t)(batch->at - start);
    if (timestamp_ms > batch->max_timestamp) {
        batch->max_timestamp = timestamp_ms;
    }
}

/* Whether a record of at most `need` bytes may go to `at`. */
static inline bool kf_fill_fits(const kf_batch *batch, size_t need) {
    return batch != NULL && (size_t)(batch->end - batch->at) >= need;
}

#endif /* KF_FILL_H */
