/* What callers and the data plane share for producing: topics with their queues, memory, and the
 * batches that have not ended yet.
 *
 *   callers ── kf_queue_append ──► queues ── inbox ──► data plane ── links ──► brokers
 *   data plane ── completion ──► the plane's wake, observers
 *
 * Threads: the fields under «data plane» belong to that thread alone.
 */
#ifndef KF_PRODUCER_H
#define KF_PRODUCER_H

#include "kf_plane.h"
#include "kf_pool.h"
#include "kf_queue.h"

/* Counted by the data plane (`blocked`: by callers, under the GIL), read by any. */
typedef struct kf_produce_stats {
    kf_counter records_acked, records_failed, batches_acked, batches_failed;
    kf_counter retries, punts, splits, expired_batches, blocked;
    kf_histogram queue_time; /* batch opened to request written */
    kf_histogram batch_bytes; /* sizes as sent, bucket i: below 2^i bytes; sum in bytes */
} kf_produce_stats;

struct kf_producer {
    kf_plane *plane;
    kf_env env; /* copy of the plane's, so that `send` reaches the clock in one step less */
    kf_pool pool;

    /* limits, set once before the first record */
    size_t batch_size; /* batch.size: sendable from here on */
    size_t seal_size; /* max(batch.size, 256 KiB): full */
    size_t max_request_size; /* of one record and one batch */
    size_t coalesce_bytes; /* of one Produce request */
    double linger; /* seconds */
    double delivery_timeout;
    double availability_timeout; /* partitioner.availability.timeout.ms; 0: off */
    int max_in_flight; /* Produce requests per link */
    int codec; /* compression code of the record batch attributes, 0 for none */
    bool idempotent;
    bool transactional; /* batches belong to transactions; idempotent, too */
    bool acks_zero;

    kf_mutex lock; /* inbox, queues, incomplete list, observed list */
    kf_queue *inbox; /* queues with news for the data plane */
    kf_queue **inbox_tail;
    int inbox_level; /* the most urgent news in the inbox, enum kf_wake_level */
    kf_queue *queues; /* all of them, linked by `registered` */
    kf_batch *oldest, *newest; /* incomplete batches in the order of their opening */
    kf_batch *observed, **observed_tail; /* completed batches that have observers */
    int64_t next_serial;
    int awake_misses, awake_skipped; /* see stay_awake: lately in vain; waits since without it */

    kf_atomic_int flushing; /* flushes under way: every open batch is sendable */
    kf_atomic_int closed; /* no record is accepted any more */
    kf_atomic_int held; /* no batch is opened: there is no transaction that it would belong to */
    void *owner; /* the Queues object that holds this; handles find it through their batch */
    bool inherited; /* by a forked child: locks may be held forever, so nothing is freed */
    kf_topic *topics; /* under the GIL */
    kf_produce_stats stats;

    /* data plane */
    kf_queue *unrouted, *unrouted_last; /* queues with data and no link */
    int64_t producer_id; /* for queues that have nothing unresolved; -1: none yet */
    int16_t epoch;
    int64_t next_generation; /* of a queue's freeze */
    double next_overdue; /* when the oldest batch passes delivery.timeout.ms; 0: not known */
    kf_batch **scratch; /* batches of the request that is being built */
    int scratch_capacity;
};

/* NULL: out of memory. The plane frees it. */
kf_producer *kf_producer_new(kf_plane *plane, size_t buffer_memory);
/* The plane has stopped and its links are closed; kf_plane_destroy calls this. */
void kf_producer_free(kf_producer *producer);
/* The plane has stopped. Before its links are closed, accept nothing more; after that, fail every
 * batch that has not ended. */
void kf_producer_close(kf_producer *producer);
void kf_producer_fail_all(kf_producer *producer);

/* Open no batch from now on, and seal those that are open: a record that is accepted from now on is
 * of no transaction. Any thread; callers without the GIL may be appending. `held` = 0 ends that. */
void kf_producer_hold(kf_producer *producer);

/* A topic without partitions, or NULL: out of memory. `seed`: random bits. */
kf_topic *kf_topic_new(kf_producer *producer, uint64_t seed);
/* Add queues up to `count` partitions; the first new one gets `first_id`, the next ones count on.
 * False: out of memory, and nothing has changed. */
bool kf_topic_grow(kf_producer *producer, kf_topic *topic, int32_t count, int64_t first_id);
/* Let records go to the first `count` partitions, 1 or more, whose queues are there. */
void kf_topic_resize(kf_topic *topic, int32_t count);
/* Data plane: let batches be full at `batch_limit` bytes, and split those of more than `wire_limit`
 * bytes in a request before they are sent; 0 and 0: as elsewhere. */
void kf_topic_limit(kf_producer *producer, kf_topic *topic, size_t batch_limit, size_t wire_limit);
/* Bytes at which the topic's batches are full, where no slow link lets them grow. Any thread. */
size_t kf_topic_seal_size(const kf_producer *producer, kf_topic *topic);

/* True if news came in that may end a sleep of this level. */
bool kf_producer_has_news(kf_producer *producer, int level);
/* Tell the data plane that `queue` has news of level `level` (any thread, no lock held). */
void kf_producer_notify(kf_producer *producer, kf_queue *queue, int level);
/* Let the data plane look again at `flushing` and the pool's `waiting`, which have just changed. */
void kf_producer_urge(kf_producer *producer);
/* Take the whole inbox (data plane); linked by `kf_queue.taken_next`. */
kf_queue *kf_producer_take_inbox(kf_producer *producer);
/* All queues, linked by `registered`; new ones are put before these. */
kf_queue *kf_producer_queues(kf_producer *producer);

/* Enter and leave the list of incomplete batches; a child enters before `newer`. */
void kf_producer_opened(kf_producer *producer, kf_batch *batch, kf_batch *newer);
void kf_producer_ended(kf_producer *producer, kf_batch *batch);
/* Data plane: queues with a batch opened before `cutoff`, at most `capacity`; the number found.
 * `*next` gets the opening time of the oldest batch that is younger, or 0. */
int kf_producer_overdue(kf_producer *producer, double cutoff, kf_queue **queues, int capacity,
                        double *next);
/* Queue and opening time of the oldest batch that has not ended. False: there is none. */
bool kf_producer_oldest(kf_producer *producer, int64_t *queue_id, double *created);
/* The serial that the next batch will get: a flush waits for all below it. */
int64_t kf_producer_serial(kf_producer *producer);
/* Whether all batches with a serial below `serial` have ended; and the records of those that have
 * not. */
bool kf_producer_flushed(kf_producer *producer, int64_t serial);
int64_t kf_producer_pending_before(kf_producer *producer, int64_t serial);

/* Wait until the fate of `count` records of the batch from `index` on is known, or all batches
 * below `serial` have ended, at most `seconds`: call in slices. */
void kf_producer_wait_records(kf_producer *producer, kf_batch *batch, int32_t index, int32_t count,
                              double seconds);
void kf_producer_wait_flushed(kf_producer *producer, int64_t serial, double seconds);

/* Ended batches that have observers or have failed, in the order of their ending, linked by
 * `next`; the list owns a reference to each, which the taker inherits. One that was split and has
 * observers comes with each of its parts that ends, too. */
void kf_producer_observe(kf_producer *producer, kf_batch *batch);
/* A part of this batch, which was split, has ended. */
void kf_producer_observe_part(kf_producer *producer, kf_batch *batch);
kf_batch *kf_producer_take_observed(kf_producer *producer);

#endif /* KF_PRODUCER_H */
