#include "kf_producer.h"

#include <stdlib.h>
#include <string.h>

/* ---- making and freeing ---- */

kf_producer *kf_producer_new(kf_plane *plane, size_t buffer_memory) {
    kf_producer *producer = calloc(1, sizeof *producer);
    if (producer == NULL) {
        return NULL;
    }
    producer->plane = plane;
    producer->env = plane->env;
    kf_pool_init(&producer->pool, buffer_memory);
    kf_mutex_init(&producer->lock);
    producer->inbox_tail = &producer->inbox;
    producer->inbox_level = KF_WAKE_NEVER;
    producer->observed_tail = &producer->observed;
    producer->next_serial = 1;
    producer->next_generation = 1;
    producer->producer_id = -1;
    producer->epoch = -1;
    return producer;
}

void kf_producer_close(kf_producer *producer) {
    const double all_times = 1e300; /* a bulk call without the GIL may still open batches */
    kf_set(&producer->closed, 1);
    for (kf_queue *queue = kf_producer_queues(producer); queue != NULL; queue = queue->registered) {
        kf_queue_take_overdue(queue, all_times);
    }
}

void kf_producer_hold(kf_producer *producer) {
    kf_set(&producer->held, 1);
    for (kf_queue *queue = kf_producer_queues(producer); queue != NULL; queue = queue->registered) {
        kf_queue_seal(queue);
    }
}

void kf_producer_fail_all(kf_producer *producer) {
    while (producer->oldest != NULL) {
        kf_batch *batch = producer->oldest;
        int outcome = kf_batch_outcome(batch);
        kf_set(&batch->state, KF_BATCH_WAITING);
        kf_batch_end(batch, KF_BATCH_FAILED, KF_ERROR_CLOSED, outcome, -1, -1);
    }
}

/* ---- topics ---- */

kf_topic *kf_topic_new(kf_producer *producer, uint64_t seed) {
    kf_topic *topic = calloc(1, sizeof *topic);
    if (topic == NULL) {
        return NULL;
    }
    topic->id = producer->topics != NULL ? producer->topics->id + 1 : 0;
    topic->sticky = -1;
    topic->random = seed | 1;
    topic->next = producer->topics;
    producer->topics = topic;
    return topic;
}

static void topic_free(kf_topic *topic) {
    for (int32_t i = 0; i < topic->queue_count; i++) {
        kf_queue_destroy(topic->queues[i]);
        free(topic->queues[i]);
    }
    while (topic->retired != NULL) {
        kf_retired *retired = topic->retired;
        topic->retired = retired->next;
        free(retired->queues);
        free(retired);
    }
    for (int i = 0; i < KF_TOPIC_FORMATS; i++) {
        free(topic->field[i]);
    }
    free(topic->queues);
    free(topic);
}

/* A new array: the queues that exist, and memory for those to be added. NULL: out of memory. */
static kf_queue **extend(const kf_topic *topic, int32_t count) {
    kf_queue **queues = calloc((size_t)count, sizeof *queues);
    int32_t i = topic->queue_count;
    if (queues == NULL) {
        return NULL;
    }
    if (i > 0) {
        memcpy(queues, topic->queues, (size_t)i * sizeof *queues);
    }
    for (; i < count; i++) {
        queues[i] = malloc(sizeof **queues);
        if (queues[i] == NULL) {
            while (i-- > topic->queue_count) {
                free(queues[i]);
            }
            free(queues);
            return NULL;
        }
    }
    return queues;
}

bool kf_topic_grow(kf_producer *producer, kf_topic *topic, int32_t count, int64_t first_id) {
    kf_retired *retired = malloc(sizeof *retired);
    kf_queue **queues = retired != NULL ? extend(topic, count) : NULL;
    if (queues == NULL) {
        free(retired);
        return false;
    }
    for (int32_t i = topic->queue_count; i < count; i++) {
        kf_queue_init(queues[i], producer, topic, first_id + i - topic->queue_count, i);
    }
    retired->queues = topic->queues;
    retired->next = topic->retired;
    topic->retired = retired;
    topic->queues = queues;
    topic->queue_count = count;
    topic->partition_count = count;
    return true;
}

void kf_topic_resize(kf_topic *topic, int32_t count) {
    topic->partition_count = count;
    if (topic->sticky >= count) {
        topic->sticky = -1;
    }
}

void kf_topic_limit(kf_producer *producer, kf_topic *topic, size_t batch_limit, size_t wire_limit) {
    kf_set_long(&topic->batch_limit, (int64_t)batch_limit);
    topic->wire_limit = wire_limit;
    for (kf_queue *queue = kf_producer_queues(producer); queue != NULL; queue = queue->registered) {
        if (queue->topic == topic) {
            kf_lock(&queue->lock);
            queue->seal_size = kf_topic_seal_size(producer, topic);
            kf_unlock(&queue->lock);
        }
    }
}

