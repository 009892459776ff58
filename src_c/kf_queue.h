/* A partition's queue of batches, and its topic: the state that callers and the data plane share.
 *
 *   kf_queue_append ─► open ─► sealed … sealed ─► (in a request) ─► completed
 *                                                    │    ▲
 *                                    answer was an    ▼    │ thaw
 *                                    error, link lost: unresolved (queue frozen)
 *
 * A batch that is in no request may expire and be freed. A batch in a request keeps its memory
 * until the request has ended, even if its futures have failed before (KAFKA-19012).
 *
 * Threads: append, seal and take hold the queue's lock. The fields under «data plane» belong to
 * that thread alone.
 */
#ifndef KF_QUEUE_H
#define KF_QUEUE_H

#include "kf_batch.h"
#include "kf_plane.h"
#include "kf_record.h"

/* The lists of the data plane that a queue may stand in. */
enum kf_place { KF_NOWHERE = 0, KF_IN_READY = 1, KF_IN_LINGERING = 2, KF_IN_UNROUTED = 3 };

/* How a Produce request names a topic, by its version. */
enum kf_topic_format {
    KF_TOPIC_NAME = 0, /* v3-8: string */
    KF_TOPIC_COMPACT_NAME = 1, /* v9-12: compact string */
    KF_TOPIC_ID = 2, /* v13: uuid */
    KF_TOPIC_FORMATS = 3,
    KF_TOPIC_ID_SIZE = 16,
};

/* An array of queues that a bulk call without the GIL may still read. */
typedef struct kf_retired {
    struct kf_retired *next;
    kf_queue **queues;
} kf_retired;

/* A topic: how requests name it (data plane), and the partitioner's cursor (callers, GIL). */
struct kf_topic {
    kf_topic *next; /* of the producer's, newest first */
    uint8_t *field[KF_TOPIC_FORMATS]; /* length included; NULL: not known yet */
    size_t field_size[KF_TOPIC_FORMATS];
    kf_queue **queues; /* by partition; replaced, never changed, when partitions are added */
    kf_retired *retired;
    int32_t queue_count;
    int32_t partition_count; /* records may go there; fewer than queues if the topic was made anew
                              * with fewer partitions */
    int32_t id;           /* counts topics as they are made: the order of topics in a request */
    int32_t sticky; /* partition of records without a key; -1: choose */
    int64_t sticky_left; /* bytes that are left of its share; at 0 or below the partitioner leaves
                          * it at the end of its batch */
    kf_atomic_int used; /* records were sent to the topic since take_used_topics was called */
    uint64_t random; /* xorshift state, seeded by the control plane */
    kf_atomic_long batch_limit; /* bytes at which a batch is full, if less than elsewhere; or 0 */
    size_t wire_limit; /* data plane: larger batches are refused; 0: none is known to be */
};

/* How soon a queue is to be drained. */
enum kf_urgency {
    KF_LINGERS = 0,
    KF_SENDABLE = 1, /* reached batch.size, linger.ms or a retry's time */
    KF_URGENT = 2, /* a full batch, a flush, a caller that waits for a result */
};

struct kf_queue {
    kf_mutex lock;
    /* under `lock` */
    kf_batch *open;
    kf_batch *parked; /* GIL: when the last handle of the open batch is dropped, its reference is
                       * kept here for that batch's next handle: two atomics less per record */
    kf_producer *producer;
    kf_topic *topic;
    int64_t id;
    int32_t partition;
    /* under `lock` */
    kf_batch *sealed, **sealed_tail;
    size_t seal_size; /* bytes of a full batch; grows while the window of a slow link is full */
    kf_atomic_int load; /* batches that have not ended, for the adaptive partitioner */
    kf_atomic_int stalled; /* its link has taken nothing for availability_timeout */
    kf_atomic_int available; /* the partition has a leader, as the control plane says */
    /* under the producer's lock */
    kf_queue *registered; /* next in the producer's list of all queues */
    kf_queue *inbox_next;
    bool in_inbox;
    /* data plane */
    kf_queue *taken_next; /* next in an inbox that was taken; callers may fill a new one since */
    kf_link *link, *next_link; /* next_link: the route once the last batch on `link` has ended */
    bool moving; /* to `next_link`, which may be NULL */
    kf_batch *unresolved; /* back from requests without success, by `order` */
    kf_batch *coding, **coding_tail; /* taken for compression, by `order`; sent when done */
    int32_t coding_count;
    int32_t in_flight; /* batches in requests */
    bool frozen; /* sends nothing before the thaw */
    bool single; /* one in flight until an ack leaves no retry that may be in the log */
    bool route_asked; /* the control plane was asked for a link */
    bool may_have_gap; /* a batch that was sent has expired since the last thaw: its sequences
                        * may be missing in the log */
    int64_t generation; /* of the last freeze */
    int64_t reported; /* generation of the last report */
    double not_before; /* sends nothing before: the backoff of a retry */
    int64_t producer_id; /* this and the next: of the batches that get sequences now */
    int16_t epoch;
    int32_t next_sequence;
    int64_t next_order;
    double due; /* while lingering: when it becomes sendable */
    int urgency; /* enum kf_urgency, as placed */
    kf_queue *next, *previous; /* in a link's or the sender's list */
    int place; /* which list: enum kf_place */
    kf_counter records_acked, bytes_acked, records_failed; /* read by any thread */
};

