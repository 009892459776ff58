#include "kf_queue.h"
#include "kf_producer.h"
#include "kf_fill.h"

/* ---- making and freeing a queue ---- */

void kf_queue_init(kf_queue *queue, kf_producer *producer, kf_topic *topic, int64_t id,
                   int32_t partition) {
    memset(queue, 0, sizeof *queue);
    kf_mutex_init(&queue->lock);
    queue->producer = producer;
    queue->topic = topic;
    queue->id = id;
    queue->partition = partition;
    queue->sealed_tail = &queue->sealed;
    queue->coding_tail = &queue->coding;
    queue->seal_size = kf_topic_seal_size(producer, topic);
    queue->producer_id = -1;
    queue->epoch = -1;
    kf_lock(&producer->lock);
    queue->registered = producer->queues;
    producer->queues = queue;
    kf_unlock(&producer->lock);
}

void kf_queue_destroy(kf_queue *queue) {
    if (queue->parked != NULL) {
        kf_batch_unref(queue->parked);
    }
    kf_mutex_destroy(&queue->lock);
}

/* ---- the caller's side ---- */

/* Move the open batch to the sealed ones. Called with the lock held. */
static void seal(kf_queue *queue) {
    kf_batch *batch = queue->open;
    queue->open = NULL;
    kf_fill_close(batch);
    kf_set(&batch->state, KF_BATCH_WAITING);
    batch->next = NULL;
    *queue->sealed_tail = batch;
    queue->sealed_tail = &batch->next;
}

/* Open a batch whose first record needs `need` bytes. Called with the lock held. */
static kf_batch *open_batch(kf_queue *queue, size_t need, int64_t timestamp_ms) {
    kf_producer *producer = queue->producer;
    if (kf_get(&producer->closed) || kf_get(&producer->held)) {
        return NULL; /* nobody would send it; the caller finds out why there is no room */
    }
    kf_batch *batch = kf_batch_new(queue, KF_BATCH_HEADER_SIZE + need, false);
    if (batch == NULL) {
        return NULL;
    }
    batch->created = producer->env.now(producer->env.context);
    batch->base_timestamp = timestamp_ms;
    batch->max_timestamp = timestamp_ms;
    if (kf_get(&producer->flushing) > 0) {
        batch->urgency = KF_URGENT;
    } else {
        batch->urgency = producer->linger <= 0.0 ? KF_SENDABLE : KF_LINGERS;
    }
    queue->open = batch;
    kf_add(&queue->load, 1);
    kf_producer_opened(producer, batch, NULL);
    return batch;
}

/* Give the open batch one more slab, twice as large as its last, for a record of `need` bytes.
 * Slabs are never copied: a batch that stays small costs 16 KiB, a full one is a few slabs. */
static bool grow(kf_queue *queue, kf_batch *batch, size_t need) {
    size_t left = queue->seal_size > batch->size ? queue->seal_size - batch->size : 0;
    size_t size = batch->last_slab->capacity * 2;
    if (size > left) {
        size = left;
    }
    if (size < need) {
        size = need;
    }
    kf_slab *slab = kf_pool_take(&queue->producer->pool, size, false);
    if (slab == NULL && size > need) {
        slab = kf_pool_take(&queue->producer->pool, need, false); /* what is left will do */
    }
    if (slab == NULL) {
        return false;
    }
    kf_fill_close(batch);
    kf_fill_slab(batch, slab);
    return true;
}

/* Let the open batch take records up to the end of its slab or of its size, and `need` bytes in
 * any case. Called with the lock held. */
static void extend(const kf_queue *queue, kf_batch *batch, size_t need) {
    size_t room = kf_fill_room(batch);
    size_t left = queue->seal_size > batch->size ? queue->seal_size - batch->size : 0;
    if (left < need) {
        left = need;
    }
    batch->end = batch->at + (room < left ? room : left);
}

