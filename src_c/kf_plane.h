/* The meeting place of the planes: what callers, the data plane and the control plane share.
 *
 *   callers ── kf_queue_append ──► queues ── inbox ──► data plane ── links ──► brokers
 *   control plane ── commands ──► data plane ── events ──► control plane
 *   data plane ── completion ──► waiters, observers, flush
 *
 * The plane calls no clock and no socket: `kf_env` brings them in, so that the simulation drives
 * the same code with a virtual clock. Lock order: a queue's lock, then the plane's or the pool's.
 */
#ifndef KF_PLANE_H
#define KF_PLANE_H

#include "kf_pool.h"
#include "kf_sync.h"

typedef struct kf_batch kf_batch;
typedef struct kf_queue kf_queue;
typedef struct kf_link kf_link;
typedef struct kf_topic kf_topic;
typedef struct kf_node kf_node;
typedef struct kf_fetcher kf_fetcher;
typedef struct kf_stream kf_stream;
typedef struct kf_session kf_session;
typedef struct kf_repeat kf_repeat;

/* What the planes ask of the outside. Each function gets `context` first. */
typedef struct kf_env {
    double (*now)(void *context);          /* monotonic seconds */
    int64_t (*wall_ms)(void *context);     /* Unix time in ms, for record timestamps */
    void (*wake_data)(void *context);      /* end the data plane's sleep */
    void (*wake_control)(void *context);   /* there are events */
    void (*wake_observers)(void *context); /* there are completed batches with observers */
    void (*submit)(void *context, kf_batch *batch); /* compress this batch, then kf_queue_coded */
    uint32_t (*crc32c)(uint32_t crc, const void *data, size_t len);
    uint32_t (*crc32c_combine)(uint32_t first, uint32_t second, size_t second_len);
    void *context;
} kf_env;

/* Who may end the data plane's sleep; each level includes those before it. */
enum kf_wake {
    KF_WAKE_NOBODY = 0,   /* awake, or every window is full */
    KF_WAKE_FULL = 1,     /* a full batch, a flush, a blocked caller, a waiter's kick */
    KF_WAKE_SENDABLE = 2, /* a batch reached batch.size */
    KF_WAKE_OPENED = 3,   /* a first record */
    KF_WAKE_NEVER = 4,    /* of an empty inbox */
};

/* What the data plane reports upwards; the control plane owns (and frees) each event. */
enum kf_event_kind {
    KF_EVENT_RESPONSE = 1,    /* the answer to a raw request: token, bytes */
    KF_EVENT_PUNT = 2, /* a Produce answer that is not plain success; `code`: its version */
    KF_EVENT_LINK_CLOSED = 3, /* `code`: enum kf_close; bytes: the head of what is no frame; token:
                               * kind of the oldest request in flight, or 0 */
    KF_EVENT_THROTTLED = 4, /* `code`: throttle_time_ms of a Produce answer */
    KF_EVENT_ROUTE = 5, /* rows: queues with data that have no link */
    KF_EVENT_REPORT = 6, /* a frozen queue has nothing in flight any more. Rows: the queue's
                          * own (serial -1), then its unresolved batches in order */
    KF_EVENT_DUMP = 7, /* a link's debug ring: `bytes` are kf_trace, oldest first; `code`: requests
                        * in flight. One with link_id 0 ends the answer to `token` */
    KF_EVENT_FETCH_PUNT = 8, /* a Fetch answer (version `code`) for which these rows were frozen */
    KF_EVENT_STREAMS_STOPPED = 9, /* rows: stopped by command, or their link is gone */
    KF_EVENT_REPEAT_ENDED = 10, /* the user is stuck: `token` is repeated no more */
    KF_EVENT_BAD_ANSWER = 11, /* bytes: an answer for which the link is closed next; token: kind of
                               * the request, code: its version; one row made of a kf_misfit:
                               * error_code its kind, queue_id asked, serial place, attempts earlier */
};

/* How a Produce or Fetch answer does not fit its request. */
enum kf_misfit_kind {
    KF_MISFIT_FORM = 0, /* it does not follow its schema */
    KF_MISFIT_FOREIGN = 1, /* it names a partition that was not asked for */
    KF_MISFIT_TWICE = 2, /* it names a partition twice */
    KF_MISFIT_MISSING = 3, /* it leaves out a partition that was asked for */
    KF_MISFIT_SESSION = 4, /* it is of another fetch session */
};

