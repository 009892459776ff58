/* One batch: how it begins and ends, when its memory goes back, and where its records are after it
 * was split. */
#include "kf_producer.h"
#include "kf_fill.h"

#include <stdlib.h>

/* ---- its beginning ---- */

/* Batches begin on a cache line of their own: the first one is what every append touches. */
enum { CACHE_LINE = 64 };

kf_batch *kf_batch_new(kf_queue *queue, size_t slab_size, bool beyond) {
    size_t size = (sizeof(kf_batch) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    kf_batch *batch = aligned_alloc(CACHE_LINE, size);
    if (batch == NULL) {
        return NULL;
    }
    kf_slab *slab = kf_pool_take(&queue->producer->pool, slab_size, beyond);
    if (slab == NULL) {
        free(batch);
        return NULL;
    }
    memset(batch, 0, size);
    kf_fill_slab(batch, slab);
    batch->at += KF_BATCH_HEADER_SIZE;
    batch->size = KF_BATCH_HEADER_SIZE;
    batch->queue = queue;
    batch->refs = 1;
    batch->base_sequence = -1;
    batch->producer_id = -1;
    batch->epoch = -1;
    batch->base_offset = -1;
    batch->append_time_ms = -1;
    return batch;
}

/* ---- the end of a batch ---- */

void kf_batch_ref(kf_batch *batch) {
    kf_add(&batch->refs, 1);
}

void kf_batch_unref(kf_batch *batch) {
    if (kf_add(&batch->refs, -1) != 0 || batch->queue->producer->inherited) {
        return;
    }
    kf_batch *child = batch->children;
    while (child != NULL) {
        kf_batch *sibling = child->sibling;
        kf_batch_unref(child);
        child = sibling;
    }
    kf_batch_release_memory(batch);
    free(batch->detail);
    free(batch);
}

void kf_batch_explain(kf_batch *batch, uint8_t *detail, size_t size) {
    free(batch->detail);
    batch->detail = detail;
    batch->detail_size = size;
}

void kf_batch_release_memory(kf_batch *batch) {
    kf_producer *producer = batch->queue->producer;
    kf_slab *slabs = batch->slabs;
    kf_slab *coded = batch->coded;
    batch->slabs = NULL;
    batch->last_slab = NULL;
    batch->coded = NULL;
    if (slabs != NULL) {
        kf_pool_give(&producer->pool, slabs);
    }
    if (coded != NULL) {
        kf_pool_give(&producer->pool, coded);
    }
    if (kf_get(&producer->pool.waiting) > 0) {
        kf_plane_wake_users(producer->plane); /* event loops do not sleep on the pool's condition */
    }
}

/* A child has ended. A split batch ends with its last child, and so do the batches above it. The
 * batch that was split first is what observers know. */
static void child_ended(kf_producer *producer, kf_batch *parent) {
    while (parent != NULL && --parent->children_left == 0) {
        kf_batch *above = parent->parent;
        kf_producer_observe(producer, parent);
        kf_batch_unref(parent);
        parent = above;
    }
    if (parent != NULL) {
        while (parent->parent != NULL) {
            parent = parent->parent;
        }
        kf_producer_observe_part(producer, parent);
    }
}

/* Note how the tries of a failed batch went, for the error. Its other fields may still change: the
 * data plane may hold it in a request. */
static void note_tries(kf_batch *batch) {
    const kf_env *env = &batch->queue->producer->env;
    batch->tries = batch->attempts;
    batch->last_answer = batch->last_error;
    batch->wire_size = batch->coded != NULL ? batch->coded->size : batch->size;
    batch->failed_at = env->now(env->context);
}

void kf_batch_end(kf_batch *batch, int state, int32_t error_code, int32_t outcome,
                  int64_t base_offset, int64_t append_time_ms) {
    kf_producer *producer = batch->queue->producer;
    kf_batch *parent = batch->parent;
    bool in_request = kf_get(&batch->state) == KF_BATCH_IN_FLIGHT;
    batch->base_offset = base_offset;
    batch->append_time_ms = append_time_ms;
    batch->error_code = error_code;
    batch->outcome = outcome;
    if (state == KF_BATCH_ACKED) {
        kf_count(&producer->stats.records_acked, batch->record_count);
        kf_count(&producer->stats.batches_acked, 1);
        kf_count(&batch->queue->records_acked, batch->record_count);
        kf_count(&batch->queue->bytes_acked, (int64_t)batch->size);
    } else {
        note_tries(batch);
        kf_count(&producer->stats.records_failed, batch->record_count);
        kf_count(&producer->stats.batches_failed, 1);
        kf_count(&batch->queue->records_failed, batch->record_count);
    }
    kf_add(&batch->queue->load, -1);
    if (!in_request) {
        kf_batch_release_memory(batch);
    }
    batch->expired = in_request;
    atomic_store_explicit(&batch->state, state, memory_order_seq_cst);
    /* Observers come first. A flush waits until the batch has left the list of incomplete ones; by
     * then it must find the batch among the observed ones. */
    if (parent == NULL) {
        kf_producer_observe(producer, batch);
    } else {
        child_ended(producer, parent);
    }
    kf_producer_ended(producer, batch);
    if (!in_request) {
        kf_batch_unref(batch); /* else the request's end does this */
    }
}

static bool has_ended(int state) {
    return state == KF_BATCH_ACKED || state == KF_BATCH_FAILED;
}

bool kf_batch_is_done(kf_batch *batch) {
    int state = kf_get(&batch->state);
    if (state != KF_BATCH_SPLIT) {
        return has_ended(state);
    }
    for (kf_batch *child = batch->children; child != NULL; child = child->sibling) {
        if (!kf_batch_is_done(child)) {
            return false;
        }
    }
    return true;
}

bool kf_records_are_done(kf_batch *batch, int32_t index, int32_t count) {
    int state = kf_get(&batch->state);
    if (state != KF_BATCH_SPLIT) {
        return has_ended(state);
    }
    while (count > 0) {
        int32_t at = index;
        kf_batch *part = kf_batch_resolve(batch, &at);
        if (!has_ended(kf_get(&part->state))) {
            return false;
        }
        int32_t done = kf_get(&part->record_count) - at;
        index += done;
        count -= done;
    }
    return true;
}

kf_batch *kf_batch_resolve(kf_batch *batch, int32_t *index) {
    while (kf_get(&batch->state) == KF_BATCH_SPLIT) {
        kf_batch *child = batch->children;
        while (child->sibling != NULL && child->sibling->first_index <= *index) {
            child = child->sibling;
        }
        *index -= child->first_index;
        batch = child;
    }
    return batch;
}

/* ---- compression ---- */

size_t kf_batch_records_size(const kf_batch *batch) {
    return batch->size - KF_BATCH_HEADER_SIZE;
}

void kf_batch_gather(const kf_batch *batch, uint8_t *out) {
    size_t skip = KF_BATCH_HEADER_SIZE;
    for (const kf_slab *slab = batch->slabs; slab != NULL; slab = slab->next) {
        out = kf_put_bytes(out, slab->data + skip, slab->size - skip);
        skip = 0;
    }
}

void kf_queue_coded(kf_queue *queue, kf_batch *batch, kf_slab *coded) {
    batch->coded = coded;
    kf_set(&batch->coding, coded != NULL ? KF_CODING_DONE : KF_CODING_USELESS);
    kf_producer_notify(queue->producer, queue, KF_WAKE_FULL);
}
