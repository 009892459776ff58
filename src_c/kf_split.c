/* A batch that is larger than its topic takes becomes several. Its records are read from its slabs
 * and written into children, which take its place in the queue. The parent stays, because handles
 * point to it; kf_batch_resolve finds their records in the children.
 */
#include "kf_producer.h"
#include "kf_fill.h"

#include <stdlib.h>

/* Where a walk over the records of a batch stands. */
typedef struct walk {
    kf_slab *slab;
    kf_reader reader;
} walk;

/* Read the next record of the batch; false at the end. The bytes are our own, so a malformed record
 * is a bug here. It ends the walk early, and the caller sees a count that is too low. */
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
    kf_read_varint(&body); /* offset delta: each child counts its own */
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
    if (!kf_fill_fits(child, need)) {
        kf_slab *slab = kf_pool_take(&queue->producer->pool, need, true);
        if (slab == NULL) {
            return false;
        }
        kf_fill_close(child);
        kf_fill_slab(child, slab);
    }
    if (child->record_count == 0) {
        child->base_timestamp = timestamp;
        child->max_timestamp = timestamp;
    }
    kf_fill_record(child, record, timestamp, child->record_count);
    child->record_count++;
    return true;
}

static kf_batch *child_of(kf_queue *queue, kf_batch *parent, int32_t first_index, size_t size) {
    kf_batch *child = kf_batch_new(queue, size, true);
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
    child->attempts = parent->attempts; /* but not its failures: this one is another batch */
    child->maybe_written = parent->maybe_written;
    child->parent = parent;
    return child;
}

static void discard(kf_producer *producer, kf_batch *child) {
    while (child != NULL) {
        kf_batch *sibling = child->sibling;
        kf_pool_give(&producer->pool, child->slabs);
        free(child);
        child = sibling;
    }
}

/* Put children among the unresolved batches, where their parent would stand. */
static void insert(kf_queue *queue, kf_batch *children) {
    kf_queue_return(queue, children);
    for (kf_batch *child = children; child->sibling != NULL; child = child->sibling) {
        child->sibling->next = child->next;
        child->next = child->sibling;
    }
}

bool kf_queue_split(kf_queue *queue, kf_batch *batch, size_t size) {
    kf_producer *producer = queue->producer;
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
        size = batch->size / 2; /* the whole was too large, whatever the limit is */
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
        discard(producer, children);
        return false;
    }
    batch->children = children;
    batch->children_left = count;
    for (child = children; child != NULL; child = child->sibling) {
        kf_fill_close(child);
        kf_batch_ref(child); /* the parent's, so that handles find their results */
        kf_producer_opened(producer, child, batch);
        kf_add(&queue->load, 1);
    }
    kf_set(&batch->state, KF_BATCH_SPLIT);
    kf_producer_ended(producer, batch);
    kf_add(&queue->load, -1);
    insert(queue, children);
    kf_batch_release_memory(batch);
    return true;
}