static inline int more_urgent(int level, int other) {
    return level == 0 || other < level ? other : level;
}

/* Make sure that the open batch has room for `need` bytes, where kf_fill_fits says that it has
 * none. Called with the lock held. */
static int make_room(kf_queue *queue, size_t need, int64_t timestamp_ms, int flags, int *level) {
    kf_batch *batch = queue->open;
    if (batch != NULL && batch->size + need > queue->seal_size) {
        seal(queue);
        *level = KF_WAKE_FULL;
        batch = NULL;
    }
    if (batch == NULL) {
        if (KF_BATCH_HEADER_SIZE + need > queue->producer->max_request_size) {
            return KF_APPEND_TOO_LARGE;
        }
        if ((flags & KF_LEAVE_FULL) != 0) {
            return KF_APPEND_NEXT;
        }
        batch = open_batch(queue, need, timestamp_ms);
        if (batch == NULL) {
            return KF_APPEND_FULL;
        }
        *level = more_urgent(*level, KF_WAKE_OPENED - batch->urgency);
    } else if (kf_fill_room(batch) < need && !grow(queue, batch, need)) {
        return KF_APPEND_FULL;
    }
    extend(queue, batch, need);
    return KF_APPEND_OK;
}

/* Count a handle. All handles of a batch hold one reference together. The last handle that goes
 * leaves it parked for the batch's next handle. That saves two atomic additions per record of a
 * caller that ignores the result of `send`. */
static inline void hold_handle(kf_queue *queue, kf_batch *batch) {
    if (batch->handles++ == 0) {
        if (queue->parked == batch) {
            queue->parked = NULL;
        } else {
            kf_batch_ref(batch);
        }
    }
}

void kf_queue_drop_handles(kf_queue *queue, kf_batch *batch, int32_t count) {
    batch->handles -= count;
    if (batch->handles == 0) {
        kf_batch *surplus = batch;
        if (kf_get(&batch->state) == KF_BATCH_OPEN) {
            surplus = queue->parked;
            queue->parked = batch;
        }
        if (surplus != NULL) {
            kf_batch_unref(surplus);
        }
    }
}

/* Make the open batch sendable if it has reached batch.size. Called with the lock held. */
static inline void maybe_sendable(kf_producer *producer, kf_batch *batch, int *level) {
    if (batch->urgency == KF_LINGERS && batch->size >= producer->batch_size) {
        batch->urgency = KF_SENDABLE;
        *level = more_urgent(*level, KF_WAKE_SENDABLE);
    }
}

int kf_queue_append(kf_queue *queue, const kf_record *record, int64_t timestamp_ms, int flags,
                    kf_batch **batch_out, int32_t *index_out) {
    size_t need = kf_record_size_max(record);
    int result = KF_APPEND_OK;
    int level = 0;
    kf_lock(&queue->lock);
    kf_batch *batch = queue->open;
    if (!kf_fill_fits(batch, need)) {
        result = make_room(queue, need, timestamp_ms, flags, &level);
        batch = queue->open;
    }
    if (result == KF_APPEND_OK) {
        int32_t index = atomic_load_explicit(&batch->record_count, memory_order_relaxed);
        kf_fill_record(batch, record, timestamp_ms, index);
        atomic_store_explicit(&batch->record_count, index + 1, memory_order_relaxed);
        if ((flags & KF_HOLD_HANDLE) != 0) {
            hold_handle(queue, batch);
        }
        *batch_out = batch;
        *index_out = index;
        maybe_sendable(queue->producer, batch, &level);
    }
    kf_unlock(&queue->lock);
    if (level != 0) {
        kf_producer_notify(queue->producer, queue, level);
    }
    return result;
}