/* Why a link was closed. */
enum kf_close {
    KF_CLOSE_BY_US = 1, /* asked by the control plane */
    KF_CLOSE_EOF = 2, /* the peer closed */
    KF_CLOSE_OS_ERROR = 3, /* read or write failed; `detail` is errno */
    KF_CLOSE_TIMEOUT = 4, /* request.timeout.ms passed without an answer */
    KF_CLOSE_BAD_FRAME = 5, /* length out of range; `detail` is the length */
    KF_CLOSE_BAD_RESPONSE = 6, /* a Produce or Fetch answer that does not fit its request */
    KF_CLOSE_CORRELATION = 7, /* answer to nothing that is in flight; `detail` is its id */
    KF_CLOSE_IDLE = 8, /* connections.max.idle.ms passed without a request */
};

/* A queue, or a batch of it, in an event. Of a stream: queue_id is its id, base_offset the fetch
 * position, base_sequence the leader epoch of the last batch that was fetched. */
typedef struct kf_row {
    int64_t queue_id;
    int64_t serial; /* with `slice`: the batch; -1: the queue's own row */
    int64_t generation; /* of the freeze: a verdict must carry it */
    int64_t base_offset; /* as answered last, or -1 */
    int32_t base_sequence; /* the queue's own row: its next one */
    int32_t record_count;
    int32_t attempts; /* how often this batch was sent */
    int32_t slice; /* of a split batch */
    int16_t error_code; /* as answered last; 0: its link was closed without an answer */
    bool doubt; /* may be in the log. The queue's own row: a batch that may be in the log
                 * expired, so the sequences may have a gap */
} kf_row;

typedef struct kf_misfit {
    int kind;      /* enum kf_misfit_kind */
    int32_t place; /* which partition of the answer, in its order, is foreign or there twice */
    int64_t asked; /* id of the queue or stream that is missing, or -1 */
    bool earlier;  /* another such answer over the same link was well */
} kf_misfit;

typedef struct kf_event {
    struct kf_event *next;
    int kind;
    int32_t link_id;
    int32_t code;
    int64_t detail;
    int64_t token;
    uint8_t *bytes; /* a frame without its length field, or NULL */
    size_t size;
    kf_row *rows;
    int row_count;
    int row_capacity;
} kf_event;

/* What the control plane asks of the data plane; carried out at the start of the next step. */
enum kf_command_kind {
    KF_COMMAND_ADD_LINK = 1, /* link */
    KF_COMMAND_CLOSE_LINK = 2,
    KF_COMMAND_SEND_RAW = 3, /* bytes, token; at: seconds to wait for the answer */
    KF_COMMAND_PROGRAM = 4, /* bytes: Produce prefix; pos: of its correlation id; flags: form */
    KF_COMMAND_ROUTE = 5, /* queue to link_id (0: none) */
    KF_COMMAND_TOPIC = 6, /* bytes: the topic's name or id field for link format `flags` */
    KF_COMMAND_PRODUCER_ID = 7, /* producer_id, epoch: for queues that have nothing unresolved */
    KF_COMMAND_DUMP = 8, /* report every link's debug ring under `token` */
    KF_COMMAND_VERDICT = 9, /* on one batch of a frozen queue, see kf_verdict */
    KF_COMMAND_THAW = 10, /* queue, generation: go on at `at`; flags: one in flight first */
    KF_COMMAND_FAIL_QUEUE = 11, /* fail all of a queue's batches that are in no request */
    KF_COMMAND_PROGRAM_FETCH = 12, /* session: how the link fetches */
    KF_COMMAND_ADD_STREAM = 13,
    KF_COMMAND_NAME_STREAM = 14, /* bytes: the topic's name or id field for link format `flags` */
    KF_COMMAND_START_STREAM = 15, /* over link_id, under generation, from base_offset on */
    KF_COMMAND_STOP_STREAM = 16, /* if generation is its own */
    KF_COMMAND_PAUSE_STREAM = 17, /* flags: whether */
    KF_COMMAND_REMOVE_STREAM = 18,
    KF_COMMAND_REPEAT = 19, /* repeat */
    KF_COMMAND_STOP_REPEAT = 20, /* token */
    KF_COMMAND_INTERJECT = 21, /* token; bytes, under `serial`, at; generation: answers heard */
};

