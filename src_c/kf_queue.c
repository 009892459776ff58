#include "kf_queue.h"

#include <stdlib.h>

/* ---- life of a queue ---- */

void kf_queue_init(kf_queue *queue, kf_plane *plane, kf_topic *topic, int64_t id,
                   int32_t partition) {
    memset(queue, 0, sizeof *queue);
    kf_mutex_init(&queue->lock);
    queue->plane = plane;
    queue->topic = topic;
    queue->id = id;
    queue->partition = partition;
    queue->sealed_tail = &queue->sealed;
    queue->coding_tail = &queue->coding;
    queue->seal_size = plane->seal_size;
    queue->producer_id = -1;
    queue->epoch = -1;
    kf_lock(&plane->lock);
    queue->registered = plane->queues;
    plane->queues = queue;
    kf_unlock(&plane->lock);
}

void kf_queue_destroy(kf_queue *queue) {
    if (queue->parked != NULL) {
        kf_batch_unref(queue->parked);
    }
    kf_mutex_destroy(&queue->lock);
}

/* ---- the slabs of a batch ---- */

/* Add a slab: records go there from now on. */
static void add_slab(kf_batch *batch, kf_slab *slab) {
    if (batch->slabs == NULL) {
        batch->slabs = slab;
    } else {
        batch->last_slab->next = slab;
    }
    batch->last_slab = slab;
    batch->at = slab->data;
    batch->end = slab->data + slab->capacity;
}

/* Note how much of the last slab is in use: only `at` has told so far. */
static void close_slab(kf_batch *batch) {
    batch->last_slab->size = (size_t)(batch->at - batch->last_slab->data);
}

static size_t slab_room(const kf_batch *batch) {
    return batch->last_slab->capacity - (size_t)(batch->at - batch->last_slab->data);
}

/* Encode a record as number `index`, where `at` has room for it. */
static inline void put_record(kf_batch *batch, const kf_record *record, int64_t timestamp_ms,
                              int32_t index) {
    uint8_t *start = batch->at;
    batch->at = kf_record_put(start, record, timestamp_ms - batch->base_timestamp, index);
    batch->size += (size_t)(batch->at - start);
    if (timestamp_ms > batch->max_timestamp) {
        batch->max_timestamp = timestamp_ms;
    }
}

/* Batches begin on a cache line of their own: the first one is what every append touches. */
enum { CACHE_LINE = 64 };