int kf_queue_append_run(kf_queue *queue, const kf_record *records, const int64_t *timestamps_ms,
                        int32_t count, int flags, kf_batch **batch_out, int32_t *index_out,
                        int32_t *done) {
    size_t need = kf_record_size_max(records);
    int result = KF_APPEND_OK;
    int level = 0;
    int32_t i = 0;
    kf_lock(&queue->lock);
    kf_batch *batch = queue->open;
    if (!kf_fill_fits(batch, need)) {
        result = make_room(queue, need, timestamps_ms[0], flags, &level);
        batch = queue->open;
    }
    if (result == KF_APPEND_OK) {
        int32_t index = batch->record_count;
        do {
            kf_fill_record(batch, &records[i], timestamps_ms[i], index + i);
            i++;
            if (i == count) {
                break;
            }
            need = kf_record_size_max(&records[i]);
            if (!kf_fill_fits(batch, need)) {
                if (batch->size + need > queue->seal_size ||
                    (kf_fill_room(batch) < need && !grow(queue, batch, need))) {
                    break;
                }
                extend(queue, batch, need);
            }
        } while (true);
        atomic_store_explicit(&batch->record_count, index + i, memory_order_relaxed);
        batch->bulk_records += i;
        if (batch != *batch_out) {
            kf_batch_ref(batch);
        }
        *batch_out = batch;
        *index_out = index;
        maybe_sendable(queue->producer, batch, &level);
    }
    kf_unlock(&queue->lock);
    *done = i;
    if (level != 0) {
        kf_producer_notify(queue->producer, queue, level);
    }
    return result;
}

void kf_queue_forget_bulk(kf_queue *queue, kf_batch *batch, int32_t count) {
    kf_lock(&queue->lock);
    batch->bulk_records -= count;
    kf_unlock(&queue->lock);
}

void kf_queue_seal(kf_queue *queue) {
    bool sealed = false;
    kf_lock(&queue->lock);
    if (queue->open != NULL) {
        seal(queue);
        sealed = true;
    }
    kf_unlock(&queue->lock);
    if (sealed) {
        kf_producer_notify(queue->producer, queue, KF_WAKE_FULL);
    }
}

void kf_queue_urge(kf_queue *queue, kf_batch *batch) {
    bool urged = false;
    kf_lock(&queue->lock);
    if (queue->open == batch && batch->urgency != KF_URGENT) {
        batch->urgency = KF_URGENT;
        urged = true;
    }
    kf_unlock(&queue->lock);
    if (urged) {
        kf_producer_notify(queue->producer, queue, KF_WAKE_FULL);
    }
}

/* ---- the data plane's side ---- */

bool kf_queue_look(kf_queue *queue, int *urgency, double *opened) {
    kf_lock(&queue->lock);
    const kf_batch *first = queue->sealed != NULL ? queue->sealed : queue->open;
    *urgency = queue->sealed != NULL ? KF_URGENT : KF_LINGERS;
    *opened = 0.0;
    if (first != NULL) {
        *opened = first->created;
        if (first->urgency > *urgency) {
            *urgency = first->urgency;
        }
    }
    kf_unlock(&queue->lock);
    return first != NULL;
}

kf_batch *kf_queue_take_sealed(kf_queue *queue, bool open, size_t limit, size_t seal_size) {
    kf_lock(&queue->lock);
    queue->seal_size = seal_size;
    if (queue->sealed == NULL && queue->open != NULL && open && queue->open->size <= limit) {
        seal(queue);
    }
    kf_batch *batch = queue->sealed;
    if (batch != NULL && batch->size <= limit) {
        queue->sealed = batch->next;
        if (queue->sealed == NULL) {
            queue->sealed_tail = &queue->sealed;
        }
        batch->next = NULL;
        batch->order = queue->next_order++;
    } else {
        batch = NULL;
    }
    kf_unlock(&queue->lock);
    return batch;
}