enum kf_verdict {
    KF_VERDICT_FAIL = 1, /* the batch ends with error_code and outcome */
    KF_VERDICT_SUCCEED = 2, /* the batch is in the log at base_offset (or -1) */
    KF_VERDICT_SPLIT = 3, /* the batch becomes batches of at most `size` bytes */
    KF_VERDICT_RENUMBER = 4, /* all unresolved batches: sequences from base_sequence, with this
                              * producer id and epoch; none of them may have an unknown fate */
};

typedef struct kf_command {
    struct kf_command *next;
    int kind;
    int verdict;
    kf_link *link;
    kf_queue *queue;
    kf_topic *topic;
    kf_stream *stream; /* one reference */
    kf_session *session; /* owned */
    kf_repeat *repeat; /* owned */
    int32_t link_id;
    int32_t flags;
    int32_t slice;
    int64_t serial;
    int64_t generation;
    int64_t token;
    int64_t producer_id;
    int64_t base_offset;
    int64_t timestamp_ms;
    double at;
    int32_t base_sequence;
    int32_t pos;
    int16_t epoch;
    int16_t version;
    int32_t error_code;
    int32_t outcome;
    int32_t leader_epoch;
    int32_t last_epoch;
    uint8_t *bytes;
    size_t size;
} kf_command;

/* Counters and histograms: the data plane counts (`blocked`: callers, under the GIL), any thread
 * reads; one number may be newer than the next. */
enum { KF_HISTOGRAM_BUCKETS = 40 };

typedef struct kf_histogram {
    kf_counter buckets[KF_HISTOGRAM_BUCKETS]; /* bucket i: below 2^i microseconds */
    kf_counter count;
    kf_sum sum; /* seconds */
} kf_histogram;

typedef struct kf_stats {
    kf_counter records_acked, records_failed, batches_acked, batches_failed;
    kf_counter requests, bytes_out, bytes_in, retries, punts, splits, expired_batches;
    kf_counter throttle_ms, blocked;
    kf_histogram queue_time; /* batch opened to request written */
    kf_histogram request_time; /* request written to answer read */
    kf_histogram batch_bytes; /* sizes as sent, bucket i: below 2^i bytes; sum in bytes */
} kf_stats;

/* What went to and came from one node, over all its links. Never freed before the plane. */
struct kf_node {
    kf_node *next;
    int32_t id;
    kf_counter requests, bytes_out, bytes_in, links;
    kf_histogram request_time;
};

typedef struct kf_plane {
    kf_env env;
    kf_pool pool;
    kf_fetcher *fetcher; /* NULL: nothing is fetched here */

    /* limits, set once before the first record */
    size_t batch_size; /* batch.size: sendable from here on */
    size_t seal_size; /* max(batch.size, 256 KiB): full */
    size_t max_request_size; /* of one record and one batch */
    size_t coalesce_bytes; /* of one Produce request */
    size_t max_frame; /* receive.message.max.bytes */
    double linger; /* seconds */
    double delivery_timeout;
    double request_timeout;
    double max_idle; /* of a link, from its last request or answer; 0: for ever */
    double availability_timeout; /* partitioner.availability.timeout.ms; 0: off */
    int max_in_flight; /* Produce requests per link */
    int codec; /* compression code of the record batch attributes, 0 for none */
    bool idempotent;
    bool acks_zero;

    kf_mutex lock; /* inbox, commands, events, incomplete list, observed list */
    kf_cond done; /* a batch completed and somebody waits */
    kf_queue *inbox; /* queues with news for the data plane */
    kf_queue **inbox_tail;
    int inbox_level; /* the most urgent news in the inbox, enum kf_wake */
    kf_command *commands, **commands_tail;
    kf_event *events, **events_tail;
    kf_batch *oldest, *newest; /* incomplete batches in the order of their opening */
    kf_batch *observed, **observed_tail; /* completed batches that have observers */
    kf_queue *queues; /* all of them, linked by `registered` */
    kf_node *nodes; /* that a link was ever added for, newest first */
    int64_t next_serial, next_generation;
    int awake_misses, awake_skipped; /* staying awake: in vain lately; waits without since */

    kf_atomic_int wake_level; /* enum kf_wake: who may end the sleep */
    kf_atomic_int waiters; /* threads that wait for `done` */
    kf_atomic_int flushing; /* flushes under way: every open batch is sendable */
    kf_atomic_int closed; /* no record is accepted any more */
    void *owner; /* the object that holds the plane; handles reach it by way of their batch */
    bool inherited; /* by a forked child: locks may be held for ever, so nothing is freed */
    kf_stats stats;
} kf_plane;

