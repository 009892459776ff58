#include "kf_plane.h"
#include "kf_fetch.h"
#include "kf_queue.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

void kf_plane_init(kf_plane *plane, const kf_env *env, size_t buffer_memory) {
    memset(plane, 0, sizeof *plane);
    plane->env = *env;
    kf_pool_init(&plane->pool, buffer_memory);
    kf_mutex_init(&plane->lock);
    kf_cond_init(&plane->done);
    plane->inbox_tail = &plane->inbox;
    plane->inbox_level = KF_WAKE_NEVER;
    plane->commands_tail = &plane->commands;
    plane->events_tail = &plane->events;
    plane->observed_tail = &plane->observed;
    plane->next_serial = 1;
    plane->next_generation = 1;
}

void kf_plane_destroy(kf_plane *plane) {
    if (plane->fetcher != NULL) {
        kf_fetcher_free(plane->fetcher);
    }
    for (kf_command *command = kf_plane_take_commands(plane); command != NULL;) {
        kf_command *next = command->next;
        kf_command_free(command);
        command = next;
    }
    for (kf_event *event = kf_plane_take_events(plane); event != NULL;) {
        kf_event *next = event->next;
        kf_event_free(event);
        event = next;
    }
    for (kf_batch *batch = kf_plane_take_observed(plane); batch != NULL;) {
        kf_batch *next = batch->next;
        kf_batch_unref(batch);
        batch = next;
    }
    for (kf_node *node = plane->nodes; node != NULL;) {
        kf_node *next = node->next;
        free(node);
        node = next;
    }
    kf_pool_destroy(&plane->pool);
    kf_cond_destroy(&plane->done);
    kf_mutex_destroy(&plane->lock);
}

/* ---- waking the data plane ---- */

void kf_plane_wake(kf_plane *plane, int level) {
    kf_fence(); /* what was published before must be seen by a data plane that goes to sleep */
    int32_t now = kf_get(&plane->wake_level);
    while (now >= level) {
        /* One of those who may end this sleep does. Never by a blind swap: the sleep that was seen
         * may be over, and the next one have a level that is not ours to clear. */
        if (kf_change(&plane->wake_level, &now, KF_WAKE_NOBODY)) {
            plane->env.wake_data(plane->env.context);
            return;
        }
    }
}

void kf_plane_urge(kf_plane *plane) {
    kf_lock(&plane->lock);
    if (plane->inbox_level > KF_WAKE_FULL) {
        plane->inbox_level = KF_WAKE_FULL;
    }
    kf_unlock(&plane->lock);
    kf_plane_wake(plane, KF_WAKE_FULL);
}

void kf_plane_notify(kf_plane *plane, kf_queue *queue, int level) {
    kf_lock(&plane->lock);
    if (!queue->in_inbox) {
        queue->in_inbox = true;
        queue->inbox_next = NULL;
        *plane->inbox_tail = queue;
        plane->inbox_tail = &queue->inbox_next;
    }
    if (level < plane->inbox_level) {
        plane->inbox_level = level;
    }
    kf_unlock(&plane->lock);
    kf_plane_wake(plane, level);
}

kf_queue *kf_plane_take_inbox(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_queue *taken = plane->inbox;
    plane->inbox = NULL;
    plane->inbox_tail = &plane->inbox;
    plane->inbox_level = KF_WAKE_NEVER;
    for (kf_queue *queue = taken; queue != NULL; queue = queue->inbox_next) {
        queue->in_inbox = false;
        queue->taken_next = queue->inbox_next;
    }
    kf_unlock(&plane->lock);
    return taken;
}

kf_queue *kf_plane_queues(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_queue *queues = plane->queues;
    kf_unlock(&plane->lock);
    return queues;
}

bool kf_plane_has_news(kf_plane *plane, int level) {
    kf_lock(&plane->lock);
    bool news = plane->inbox_level <= level || plane->commands != NULL;
    kf_unlock(&plane->lock);
    return news;
}

/* ---- commands down, events up ---- */

kf_command *kf_command_new(int kind) {
    kf_command *command = kf_must(calloc(1, sizeof *command));
    command->kind = kind;
    return command;
}

void kf_command_free(kf_command *command) {
    if (command->stream != NULL) {
        kf_stream_unref(command->stream);
    }
    if (command->session != NULL) {
        kf_session_free(command->session);
    }
    if (command->heartbeat != NULL) {
        kf_heartbeat_free(command->heartbeat);
    }
    free(command->bytes);
    free(command);
}

