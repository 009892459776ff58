/* The state that the planes share, under as many threads as touch it in a client:
 *
 *   callers ── append, wait for memory ──► queues ──► data plane ──► null broker
 *   waiter ── urges and waits for batches, checks each result against the broker's log
 *   flusher ── flushes          observer ── takes ended batches          control ── verdicts
 *   reader ── reads the counters all the while
 *
 * The linger is an hour and nothing sleeps with a timer, so a lost wake-up leaves a record behind
 * forever, and the run fails. At the end the broker has taken each record once and in order, or
 * has refused it, which was reported. No memory is reserved then.
 *
 *   harness SEED RECORDS     RECORDS of each caller
 */
#include "harness.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    BUFFER_MEMORY = 1 << 19,
    BATCH_SIZE = 8192,
    SEAL_SIZE = 32768,
    SMALL_MAX = 120,
    LARGE_MAX = 20000,
    LARGE_ONE_IN = 50,
    RUN_MAX = 8, /* records of one bulk call */
};

/* The first record of a caller's slice of a batch, with a reference to the batch. */
typedef struct slice {
    struct slice *next;
    kf_batch *batch;
    int32_t index;
    tag first;
} slice;

typedef struct caller {
    pthread_t thread;
    harness *shared;
    uint32_t id;
    uint64_t random;
    slice open[QUEUES]; /* the batch that the last record of each queue went into */
} caller;

static kf_mutex slices_lock;
static slice *slices;

