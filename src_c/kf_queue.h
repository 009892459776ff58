/* A partition's queue and its batches: the state that callers and the data plane share.
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

#include "kf_plane.h"
#include "kf_pool.h"
#include "kf_record.h"

enum kf_batch_state {
    KF_BATCH_OPEN = 0,      /* takes records */
    KF_BATCH_WAITING = 1,   /* sealed, or back from a request: in none now */
    KF_BATCH_IN_FLIGHT = 2, /* in a request */
    KF_BATCH_SPLIT = 3,     /* its records are in its children */
    KF_BATCH_ACKED = 4,
    KF_BATCH_FAILED = 5,
};

enum kf_outcome {
    KF_OUTCOME_NONE = 0,
    KF_OUTCOME_NOT_SENT = 1,
    KF_OUTCOME_REJECTED = 2,
    KF_OUTCOME_MAYBE_WRITTEN = 3,
};

/* Local error codes, below the broker's own (which start at -1). */
enum kf_local_error {
    KF_ERROR_EXPIRED = -101,   /* delivery.timeout.ms passed */
    KF_ERROR_CLOSED = -102,    /* the producer was closed */
    KF_ERROR_ABANDONED = -103, /* sequence could not be resolved */
};

enum kf_coding {
    KF_CODING_NONE = 0,
    KF_CODING_SUBMITTED = 1, /* a compression thread has it */
    KF_CODING_DONE = 2,
    KF_CODING_USELESS = 3, /* failed, or made it larger: sent as it is */
};

/* The lists of the data plane that a queue may stand in. */
enum kf_place { KF_NOWHERE = 0, KF_IN_READY = 1, KF_IN_LINGERING = 2, KF_IN_UNROUTED = 3 };

struct kf_batch {
    /* what an append touches: one cache line */
    uint8_t *at, *end; /* while open: where the next record goes, and where the next look at slabs
                        * and limits is due */
    size_t size;       /* header and records, not compressed */
    int64_t base_timestamp, max_timestamp;
    kf_atomic_int record_count;
    int32_t handles;      /* live handles and waiting callbacks; all of them hold one of `refs`.
                           * Under the GIL, so not atomic */
    kf_atomic_int state;  /* enum kf_batch_state; the result below is valid once ended */
    kf_atomic_int coding; /* enum kf_coding */
    int8_t urgency;       /* enum kf_urgency: rises at batch.size, and by a caller that waits */

    kf_batch *next;          /* in one of the queue's lists, or the producer's observed list */
    kf_batch *older, *newer; /* the producer's list of incomplete batches */
    kf_queue *queue;
    kf_slab *slabs, *last_slab; /* records as encoded; the header's place is at the front */
    kf_slab *coded;             /* the compressed batch, header's place included, or NULL */
    int64_t serial; /* order of opening over all queues; children: their parent's */
    double created; /* monotonic; delivery.timeout.ms counts from here */
    kf_atomic_int refs; /* the producer's one, and one for all handles together */

    /* identity in the log; changes only while the batch is known not to be in the log */
    int64_t producer_id;
    int32_t base_sequence;
    int16_t epoch;
    bool sequenced; /* has got a base sequence */
    bool expired; /* its futures have failed; its request still holds the memory */
    bool maybe_written; /* may be in the log: no answer has ruled it out */
    int16_t last_error; /* code of the last answer; 0: the link was closed without one */
    int64_t last_offset; /* base offset in the last answer, or -1 */
    bool crc_known; /* `records_crc` is set */
    uint32_t records_crc; /* of all that follows the header */
    int attempts; /* requests that it was in */
    int64_t order; /* counts the queue's batches as they are taken to be sent */
    int32_t slice; /* of a child: its first record's place in the batch that was split first */

    /* result */
    int64_t base_offset; /* -1 if unknown */
    int64_t append_time_ms; /* log append time, or -1: the records' own */
    int32_t error_code;
    int32_t outcome; /* enum kf_outcome */
    /* of a batch that failed: how its tries went */
    int32_t tries; /* how often it was sent */
    int16_t last_answer; /* code of the last answer; 0: none came, or it was in no request */
    size_t wire_size; /* bytes in a request */
    double failed_at; /* monotonic */

    /* splitting */
    kf_batch *parent;
    kf_batch *children; /* in order, linked by `sibling`; valid once state is SPLIT */
    kf_batch *sibling;
    int32_t first_index; /* of this child within its parent */
    int32_t children_left; /* children that have not ended */

    /* who can observe what becomes of the records */
    kf_atomic_int watched; /* somebody waits for its end: then it goes to the observed list */
    kf_atomic_int listed; /* in the observed list now */
    int32_t seen; /* GIL: dropped handles whose outcome had been read */
    int32_t doubled; /* GIL: records that count twice in `handles`: handle and callback */
    int32_t bulk_records; /* under the queue's lock: records that futures of bulk calls hold */
    bool counted; /* GIL: its failures that nobody can observe were counted */
    int32_t asked; /* GIL: until then, records whose outcome somebody was told, or will be */
    int32_t unread; /* GIL: from then on, failed records whose outcome nobody has asked for yet */
};

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
/* Data plane: give the unresolved batches behind (`serial`, `slice`) new sequences from
 * `base_sequence` on; with a producer id of -1 the queue keeps its identity. */
void kf_queue_renumber(kf_queue *queue, int64_t serial, int32_t slice, int64_t producer_id,
                       int16_t epoch, int32_t base_sequence);
/* Data plane: replace an unresolved batch by children of at most `size` bytes, first in the queue.
 * False if it cannot be split: one record, or no memory. */
bool kf_queue_split(kf_queue *queue, kf_batch *batch, size_t size);

/* Whether a batch that was answered with this error may be in the log all the same. */
bool kf_maybe_written(int16_t error_code);
/* What is known of a batch that is given up as it stands, enum kf_outcome. */
int kf_batch_outcome(kf_batch *batch);

int32_t kf_sequence_after(int32_t base_sequence, int32_t record_count);

/* An empty batch with one slab of at least `slab_size` bytes, or NULL if there is no memory. With
 * `beyond` it may exceed buffer.memory. */
kf_batch *kf_batch_new(kf_queue *queue, size_t slab_size, bool beyond);
/* End a batch: publish the result, tell waiters and observers. Its memory goes back at once, or, if
 * it is in flight, when kf_batch_release_memory is called. */
void kf_batch_end(kf_batch *batch, int state, int32_t error_code, int32_t outcome,
                  int64_t base_offset, int64_t append_time_ms);
void kf_batch_release_memory(kf_batch *batch);
void kf_batch_ref(kf_batch *batch);
void kf_batch_unref(kf_batch *batch);
bool kf_batch_is_done(kf_batch *batch);

/* Follow splits to the batch that holds record `*index` now; `*index` becomes its place there. */
kf_batch *kf_batch_resolve(kf_batch *batch, int32_t *index);

/* Compression: copy the records into one piece (at `out`), and take the result. */
size_t kf_batch_records_size(const kf_batch *batch);
void kf_batch_gather(const kf_batch *batch, uint8_t *out);
/* Any thread: the compressed batch is ready (`coded` NULL: useless). */
void kf_queue_coded(kf_queue *queue, kf_batch *batch, kf_slab *coded);

#endif /* KF_QUEUE_H */