void kf_plane_command(kf_plane *plane, kf_command *command) {
    command->next = NULL;
    kf_lock(&plane->lock);
    *plane->commands_tail = command;
    plane->commands_tail = &command->next;
    kf_unlock(&plane->lock);
    /* Commands end any sleep, also one that nobody else may end. */
    kf_swap(&plane->wake_level, KF_WAKE_NOBODY);
    plane->env.wake_data(plane->env.context);
}

kf_command *kf_plane_take_commands(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_command *taken = plane->commands;
    plane->commands = NULL;
    plane->commands_tail = &plane->commands;
    kf_unlock(&plane->lock);
    return taken;
}

void kf_plane_event(kf_plane *plane, kf_event *event) {
    event->next = NULL;
    kf_lock(&plane->lock);
    *plane->events_tail = event;
    plane->events_tail = &event->next;
    kf_unlock(&plane->lock);
    plane->env.wake_control(plane->env.context);
}

kf_event *kf_plane_take_events(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_event *taken = plane->events;
    plane->events = NULL;
    plane->events_tail = &plane->events;
    kf_unlock(&plane->lock);
    return taken;
}

void kf_plane_set_alive(kf_plane *plane, double until) {
    kf_lock(&plane->lock);
    plane->alive_until = until;
    kf_unlock(&plane->lock);
}

double kf_plane_alive(kf_plane *plane) {
    kf_lock(&plane->lock);
    double until = plane->alive_until;
    kf_unlock(&plane->lock);
    return until;
}

/* ---- nodes ---- */

kf_node *kf_plane_node(kf_plane *plane, int32_t id) {
    for (kf_node *node = plane->nodes; node != NULL; node = node->next) {
        if (node->id == id) {
            return node;
        }
    }
    kf_node *node = kf_must(calloc(1, sizeof *node));
    node->id = id;
    kf_lock(&plane->lock); /* readers walk the list under it */
    node->next = plane->nodes;
    plane->nodes = node;
    kf_unlock(&plane->lock);
    return node;
}

/* ---- incomplete batches, in the order of their opening ---- */

void kf_plane_opened(kf_plane *plane, kf_batch *batch, kf_batch *newer) {
    kf_lock(&plane->lock);
    if (newer == NULL) {
        batch->serial = plane->next_serial++;
    }
    batch->newer = newer;
    batch->older = newer != NULL ? newer->older : plane->newest;
    if (batch->older != NULL) {
        batch->older->newer = batch;
    } else {
        plane->oldest = batch;
    }
    if (newer != NULL) {
        newer->older = batch;
    } else {
        plane->newest = batch;
    }
    kf_unlock(&plane->lock);
}

void kf_plane_ended(kf_plane *plane, kf_batch *batch) {
    kf_lock(&plane->lock);
    if (batch->older != NULL) {
        batch->older->newer = batch->newer;
    } else {
        plane->oldest = batch->newer;
    }
    if (batch->newer != NULL) {
        batch->newer->older = batch->older;
    } else {
        plane->newest = batch->older;
    }
    batch->older = batch->newer = NULL;
    if (kf_get(&plane->waiters) > 0) {
        kf_cond_wake_all(&plane->done);
    }
    kf_unlock(&plane->lock);
}

int kf_plane_overdue(kf_plane *plane, double cutoff, kf_queue **queues, int capacity,
                     double *next) {
    int count = 0;
    *next = 0.0;
    kf_lock(&plane->lock);
    for (kf_batch *batch = plane->oldest; batch != NULL; batch = batch->newer) {
        if (batch->created > cutoff || count == capacity) {
            *next = batch->created;
            break;
        }
        if (count == 0 || queues[count - 1] != batch->queue) {
            queues[count++] = batch->queue;
        }
    }
    kf_unlock(&plane->lock);
    return count;
}

int64_t kf_plane_serial(kf_plane *plane) {
    kf_lock(&plane->lock);
    int64_t serial = plane->next_serial;
    kf_unlock(&plane->lock);
    return serial;
}

bool kf_plane_flushed(kf_plane *plane, int64_t serial) {
    kf_lock(&plane->lock);
    bool flushed = plane->oldest == NULL || plane->oldest->serial >= serial;
    kf_unlock(&plane->lock);
    return flushed;
}

bool kf_plane_oldest(kf_plane *plane, int64_t *queue_id, double *created) {
    kf_lock(&plane->lock);
    const kf_batch *batch = plane->oldest;
    if (batch != NULL) {
        *queue_id = batch->queue->id;
        *created = batch->created;
    }
    kf_unlock(&plane->lock);
    return batch != NULL;
}