size_t kf_topic_seal_size(const kf_producer *producer, kf_topic *topic) {
    size_t limit = (size_t)kf_get_long(&topic->batch_limit);
    return limit > 0 && limit < producer->seal_size ? limit : producer->seal_size;
}

void kf_producer_free(kf_producer *producer) {
    for (kf_batch *batch = kf_producer_take_observed(producer); batch != NULL;) {
        kf_batch *next = batch->next;
        kf_batch_unref(batch);
        batch = next;
    }
    while (producer->topics != NULL) {
        kf_topic *topic = producer->topics;
        producer->topics = topic->next;
        topic_free(topic);
    }
    kf_pool_destroy(&producer->pool);
    kf_mutex_destroy(&producer->lock);
    free(producer->scratch);
    free(producer);
}

/* ---- the inbox ---- */

void kf_producer_urge(kf_producer *producer) {
    kf_lock(&producer->lock);
    if (producer->inbox_level > KF_WAKE_FULL) {
        producer->inbox_level = KF_WAKE_FULL;
    }
    kf_unlock(&producer->lock);
    kf_plane_wake(producer->plane, KF_WAKE_FULL);
}

void kf_producer_notify(kf_producer *producer, kf_queue *queue, int level) {
    kf_lock(&producer->lock);
    if (!queue->in_inbox) {
        queue->in_inbox = true;
        queue->inbox_next = NULL;
        *producer->inbox_tail = queue;
        producer->inbox_tail = &queue->inbox_next;
    }
    if (level < producer->inbox_level) {
        producer->inbox_level = level;
    }
    kf_unlock(&producer->lock);
    kf_plane_wake(producer->plane, level);
}

kf_queue *kf_producer_take_inbox(kf_producer *producer) {
    kf_lock(&producer->lock);
    kf_queue *taken = producer->inbox;
    producer->inbox = NULL;
    producer->inbox_tail = &producer->inbox;
    producer->inbox_level = KF_WAKE_NEVER;
    for (kf_queue *queue = taken; queue != NULL; queue = queue->inbox_next) {
        queue->in_inbox = false;
        queue->taken_next = queue->inbox_next;
    }
    kf_unlock(&producer->lock);
    return taken;
}

bool kf_producer_has_news(kf_producer *producer, int level) {
    kf_lock(&producer->lock);
    bool news = producer->inbox_level <= level;
    kf_unlock(&producer->lock);
    return news;
}

kf_queue *kf_producer_queues(kf_producer *producer) {
    kf_lock(&producer->lock);
    kf_queue *queues = producer->queues;
    kf_unlock(&producer->lock);
    return queues;
}

/* ---- incomplete batches, in the order of their opening ---- */

void kf_producer_opened(kf_producer *producer, kf_batch *batch, kf_batch *newer) {
    kf_lock(&producer->lock);
    if (newer == NULL) {
        batch->serial = producer->next_serial++;
    }
    batch->newer = newer;
    batch->older = newer != NULL ? newer->older : producer->newest;
    if (batch->older != NULL) {
        batch->older->newer = batch;
    } else {
        producer->oldest = batch;
    }
    if (newer != NULL) {
        newer->older = batch;
    } else {
        producer->newest = batch;
    }
    kf_unlock(&producer->lock);
}

void kf_producer_ended(kf_producer *producer, kf_batch *batch) {
    kf_lock(&producer->lock);
    if (batch->older != NULL) {
        batch->older->newer = batch->newer;
    } else {
        producer->oldest = batch->newer;
    }
    if (batch->newer != NULL) {
        batch->newer->older = batch->older;
    } else {
        producer->newest = batch->older;
    }
    batch->older = batch->newer = NULL;
    kf_unlock(&producer->lock);
    kf_plane_wake_users(producer->plane);
}

int kf_producer_overdue(kf_producer *producer, double cutoff, kf_queue **queues, int capacity,
                        double *next) {
    int count = 0;
    *next = 0.0;
    kf_lock(&producer->lock);
    for (kf_batch *batch = producer->oldest; batch != NULL; batch = batch->newer) {
        if (batch->created > cutoff || count == capacity) {
            *next = batch->created;
            break;
        }
        if (count == 0 || queues[count - 1] != batch->queue) {
            queues[count++] = batch->queue;
        }
    }
    kf_unlock(&producer->lock);
    return count;
}

int64_t kf_producer_serial(kf_producer *producer) {
    kf_lock(&producer->lock);
    int64_t serial = producer->next_serial;
    kf_unlock(&producer->lock);
    return serial;
}

bool kf_producer_flushed(kf_producer *producer, int64_t serial) {
    kf_lock(&producer->lock);
    bool flushed = producer->oldest == NULL || producer->oldest->serial >= serial;
    kf_unlock(&producer->lock);
    return flushed;
}