/* ---- odds and ends ---- */

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("harness: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

uint64_t next_random(uint64_t *state) {
    uint64_t value = *state | 1;
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    *state = value;
    return value >> 11;
}

void sleep_on(int event, int milliseconds) {
    struct pollfd fd = {event, POLLIN, 0};
    uint64_t drained;
    if (poll(&fd, 1, milliseconds) > 0 && read(event, &drained, sizeof drained) < 0) {
        fail("no event to read");
    }
}

static void raise_event(int event) {
    uint64_t one = 1;
    if (write(event, &one, sizeof one) < 0) {
        fail("no event to write");
    }
}

/* ---- the environment ---- */

static double now(void *context) {
    struct timespec at;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void wake_data(void *context) {
    raise_event(((harness *)context)->data_event);
}

static void wake_control(void *context) {
    raise_event(((harness *)context)->control_event);
}

static void wake_observers(void *context) {
    raise_event(((harness *)context)->observer_event);
}

/* ---- waiting ---- */

static void hand_over(const slice *ended) {
    slice *added = malloc(sizeof *added);
    if (added == NULL) {
        fail("out of memory");
    }
    *added = *ended;
    kf_lock(&slices_lock);
    added->next = slices;
    slices = added;
    kf_unlock(&slices_lock);
}

static slice *take_slice(void) {
    kf_lock(&slices_lock);
    slice *taken = slices;
    if (taken != NULL) {
        slices = taken->next;
    }
    kf_unlock(&slices_lock);
    return taken;
}

static void check_slice(harness *shared, slice *checked) {
    double since = now(NULL);
    kf_batch *batch = checked->batch;
    if (!kf_records_are_done(batch, checked->index, 1)) {
        kf_queue_urge(batch->queue, batch);
    }
    while (!kf_records_are_done(batch, checked->index, 1)) {
        kf_producer_wait_records(shared->producer, batch, checked->index, 1, 1.0);
        if (now(NULL) - since > STUCK_SECONDS) {
            fail("a batch of queue %d never ended", (int)batch->queue->id);
        }
    }
    int32_t index = checked->index;
    const kf_batch *holder = kf_batch_resolve(batch, &index);
    if (holder->error_code == 0 && holder->base_offset >= 0 &&
        broker_log_at((int)holder->queue->id, holder->base_offset + index) != checked->first) {
        fail("a record is not where its batch says");
    }
    kf_batch_unref(batch);
    free(checked);
}

static void *waiter_main(void *argument) {
    harness *shared = argument;
    bool last = false;
    while (!last) {
        last = kf_get(&shared->stopping) != 0;
        for (slice *next = take_slice(); next != NULL; next = take_slice()) {
            check_slice(shared, next);
        }
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void flush(harness *shared) {
    kf_producer *producer = shared->producer;
    double since = now(NULL);
    int64_t serial = kf_producer_serial(producer);
    kf_add(&producer->flushing, 1);
    kf_producer_urge(producer);
    while (!kf_producer_flushed(producer, serial)) {
        kf_producer_wait_flushed(producer, serial, 1.0);
        if (now(NULL) - since > STUCK_SECONDS) {
            fail("a flush never ended: %ld records are left",
                 (long)kf_producer_pending_before(producer, serial));
        }
    }
    kf_add(&producer->flushing, -1);
}

static void *flusher_main(void *argument) {
    harness *shared = argument;
    uint64_t random = shared->seed + 1;
    while (!kf_get(&shared->stopping)) {
        flush(shared);
        poll(NULL, 0, (int)(next_random(&random) % 20));
    }
    return NULL;
}

static void *observer_main(void *argument) {
    harness *shared = argument;
    bool last = false;
    while (!last) {
        last = kf_get(&shared->stopping) != 0;
        kf_batch *batch = kf_producer_take_observed(shared->producer);
        if (batch == NULL && !last) {
            sleep_on(shared->observer_event, 100);
        }
        while (batch != NULL) {
            kf_batch *next = batch->next;
            kf_set(&batch->listed, 0);
            if (kf_get(&batch->state) == KF_BATCH_FAILED) {
                kf_add(&shared->observed_failed, batch->record_count);
            }
            for (kf_batch *child = batch->children; child != NULL; child = child->sibling) {
                if (kf_get(&child->state) == KF_BATCH_FAILED) {
                    kf_add(&shared->observed_failed, child->record_count);
                }
            }
            kf_add(&shared->observed_splits, batch->children != NULL);
            kf_batch_unref(batch);
            batch = next;
        }
    }
    return NULL;
}

/* Reads what callers of stats() read, while it is counted: no number ever falls. */
static void *reader_main(void *argument) {
    harness *shared = argument;
    const kf_produce_stats *stats = &shared->producer->stats;
    int64_t acked_before = 0, sizes_before = 0;
    while (!kf_get(&shared->stopping)) {
        int64_t acked = 0;
        int64_t sizes = 0;
        for (int i = 0; i < QUEUES; i++) {
            acked += kf_counted(&shared->queues[i].records_acked);
        }
        for (int i = 0; i < KF_HISTOGRAM_BUCKETS; i++) {
            sizes += kf_counted(&stats->batch_bytes.buckets[i]);
        }
        if (acked < acked_before || sizes < sizes_before ||
            kf_summed(&stats->batch_bytes.sum) < 0.0) {
            fail("a counter fell: %ld after %ld records, %ld after %ld batches", (long)acked,
                 (long)acked_before, (long)sizes, (long)sizes_before);
        }
        acked_before = acked;
        sizes_before = sizes;
        poll(NULL, 0, 1);
    }
    return NULL;
}

/* ---- callers ---- */

static void wait_for_memory(harness *shared, size_t need, double since) {
    kf_producer *producer = shared->producer;
    kf_add(&producer->pool.waiting, 1);
    kf_producer_urge(producer);
    kf_pool_wait(&producer->pool, need, 1.0);
    kf_add(&producer->pool.waiting, -1);
    if (now(NULL) - since > STUCK_SECONDS) {
        fail("no memory came back: %zu bytes are reserved", kf_pool_reserved(&producer->pool));
    }
}

/* Records of a bulk call, which may go into several batches, or one record by itself. */
static void send_run(caller *self, int queue, uint32_t number, int32_t count, size_t size) {
    static const uint8_t value[LARGE_MAX];
    static const int64_t timestamps_ms[RUN_MAX];
    harness *shared = self->shared;
    slice *open = &self->open[queue];
    uint8_t keys[RUN_MAX][sizeof(tag)];
    kf_record records[RUN_MAX];
    double since = now(NULL);
    for (int32_t i = 0; i < count; i++) {
        kf_put_i64(keys[i], (int64_t)tag_of(self->id, number + (uint32_t)i));
        records[i] = (kf_record){keys[i], sizeof keys[i], value, (int64_t)size, NULL, 0};
    }
    for (int32_t sent = 0; sent < count;) {
        kf_batch *batch = open->batch;
        int32_t index = 0;
        int32_t done = 0;
        int result;
        if (count == 1) {
            result = kf_queue_append(&shared->queues[queue], records, 0, KF_HOLD_NOTHING, &batch,
                                     &index);
            batch = open->batch; /* the other may have ended by now */
            done = result == KF_APPEND_OK;
        } else {
            result = kf_queue_append_run(&shared->queues[queue], records + sent, timestamps_ms,
                                         count - sent, 0, &batch, &index, &done);
        }
        if (batch != open->batch) {
            if (open->batch != NULL) {
                hand_over(open);
            }
            *open = (slice){NULL, batch, index, tag_of(self->id, number + (uint32_t)sent)};
        }
        sent += done;
        if (result != KF_APPEND_OK) {
            wait_for_memory(shared, size + 256, since);
        }
    }
}

static void *caller_main(void *argument) {
    caller *self = argument;
    uint32_t numbers[QUEUES] = {0};
    for (uint32_t left = self->shared->records; left > 0;) {
        uint64_t choice = next_random(&self->random);
        int queue = (int)(choice % QUEUES);
        bool large = choice / QUEUES % LARGE_ONE_IN == 0;
        size_t size = next_random(&self->random) % (large ? LARGE_MAX : SMALL_MAX);
        uint32_t count = large ? 1 : (uint32_t)(1 + next_random(&self->random) % RUN_MAX);
        count = count < left ? count : left;
        send_run(self, queue, numbers[queue], (int32_t)count, size);
        numbers[queue] += count;
        left -= count;
        if (choice % 512 == 0) {
            poll(NULL, 0, 1); /* let the queues run dry now and then */
        }
    }
    for (int i = 0; i < QUEUES; i++) {
        if (self->open[i].batch != NULL) {
            hand_over(&self->open[i]);
        }
    }
    return NULL;
}

/* ---- the run ---- */

static void set_up(harness *shared) {
    kf_env env = {.now = now,
                  .wake_data = wake_data,
                  .wake_control = wake_control,
                  .wake_observers = wake_observers,
                  .context = shared};
    kf_plane *plane = &shared->plane;
    shared->data_event = eventfd(0, EFD_NONBLOCK);
    shared->control_event = eventfd(0, EFD_NONBLOCK);
    shared->observer_event = eventfd(0, EFD_NONBLOCK);
    kf_mutex_init(&slices_lock);
    broker_init();
    kf_plane_init(plane, &env);
    kf_producer *producer = kf_producer_new(plane, BUFFER_MEMORY);
    if (producer == NULL) {
        fail("out of memory");
    }
    shared->producer = plane->producer = producer;
    producer->batch_size = BATCH_SIZE;
    producer->seal_size = SEAL_SIZE;
    producer->max_request_size = SEAL_SIZE;
    producer->linger = 3600.0;
    for (int i = 0; i < QUEUES; i++) {
        kf_queue_init(&shared->queues[i], producer, &shared->topic, i, i);
    }
}

static void check(harness *shared) {
    const kf_produce_stats *stats = &shared->producer->stats;
    int64_t acked = kf_counted(&stats->records_acked);
    int64_t failed = kf_counted(&stats->records_failed);
    int64_t splits = kf_counted(&stats->splits);
    int64_t taken = 0;
    for (int i = 0; i < QUEUES; i++) {
        taken += broker_log_size(i);
        if (kf_get(&shared->queues[i].load) != 0) {
            fail("queue %d counts %d batches at the end", i, kf_get(&shared->queues[i].load));
        }
    }
    if (taken != acked || taken + failed != (int64_t)shared->records * CALLERS) {
        fail("%ld records of %ld taken, %ld acked, %ld failed", (long)taken,
             (long)shared->records * CALLERS, (long)acked, (long)failed);
    }
    if (kf_get(&shared->observed_failed) != failed || kf_get(&shared->observed_splits) != splits) {
        fail("the observer saw %d failed records and %d splits of %ld and %ld",
             kf_get(&shared->observed_failed), kf_get(&shared->observed_splits), (long)failed,
             (long)splits);
    }
    if (kf_pool_reserved(&shared->producer->pool) != 0) {
        fail("%zu bytes are still reserved", kf_pool_reserved(&shared->producer->pool));
    }
    printf("harness: seed %lu: %ld records acked in %ld batches, %ld failed, %ld splits\n",
           (unsigned long)shared->seed, (long)acked, (long)kf_counted(&stats->batches_acked),
           (long)failed, (long)splits);
}

static void tear_down(harness *shared) {
    for (int i = 0; i < QUEUES; i++) {
        kf_queue_destroy(&shared->queues[i]);
    }
    kf_plane_destroy(&shared->plane);
    broker_destroy();
    kf_mutex_destroy(&slices_lock);
    close(shared->data_event);
    close(shared->control_event);
    close(shared->observer_event);
}

int main(int argc, char **argv) {
    static harness shared;
    static caller callers[CALLERS];
    void *(*const mains[])(void *) = {sender_main,  control_main,  waiter_main,
                                      flusher_main, observer_main, reader_main};
    enum { HELPERS = sizeof mains / sizeof *mains };
    pthread_t helpers[HELPERS];
    if (argc != 3) {
        fail("usage: harness SEED RECORDS");
    }
    shared.seed = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u;
    shared.records = (uint32_t)strtoul(argv[2], NULL, 10);
    set_up(&shared);
    for (int i = 0; i < HELPERS; i++) {
        pthread_create(&helpers[i], NULL, mains[i], &shared);
    }
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.shared = &shared, .id = i, .random = shared.seed + i + 2};
        pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
    }
    flush(&shared);
    kf_set(&shared.stopping, 1);
    wake_data(&shared);
    wake_control(&shared);
    wake_observers(&shared);
    for (int i = 0; i < HELPERS; i++) {
        pthread_join(helpers[i], NULL);
    }
    broker_join();
    check(&shared);
    tear_down(&shared);
    return 0;
}