static kf_batch *batch_new(kf_queue *queue, size_t slab_size, bool beyond) {
    size_t size = (sizeof(kf_batch) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    kf_batch *batch = aligned_alloc(CACHE_LINE, size);
    if (batch == NULL) {
        return NULL;
    }
    kf_slab *slab = kf_pool_take(&queue->plane->pool, slab_size, beyond);
    if (slab == NULL) {
        free(batch);
        return NULL;
    }
    memset(batch, 0, size);
    add_slab(batch, slab);
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

/* ---- the caller's side ---- */

/* Move the open batch to the sealed ones. Called with the lock held. */
static void seal(kf_queue *queue) {
    kf_batch *batch = queue->open;
    queue->open = NULL;
    close_slab(batch);
    kf_set(&batch->state, KF_BATCH_WAITING);
    batch->next = NULL;
    *queue->sealed_tail = batch;
    queue->sealed_tail = &batch->next;
    queue->sealed_count++;
}

/* Open a batch whose first record needs `need` bytes. Called with the lock held. */
static kf_batch *open_batch(kf_queue *queue, size_t need, int64_t timestamp_ms) {
    kf_plane *plane = queue->plane;
    if (kf_get(&plane->closed)) {
        return NULL; /* nobody would send it; the caller looks why there is no room */
    }
    kf_batch *batch = batch_new(queue, KF_BATCH_HEADER_SIZE + need, false);
    if (batch == NULL) {
        return NULL;
    }
    batch->created = plane->env.now(plane->env.context);
    batch->base_timestamp = timestamp_ms;
    batch->max_timestamp = timestamp_ms;
    if (kf_get(&plane->flushing) > 0) {
        batch->urgency = KF_URGENT;
    } else {
        batch->urgency = plane->linger <= 0.0 ? KF_SENDABLE : KF_LINGERS;
    }
    queue->open = batch;
    kf_add(&queue->load, 1);
    kf_plane_opened(plane, batch, NULL);
    return batch;
}

/* Give the open batch one more slab, twice as large as its last, for a record of `need` bytes.
 * A chain is never copied: a batch that stays small costs 16 KiB, one that fills few slabs. */
static bool grow(kf_queue *queue, kf_batch *batch, size_t need) {
    size_t left = queue->seal_size > batch->size ? queue->seal_size - batch->size : 0;
    size_t size = batch->last_slab->capacity * 2;
    if (size > left) {
        size = left;
    }
    if (size < need) {
        size = need;
    }
    kf_slab *slab = kf_pool_take(&queue->plane->pool, size, false);
    if (slab == NULL && size > need) {
        slab = kf_pool_take(&queue->plane->pool, need, false); /* what is left will do */
    }
    if (slab == NULL) {
        return false;
    }
    close_slab(batch);
    add_slab(batch, slab);
    return true;
}

/* Let the open batch take records up to the end of its slab or of its size, and `need` bytes in
 * any case. Called with the lock held. */
static void extend(const kf_queue *queue, kf_batch *batch, size_t need) {
    size_t room = slab_room(batch);
    size_t left = queue->seal_size > batch->size ? queue->seal_size - batch->size : 0;
    if (left < need) {
        left = need;
    }
    batch->end = batch->at + (room < left ? room : left);
}

static inline int more_urgent(int level, int other) {
    return level == 0 || other < level ? other : level;
}

static inline bool has_room(const kf_batch *batch, size_t need) {
    return batch != NULL && (size_t)(batch->end - batch->at) >= need;
}

/* Make sure that the open batch has room for `need` bytes, where has_room says that it has none.
 * Called with the lock held. */
static int make_room(kf_queue *queue, size_t need, int64_t timestamp_ms, int flags, int *level) {
    kf_batch *batch = queue->open;
    if (batch != NULL && batch->size + need > queue->seal_size) {
        seal(queue);
        *level = KF_WAKE_FULL;
        batch = NULL;
    }
    if (batch == NULL) {
        if (KF_BATCH_HEADER_SIZE + need > queue->plane->max_request_size) {
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
    } else if (slab_room(batch) < need && !grow(queue, batch, need)) {
        return KF_APPEND_FULL;
    }
    extend(queue, batch, need);
    return KF_APPEND_OK;
}

/* Count a handle; all together hold one reference. It stays where the last handle left it, for a
 * caller who drops each handle at once would pay for two atomic additions per record. */
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

/* The open batch has got records: is it worth sending now? Called with the lock held. */
static inline void maybe_sendable(kf_plane *plane, kf_batch *batch, int *level) {
    if (batch->urgency == KF_LINGERS && batch->size >= plane->batch_size) {
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
    if (!has_room(batch, need)) {
        result = make_room(queue, need, timestamp_ms, flags, &level);
        batch = queue->open;
    }
    if (result == KF_APPEND_OK) {
        int32_t index = atomic_load_explicit(&batch->record_count, memory_order_relaxed);
        put_record(batch, record, timestamp_ms, index);
        atomic_store_explicit(&batch->record_count, index + 1, memory_order_relaxed);
        if ((flags & KF_HOLD_HANDLE) != 0) {
            hold_handle(queue, batch);
        }
        *batch_out = batch;
        *index_out = index;
        maybe_sendable(queue->plane, batch, &level);
    }
    kf_unlock(&queue->lock);
    if (level != 0) {
        kf_plane_notify(queue->plane, queue, level);
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
    if (!has_room(batch, need)) {
        result = make_room(queue, need, timestamps_ms[0], flags, &level);
        batch = queue->open;
    }
    if (result == KF_APPEND_OK) {
        int32_t index = batch->record_count;
        do {
            put_record(batch, &records[i], timestamps_ms[i], index + i);
            i++;
            if (i == count) {
                break;
            }
            need = kf_record_size_max(&records[i]);
            if (!has_room(batch, need)) {
                if (batch->size + need > queue->seal_size ||
                    (slab_room(batch) < need && !grow(queue, batch, need))) {
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
        maybe_sendable(queue->plane, batch, &level);
    }
    kf_unlock(&queue->lock);
    *done = i;
    if (level != 0) {
        kf_plane_notify(queue->plane, queue, level);
    }
    return result;
}

void kf_queue_forget_bulk(kf_queue *queue, kf_batch *batch, int32_t count) {
    kf_lock(&queue->lock);
    batch->bulk_records -= count;
    kf_unlock(&queue->lock);
}

void kf_queue_kick(kf_queue *queue, kf_batch *batch) {
    bool kicked = false;
    kf_lock(&queue->lock);
    if (queue->open == batch && batch->urgency != KF_URGENT) {
        batch->urgency = KF_URGENT;
        kicked = true;
    }
    kf_unlock(&queue->lock);
    if (kicked) {
        kf_plane_notify(queue->plane, queue, KF_WAKE_FULL);
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
        queue->sealed_count--;
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
        queue->sealed_count--;
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

kf_batch *kf_queue_take_unresolved(kf_queue *queue, int64_t serial, int32_t slice) {
    for (kf_batch **at = &queue->unresolved; *at != NULL; at = &(*at)->next) {
        kf_batch *batch = *at;
        if (batch->serial == serial && batch->slice == slice) {
            *at = batch->next;
            batch->next = NULL;
            return batch;
        }
    }
    return NULL;
}

bool kf_leaves_doubt(int16_t error_code) {
    switch (error_code) {
    case -1: /* UNKNOWN_SERVER_ERROR */
    case 6:  /* NOT_LEADER_OR_FOLLOWER: may have been the leader, and lost it while replicating */
    case 7:  /* REQUEST_TIMED_OUT: appended, not replicated in time */
    case 13: /* NETWORK_EXCEPTION */
    case 20: /* NOT_ENOUGH_REPLICAS_AFTER_APPEND */
    case 56: /* KAFKA_STORAGE_ERROR: the disk failed, before or after the write */
        return true;
    default:
        return false;
    }
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
        batch->doubt = false;
        base_sequence = kf_sequence_after(base_sequence, batch->record_count);
    }
    queue->next_sequence = base_sequence;
}

/* ---- splitting ---- */

/* Where a walk over the records of a batch stands. */
typedef struct walk {
    kf_slab *slab;
    kf_reader reader;
} walk;

/* Read the next record of the batch; false at the end. The bytes are our own: a malformed record
 * is a bug here and ends the walk early, which the caller sees by its count. */
static bool next_record(walk *at, kf_record *record, int64_t *timestamp_delta) {
    kf_reader body;
    while (kf_left(&at->reader) == 0) {
        at->slab = at->slab->next;
        if (at->slab == NULL) {
            return false;
        }
        at->reader = kf_reader_of(at->slab->data, at->slab->size);
    }
    kf_enter(&at->reader, &body, kf_read_varint(&at->reader));
    kf_read_i8(&body);
    *timestamp_delta = kf_read_varlong(&body);
    kf_read_varint(&body); /* offset delta: given anew */
    record->key_len = kf_read_varint(&body);
    record->key = record->key_len < 0 ? NULL : kf_read_span(&body, record->key_len);
    record->value_len = kf_read_varint(&body);
    record->value = record->value_len < 0 ? NULL : kf_read_span(&body, record->value_len);
    record->headers_size = (int64_t)kf_left(&body);
    record->headers = kf_read_span(&body, record->headers_size);
    return !body.bad;
}

/* Copy one record into the child's last slab or a new one; false if there is no memory. */
static bool copy_record(kf_queue *queue, kf_batch *child, const kf_record *record,
                        int64_t timestamp) {
    size_t need = kf_record_size_max(record);
    if (!has_room(child, need)) {
        kf_slab *slab = kf_pool_take(&queue->plane->pool, need, true);
        if (slab == NULL) {
            return false;
        }
        close_slab(child);
        add_slab(child, slab);
    }
    if (child->record_count == 0) {
        child->base_timestamp = timestamp;
        child->max_timestamp = timestamp;
    }
    put_record(child, record, timestamp, child->record_count);
    child->record_count++;
    return true;
}

static kf_batch *child_of(kf_queue *queue, kf_batch *parent, int32_t first_index, size_t size) {
    kf_batch *child = batch_new(queue, size, true);
    if (child == NULL) {
        return NULL;
    }
    child->created = parent->created;
    child->serial = parent->serial;
    child->order = parent->order;
    child->slice = parent->slice + first_index;
    child->first_index = first_index;
    child->state = KF_BATCH_WAITING;
    child->producer_id = parent->producer_id;
    child->epoch = parent->epoch;
    child->sequenced = parent->sequenced;
    child->base_sequence =
        parent->sequenced ? kf_sequence_after(parent->base_sequence, first_index) : -1;
    child->attempts = parent->attempts;
    child->parent = parent;
    return child;
}

static void discard(kf_plane *plane, kf_batch *child) {
    while (child != NULL) {
        kf_batch *sibling = child->sibling;
        kf_pool_give(&plane->pool, child->slabs);
        free(child);
        child = sibling;
    }
}

bool kf_queue_split(kf_queue *queue, kf_batch *batch, size_t size) {
    kf_plane *plane = queue->plane;
    kf_batch *children = NULL;
    kf_batch **tail = &children;
    kf_batch *child = NULL;
    kf_record record;
    int64_t delta;
    int32_t count = 0;
    int32_t copied = 0;
    walk at = {batch->slabs, kf_reader_of(batch->slabs->data, batch->slabs->size)};
    kf_read_span(&at.reader, KF_BATCH_HEADER_SIZE);
    if (batch->record_count < 2) {
        return false;
    }
    if (size > batch->size / 2) {
        size = batch->size / 2; /* as it is it was too large: whatever the limit, come closer */
    }
    while (next_record(&at, &record, &delta)) {
        size_t need = kf_record_size_max(&record);
        if (child == NULL || child->size + need > size) {
            child = child_of(queue, batch, copied, KF_BATCH_HEADER_SIZE + need);
            if (child == NULL) {
                break;
            }
            *tail = child;
            tail = &child->sibling;
            count++;
        }
        if (!copy_record(queue, child, &record, batch->base_timestamp + delta)) {
            break;
        }
        copied++;
    }
    if (copied != batch->record_count || count < 2) {
        discard(plane, children);
        return false;
    }
    batch->children = children;
    batch->children_left = count;
    for (child = children; child != NULL; child = child->sibling) {
        close_slab(child);
        kf_batch_ref(child); /* the parent's, so that handles find their results */
        kf_plane_opened(plane, child, batch);
        kf_add(&queue->load, 1);
    }
    kf_set(&batch->state, KF_BATCH_SPLIT);
    kf_plane_ended(plane, batch);
    kf_add(&queue->load, -1);
    for (child = children; child != NULL; child = child->sibling) {
        kf_queue_return(queue, child);
    }
    kf_batch_release_memory(batch);
    return true;
}