enum kf_append_result {
    KF_APPEND_OK = 0,
    KF_APPEND_FULL = 1, /* buffer.memory is used up: wait for the pool */
    KF_APPEND_TOO_LARGE = 2, /* more than max.request.size in a batch of its own */
    KF_APPEND_NEXT = 3, /* KF_LEAVE_FULL, and it would have opened a batch: choose another queue */
};

void kf_queue_init(kf_queue *queue, kf_producer *producer, kf_topic *topic, int64_t id,
                   int32_t partition);
void kf_queue_destroy(kf_queue *queue);

/* How to append. The caller's hold on the batch is counted under the lock: as soon as the lock is
 * released the batch may end. */
enum kf_append_flags {
    KF_HOLD_NOTHING = 0,
    KF_HOLD_HANDLE = 1, /* counts in `handles`; with the GIL only */
    KF_LEAVE_FULL = 2, /* open no batch: the partitioner leaves the queue at the end of its batch,
                        * so that no batch of few records stays behind */
};

/* Encode one record into the open batch. On OK `*batch` and `*index` say where it is. */
int kf_queue_append(kf_queue *queue, const kf_record *record, int64_t timestamp_ms, int flags,
                    kf_batch **batch, int32_t *index);

/* Encode records of a bulk call into the open batch: the first, and as many of the `count` as fit
 * behind it. On OK `*done` says how many, `*batch` and `*index` where the first of them is. They
 * count in `bulk_records`. The caller gets a reference when `*batch` changes. The lock is held all
 * the time, so pass a chunk of about 16 KiB. */
int kf_queue_append_run(kf_queue *queue, const kf_record *records, const int64_t *timestamps_ms,
                        int32_t count, int flags, kf_batch **batch, int32_t *index, int32_t *done);
/* GIL: give up `count` of the batch's handles. */
void kf_queue_drop_handles(kf_queue *queue, kf_batch *batch, int32_t count);
/* GIL: a bulk call's future was dropped unread: failures of its `count` records count as lost. */
void kf_queue_forget_bulk(kf_queue *queue, kf_batch *batch, int32_t count);

/* Seal the open batch, if there is one: no record is added to it. */
void kf_queue_seal(kf_queue *queue);

/* Have the batch sent at once if it is still open: a caller waits for it. */
void kf_queue_urge(kf_queue *queue, kf_batch *batch);

/* Data plane: take the next sealed batch, sealing the open one if there is none and `open` says
 * so; NULL if there is none or it is larger than `limit`. `seal_size` holds from now on. */
kf_batch *kf_queue_take_sealed(kf_queue *queue, bool open, size_t limit, size_t seal_size);
/* Data plane: whether there is an open or sealed batch; the first one's urgency, opening time. */
bool kf_queue_look(kf_queue *queue, int *urgency, double *opened);

/* Data plane: unlink every open or sealed batch opened before `cutoff`, linked by `next`. */
kf_batch *kf_queue_take_overdue(kf_queue *queue, double cutoff);

/* Data plane: keep `batch` among the unresolved ones, by order. */
void kf_queue_return(kf_queue *queue, kf_batch *batch);
/* Data plane: take the first unresolved batch, or the one with `serial` and `slice`; or NULL. */
kf_batch *kf_queue_take_first(kf_queue *queue);
kf_batch *kf_queue_take_unresolved(kf_queue *queue, int64_t serial, int32_t slice);
/* Data plane: the unresolved batch with `serial` and `slice`, which stays; or NULL. */
kf_batch *kf_queue_find_unresolved(kf_queue *queue, int64_t serial, int32_t slice);
/* Data plane: give the unresolved batches behind (`serial`, `slice`) new sequences from
 * `base_sequence` on; with a producer id of -1 the queue keeps its identity. */
void kf_queue_renumber(kf_queue *queue, int64_t serial, int32_t slice, int64_t producer_id,
                       int16_t epoch, int32_t base_sequence);
/* Data plane: replace a batch that was taken out of the queue, or sent, by unresolved children of
 * at most `size` bytes. False if it cannot be split: one record, or no memory. */
bool kf_queue_split(kf_queue *queue, kf_batch *batch, size_t size);

/* Any thread: the compressed batch is ready (`coded` NULL: useless). */
void kf_queue_coded(kf_queue *queue, kf_batch *batch, kf_slab *coded);

#endif /* KF_QUEUE_H */