kf_batch *kf_queue_take_overdue(kf_queue *queue, double cutoff) {
    kf_batch *taken = NULL;
    kf_batch **tail = &taken;
    kf_lock(&queue->lock);
    if (queue->open != NULL && queue->open->created <= cutoff) {
        seal(queue);
    }
    while (queue->sealed != NULL && queue->sealed->created <= cutoff) {
        *tail = queue->sealed;
        tail = &queue->sealed->next;
        queue->sealed = queue->sealed->next;
    }
    if (queue->sealed == NULL) {
        queue->sealed_tail = &queue->sealed;
    }
    *tail = NULL;
    kf_unlock(&queue->lock);
    return taken;
}

static bool comes_before(const kf_batch *batch, const kf_batch *other) {
    return batch->order < other->order ||
           (batch->order == other->order && batch->slice < other->slice);
}

void kf_queue_return(kf_queue *queue, kf_batch *batch) {
    kf_batch **at = &queue->unresolved;
    while (*at != NULL && comes_before(*at, batch)) {
        at = &(*at)->next;
    }
    batch->next = *at;
    *at = batch;
}

kf_batch *kf_queue_take_first(kf_queue *queue) {
    kf_batch *batch = queue->unresolved;
    if (batch != NULL) {
        queue->unresolved = batch->next;
        batch->next = NULL;
    }
    return batch;
}

static kf_batch **place_of(kf_queue *queue, int64_t serial, int32_t slice) {
    kf_batch **at = &queue->unresolved;
    while (*at != NULL && ((*at)->serial != serial || (*at)->slice != slice)) {
        at = &(*at)->next;
    }
    return at;
}

kf_batch *kf_queue_find_unresolved(kf_queue *queue, int64_t serial, int32_t slice) {
    return *place_of(queue, serial, slice);
}

kf_batch *kf_queue_take_unresolved(kf_queue *queue, int64_t serial, int32_t slice) {
    kf_batch **at = place_of(queue, serial, slice);
    kf_batch *batch = *at;
    if (batch != NULL) {
        *at = batch->next;
        batch->next = NULL;
    }
    return batch;
}

bool kf_maybe_written(int16_t error_code) {
    switch (error_code) {
    case -1: /* UNKNOWN_SERVER_ERROR */
    case 6:  /* NOT_LEADER_OR_FOLLOWER: perhaps the leader until it was replicating this */
    case 7:  /* REQUEST_TIMED_OUT: appended, not replicated in time */
    case 13: /* NETWORK_EXCEPTION */
    case 20: /* NOT_ENOUGH_REPLICAS_AFTER_APPEND */
    case 56: /* KAFKA_STORAGE_ERROR: the disk failed, before or after the write */
        return true;
    default:
        return false;
    }
}

int kf_batch_outcome(kf_batch *batch) {
    if (batch->attempts == 0) {
        return KF_OUTCOME_NOT_SENT; /* nor was the batch that it is a part of */
    }
    if (batch->maybe_written || kf_get(&batch->state) == KF_BATCH_IN_FLIGHT) {
        return KF_OUTCOME_MAYBE_WRITTEN;
    }
    return KF_OUTCOME_REJECTED;
}

int32_t kf_sequence_after(int32_t base_sequence, int32_t record_count) {
    return (int32_t)(((int64_t)base_sequence + record_count) & INT32_MAX);
}

void kf_queue_renumber(kf_queue *queue, int64_t serial, int32_t slice, int64_t producer_id,
                       int16_t epoch, int32_t base_sequence) {
    if (producer_id >= 0) {
        queue->producer_id = producer_id;
        queue->epoch = epoch;
    }
    for (kf_batch *batch = queue->unresolved; batch != NULL; batch = batch->next) {
        if (batch->serial < serial || (batch->serial == serial && batch->slice <= slice)) {
            continue;
        }
        batch->producer_id = queue->producer_id;
        batch->epoch = queue->epoch;
        batch->base_sequence = base_sequence;
        batch->sequenced = true;
        batch->maybe_written = false;
        base_sequence = kf_sequence_after(base_sequence, batch->record_count);
    }
    queue->next_sequence = base_sequence;
}
