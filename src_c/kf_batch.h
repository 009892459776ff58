/* A batch of records on its way to one partition, from its first record to its end.
 *
 * A split batch ends with its children: it keeps no record, and who asks for one is led to the
 * child that has it. Handles of callers refer to the batch that took their record.
 *
 * Threads: the queue's lock covers a batch until it is taken to be sent; then it belongs to the
 * data plane. The result may be read by any thread once the state says that the batch has ended.
 */
#ifndef KF_BATCH_H
#define KF_BATCH_H

#include "kf_plane.h"
#include "kf_pool.h"

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
    KF_ERROR_STOPPED = -104,   /* the producer cannot go on; the control plane has the error */
    KF_ERROR_ABORTED = -105,   /* its transaction is aborted, and it was in no request */
};

enum kf_coding {
    KF_CODING_NONE = 0,
    KF_CODING_SUBMITTED = 1, /* a compression thread has it */
    KF_CODING_DONE = 2,
    KF_CODING_USELESS = 3, /* failed, or made it larger: sent as it is */
};

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
    int attempts; /* requests that its records were in */
    int failures; /* of these, those that it has failed by itself, as it is now */
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
    uint8_t *detail; /* what the control plane keeps of the refusal, or NULL */
    size_t detail_size;

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
/* Give a batch that is about to fail a detail, which it owns from here on. */
void kf_batch_explain(kf_batch *batch, uint8_t *detail, size_t size);
void kf_batch_ref(kf_batch *batch);
void kf_batch_unref(kf_batch *batch);
bool kf_batch_is_done(kf_batch *batch);
/* Whether the fate of `count` records from `index` on is known: a split batch ends in parts. */
bool kf_records_are_done(kf_batch *batch, int32_t index, int32_t count);

/* Follow splits to the batch that holds record `*index` now; `*index` becomes its place there. */
kf_batch *kf_batch_resolve(kf_batch *batch, int32_t *index);

/* Compression: copy the records into one piece (at `out`), and take the result. */
size_t kf_batch_records_size(const kf_batch *batch);
void kf_batch_gather(const kf_batch *batch, uint8_t *out);

#endif /* KF_BATCH_H */