int64_t kf_plane_pending_before(kf_plane *plane, int64_t serial) {
    int64_t records = 0;
    kf_lock(&plane->lock);
    for (kf_batch *batch = plane->oldest; batch != NULL && batch->serial < serial;
         batch = batch->newer) {
        records += atomic_load_explicit(&batch->record_count, memory_order_relaxed);
    }
    kf_unlock(&plane->lock);
    return records;
}

/* ---- waiting ---- */

/* To fall asleep and be woken costs tens of microseconds, more than a round trip within a machine
 * or a rack. So whoever waits for the only batch there is stays awake for a moment first. Where
 * answers take longer, it is tried at every 64th wait only. */
static const double AWAKE_SECONDS = 200e-6;
enum { AWAKE_MISSES_MAX = 6 };

/* Under the lock: whether to stay awake for `batch`. With others under way there is work to leave
 * the processor to. */
static bool stays_awake(kf_plane *plane, const kf_batch *batch) {
    if (plane->oldest != batch || plane->newest != batch) {
        return false;
    }
    if (plane->awake_skipped + 1 < 1 << plane->awake_misses) {
        plane->awake_skipped += 1;
        return false;
    }
    plane->awake_skipped = 0;
    return true;
}

/* Under the lock, which is left meanwhile. */
static void stay_awake(kf_plane *plane, kf_batch *batch) {
    kf_batch_ref(batch);
    kf_unlock(&plane->lock);
    double until = plane->env.now(plane->env.context) + AWAKE_SECONDS;
    bool done = kf_batch_is_done(batch);
    while (!done && plane->env.now(plane->env.context) < until) {
        kf_relax();
        done = kf_batch_is_done(batch);
    }
    kf_batch_unref(batch); /* may take the pool's lock */
    kf_lock(&plane->lock);
    if (!done) {
        plane->awake_misses += plane->awake_misses < AWAKE_MISSES_MAX;
    } else {
        plane->awake_misses -= plane->awake_misses > 0;
    }
}

/* Under the lock, which is left meanwhile: until something completes. */
static void sleep_for_completion(kf_plane *plane, double seconds) {
    kf_add(&plane->waiters, 1);
    kf_cond_wait(&plane->done, &plane->lock, seconds);
    kf_add(&plane->waiters, -1);
}

void kf_plane_wait_batch(kf_plane *plane, kf_batch *batch, double seconds) {
    kf_lock(&plane->lock);
    if (stays_awake(plane, batch)) {
        stay_awake(plane, batch);
    }
    if (!kf_batch_is_done(batch)) {
        sleep_for_completion(plane, seconds);
    }
    kf_unlock(&plane->lock);
}

void kf_plane_wait_flushed(kf_plane *plane, int64_t serial, double seconds) {
    kf_lock(&plane->lock);
    kf_batch *batch = plane->oldest;
    if (batch != NULL && batch->serial < serial && stays_awake(plane, batch)) {
        stay_awake(plane, batch);
    }
    if (plane->oldest != NULL && plane->oldest->serial < serial) {
        sleep_for_completion(plane, seconds);
    }
    kf_unlock(&plane->lock);
}

/* ---- observers ---- */

void kf_plane_observe(kf_plane *plane, kf_batch *batch) {
    int state = kf_get(&batch->state);
    kf_fence(); /* against an observer that is being added: it re-reads the state after its flag */
    if (kf_get(&batch->watched) == 0 && state == KF_BATCH_ACKED) {
        return;
    }
    if (kf_swap(&batch->listed, 1) != 0) {
        return;
    }
    kf_batch_ref(batch);
    batch->next = NULL;
    kf_lock(&plane->lock);
    *plane->observed_tail = batch;
    plane->observed_tail = &batch->next;
    kf_unlock(&plane->lock);
    plane->env.wake_observers(plane->env.context);
    if (state != KF_BATCH_ACKED) {
        plane->env.wake_control(plane->env.context); /* it logs failures that nobody observes */
    }
}

kf_batch *kf_plane_take_observed(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_batch *taken = plane->observed;
    plane->observed = NULL;
    plane->observed_tail = &plane->observed;
    kf_unlock(&plane->lock);
    return taken;
}

void kf_histogram_add(kf_histogram *histogram, double value, double unit) {
    int bucket = 0;
    double bound = unit;
    while (value >= bound && bucket < KF_HISTOGRAM_BUCKETS - 1) {
        bound *= 2;
        bucket++;
    }
    kf_count(&histogram->buckets[bucket], 1);
    kf_count(&histogram->count, 1);
    kf_sum_up(&histogram->sum, value);
}