void kf_plane_init(kf_plane *plane, const kf_env *env, size_t buffer_memory);
void kf_plane_destroy(kf_plane *plane);

/* Tell the data plane that `queue` has news of level `level` (any thread, no lock held). */
void kf_plane_notify(kf_plane *plane, kf_queue *queue, int level);
/* End the data plane's sleep if `level` may. */
void kf_plane_wake(kf_plane *plane, int level);
/* Let the data plane look again at `flushing` and the pool's `waiting`, which have just changed. */
void kf_plane_urge(kf_plane *plane);
/* Take the whole inbox (data plane); linked by `kf_queue.taken_next`. */
kf_queue *kf_plane_take_inbox(kf_plane *plane);
/* All queues, linked by `registered`; new ones are put before these. */
kf_queue *kf_plane_queues(kf_plane *plane);

/* Commands, events and rows are a few hundred bytes each: a process that cannot have them any
 * more is beyond saving, so these three abort instead of returning NULL. */
kf_command *kf_command_new(int kind);
void kf_plane_command(kf_plane *plane, kf_command *command); /* owns it from here on */
kf_command *kf_plane_take_commands(kf_plane *plane);
void kf_command_free(kf_command *command);

kf_event *kf_event_new(int kind, int32_t link_id);
kf_row *kf_event_row(kf_event *event); /* append a row, for the caller to fill in */
/* KF_EVENT_BAD_ANSWER, with a copy of the frame; without memory for that it has none. */
kf_event *kf_event_bad_answer(int32_t link_id, int request_kind, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit);
void kf_plane_event(kf_plane *plane, kf_event *event);
kf_event *kf_plane_take_events(kf_plane *plane);
void kf_event_free(kf_event *event);

/* True if the data plane must not go to sleep at this level: something that may end such a sleep
 * came in meanwhile. */
bool kf_plane_has_news(kf_plane *plane, int level);

/* The node's counters, made on first use (data plane). */
kf_node *kf_plane_node(kf_plane *plane, int32_t id);

/* Enter and leave the list of incomplete batches; a child enters before `newer`. */
void kf_plane_opened(kf_plane *plane, kf_batch *batch, kf_batch *newer);
void kf_plane_ended(kf_plane *plane, kf_batch *batch);
/* Data plane: queues with a batch opened before `cutoff`, at most `capacity`; the number found.
 * `*next` gets the opening time of the oldest batch that is younger, or 0. */
int kf_plane_overdue(kf_plane *plane, double cutoff, kf_queue **queues, int capacity, double *next);

/* The batch that was opened first of those whose fate is not known: its queue and when it was
 * opened. False: there is none. */
bool kf_plane_oldest(kf_plane *plane, int64_t *queue_id, double *created);
/* The serial that the next batch will get: a flush waits for all below it. */
int64_t kf_plane_serial(kf_plane *plane);
/* True once no batch with a serial below `serial` is incomplete; and the records of those. */
bool kf_plane_flushed(kf_plane *plane, int64_t serial);
int64_t kf_plane_pending_before(kf_plane *plane, int64_t serial);

/* Wait until the batch (or all below `serial`) is done, at most `seconds`: call in slices. */
void kf_plane_wait_batch(kf_plane *plane, kf_batch *batch, double seconds);
void kf_plane_wait_flushed(kf_plane *plane, int64_t serial, double seconds);

/* Ended batches that have observers or have failed, in the order of their ending, linked by
 * `next`; the list owns a reference to each, which the taker inherits. */
void kf_plane_observe(kf_plane *plane, kf_batch *batch);
kf_batch *kf_plane_take_observed(kf_plane *plane);

void kf_histogram_add(kf_histogram *histogram, double value, double unit);

#endif /* KF_PLANE_H */