bool kf_producer_oldest(kf_producer *producer, int64_t *queue_id, double *created) {
    kf_lock(&producer->lock);
    const kf_batch *batch = producer->oldest;
    if (batch != NULL) {
        *queue_id = batch->queue->id;
        *created = batch->created;
    }
    kf_unlock(&producer->lock);
    return batch != NULL;
}

int64_t kf_producer_pending_before(kf_producer *producer, int64_t serial) {
    int64_t records = 0;
    kf_lock(&producer->lock);
    for (kf_batch *batch = producer->oldest; batch != NULL && batch->serial < serial;
         batch = batch->newer) {
        records += atomic_load_explicit(&batch->record_count, memory_order_relaxed);
    }
    kf_unlock(&producer->lock);
    return records;
}

/* ---- waiting ---- */

/* To fall asleep and be woken costs tens of microseconds, more than a round trip within a machine
 * or a rack. So a thread that waits for the only batch under way stays awake for a moment first.
 * Where answers take longer, only every 64th wait tries that. */
static const double AWAKE_SECONDS = 200e-6;
enum { AWAKE_MISSES_MAX = 6 };

/* Whether to stay awake for `batch`. If others are under way, other threads need the processor.
 * Called with the lock held. */
static bool stays_awake(kf_producer *producer, const kf_batch *batch) {
    if (producer->oldest != batch || producer->newest != batch) {
        return false;
    }
    if (producer->awake_skipped + 1 < 1 << producer->awake_misses) {
        producer->awake_skipped += 1;
        return false;
    }
    producer->awake_skipped = 0;
    return true;
}

/* Called with the lock held; releases it meanwhile. */
static void stay_awake(kf_producer *producer, kf_batch *batch) {
    kf_batch_ref(batch);
    kf_unlock(&producer->lock);
    double until = producer->env.now(producer->env.context) + AWAKE_SECONDS;
    bool done = kf_batch_is_done(batch);
    while (!done && producer->env.now(producer->env.context) < until) {
        kf_relax();
        done = kf_batch_is_done(batch);
    }
    kf_batch_unref(batch); /* may take the pool's lock */
    kf_lock(&producer->lock);
    if (!done) {
        producer->awake_misses += producer->awake_misses < AWAKE_MISSES_MAX;
    } else {
        producer->awake_misses -= producer->awake_misses > 0;
    }
}

void kf_producer_wait_records(kf_producer *producer, kf_batch *batch, int32_t index, int32_t count,
                              double seconds) {
    kf_wake *wake = &producer->plane->wake;
    int64_t seen = kf_wake_count(wake);
    kf_lock(&producer->lock);
    if (stays_awake(producer, batch)) {
        stay_awake(producer, batch);
    }
    kf_unlock(&producer->lock);
    if (!kf_records_are_done(batch, index, count)) {
        kf_wake_wait(wake, seen, seconds);
    }
}

void kf_producer_wait_flushed(kf_producer *producer, int64_t serial, double seconds) {
    kf_wake *wake = &producer->plane->wake;
    int64_t seen = kf_wake_count(wake);
    kf_lock(&producer->lock);
    kf_batch *batch = producer->oldest;
    if (batch != NULL && batch->serial < serial && stays_awake(producer, batch)) {
        stay_awake(producer, batch);
    }
    bool flushed = producer->oldest == NULL || producer->oldest->serial >= serial;
    kf_unlock(&producer->lock);
    if (!flushed) {
        kf_wake_wait(wake, seen, seconds);
    }
}

/* ---- observers ---- */

static void list_observed(kf_producer *producer, kf_batch *batch) {
    if (kf_swap(&batch->listed, 1) != 0) {
        return;
    }
    kf_batch_ref(batch);
    batch->next = NULL;
    kf_lock(&producer->lock);
    *producer->observed_tail = batch;
    producer->observed_tail = &batch->next;
    kf_unlock(&producer->lock);
    producer->env.wake_observers(producer->env.context);
}

void kf_producer_observe(kf_producer *producer, kf_batch *batch) {
    int state = kf_get(&batch->state);
    kf_fence(); /* a new observer sets `watched`, then reads the state: one of the two sees it */
    if (kf_get(&batch->watched) == 0 && state == KF_BATCH_ACKED) {
        return;
    }
    list_observed(producer, batch);
    if (state != KF_BATCH_ACKED) {
        producer->env.wake_control(
            producer->env.context); /* it logs failures that nobody observes */
    }
}

void kf_producer_observe_part(kf_producer *producer, kf_batch *batch) {
    kf_fence(); /* as above: a new observer sees the part's end, or this sees the observer */
    if (kf_get(&batch->watched) != 0) {
        list_observed(producer, batch);
    }
}

kf_batch *kf_producer_take_observed(kf_producer *producer) {
    kf_lock(&producer->lock);
    kf_batch *taken = producer->observed;
    producer->observed = NULL;
    producer->observed_tail = &producer->observed;
    kf_unlock(&producer->lock);
    return taken;
}
