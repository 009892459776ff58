/* The meeting place of the planes: a transport, and what it carries for either side.
 *
 *   control plane ── commands ──► data plane ── links ──► brokers
 *   control plane ◄── events ──── data plane
 *   kf_producer (produce side) and kf_fetcher (fetch side) stand on it; a client has those it needs
 *
 * The plane calls no clock and no socket: `kf_env` brings them in, so that the simulation drives
 * the same code with a virtual clock. Lock order: a queue's lock, then the producer's, the plane's
 * or the pool's, of which no two are held together.
 */
#ifndef KF_PLANE_H
#define KF_PLANE_H

#include "kf_event.h"
#include "kf_heartbeat.h"
#include "kf_sync.h"
#include "kf_wake.h"

typedef struct kf_batch kf_batch;
typedef struct kf_queue kf_queue;
typedef struct kf_link kf_link;
typedef struct kf_topic kf_topic;
typedef struct kf_node kf_node;
typedef struct kf_producer kf_producer;
typedef struct kf_fetcher kf_fetcher;
typedef struct kf_stream kf_stream;
typedef struct kf_session kf_session;

/* What the planes ask of the outside. Each function gets `context` first. */
typedef struct kf_env {
    double (*now)(void *context);          /* monotonic seconds */
    int64_t (*wall_ms)(void *context);     /* Unix time in ms, for record timestamps */
    void (*wake_data)(void *context);      /* end the data plane's sleep */
    void (*wake_control)(void *context);   /* there are events */
    void (*wake_observers)(void *context); /* there are completed batches with observers, or
                                            * something that an event loop may wait for */
    void (*submit)(void *context, kf_batch *batch); /* compress this batch, then kf_queue_coded */
    uint32_t (*crc32c)(uint32_t crc, const void *data, size_t len);
    uint32_t (*crc32c_combine)(uint32_t first, uint32_t second, size_t second_len);
    void *context;
} kf_env;

/* Who may end the data plane's sleep; each level includes those before it. */
enum kf_wake_level {
    KF_WAKE_NOBODY = 0,   /* awake, or every window is full */
    KF_WAKE_FULL = 1,     /* a full batch, a flush, a caller that waits for memory or a result */
    KF_WAKE_SENDABLE = 2, /* a batch reached batch.size */
    KF_WAKE_OPENED = 3,   /* a batch got its first record */
    KF_WAKE_NEVER = 4,    /* the level of an empty inbox */
};

/* What the control plane asks of the data plane; carried out at the start of the next step. */
enum kf_command_kind {
    /* of the transport */
    KF_COMMAND_ADD_LINK = 1, /* link */
    KF_COMMAND_CLOSE_LINK,
    KF_COMMAND_SEND_RAW, /* bytes, token, timeout, of_login */
    KF_COMMAND_OPEN_GATE, /* of link_id; it shuts again at `at` (0: never) */
    KF_COMMAND_PAUSE_LINK, /* link_id: the broker throttles, for `timeout` */
    KF_COMMAND_START_HEARTBEATS, /* heartbeat */
    KF_COMMAND_STOP_HEARTBEATS, /* token */
    KF_COMMAND_SEND_BETWEEN, /* token; bytes, under own_token, timeout, heard */
    KF_COMMAND_DUMP, /* report every link's debug ring under `token` */
    /* of the produce side */
    KF_COMMAND_PROGRAM, /* bytes: Produce prefix; version, topic_format */
    KF_COMMAND_ROUTE, /* queue to link_id (0: none) */
    KF_COMMAND_TOPIC, /* bytes: the topic's name or id field for topic_format */
    KF_COMMAND_PRODUCER_ID, /* producer_id, epoch: for queues that have nothing unresolved */
    KF_COMMAND_VERDICT, /* on one batch of a frozen queue, see kf_verdict */
    KF_COMMAND_THAW, /* queue, generation: go on at `at`; single: one in flight first */
    KF_COMMAND_FAIL_QUEUE, /* fail all of a queue's batches that are in no request */
    KF_COMMAND_LIMIT_TOPIC, /* split_size: bytes of a full batch; size: most bytes in a request */
    KF_COMMAND_RESTART_TOPIC, /* its logs are empty: it was deleted and created again */
    /* of the fetch side */
    KF_COMMAND_PROGRAM_FETCH, /* session: how the link fetches */
    KF_COMMAND_ADD_STREAM,
    KF_COMMAND_NAME_STREAM, /* bytes: the topic's name or id field for topic_format */
    KF_COMMAND_START_STREAM, /* over link_id, under generation, from fetch_position on */
    KF_COMMAND_STOP_STREAM, /* if generation is its own */
    KF_COMMAND_PAUSE_STREAM, /* paused */
    KF_COMMAND_REMOVE_STREAM,
};

enum kf_verdict {
    KF_VERDICT_FAIL = 1, /* the batch ends with error_code and outcome; bytes: its detail */
    KF_VERDICT_SUCCEED = 2, /* the batch is in the log at base_offset (or -1) */
    KF_VERDICT_SPLIT = 3, /* the batch becomes batches of at most split_size bytes */
    KF_VERDICT_RENUMBER = 4, /* all unresolved batches: sequences from base_sequence, with this
                              * producer id and epoch; none of them may have an unknown fate */
    KF_VERDICT_FORGIVE = 5, /* the batch's last failure was another batch's, and does not count */
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
    kf_heartbeat *heartbeat; /* owned */
    int32_t link_id;
    int topic_format; /* enum kf_topic_format */
    bool single;
    bool paused;
    bool of_login; /* the request passes the link's gate */
    int32_t slice;
    int64_t serial;
    int64_t generation;
    int64_t token;
    int64_t own_token; /* of a request between heartbeats */
    int64_t heard;     /* answers to heartbeats, and to requests between, that were heard */
    int64_t producer_id;
    int64_t base_offset;
    int64_t fetch_position;
    int64_t timestamp_ms;
    double at;      /* not before this time */
    double timeout; /* seconds to wait for the answer */
    int32_t base_sequence;
    int16_t epoch;
    int16_t version;
    int32_t error_code;
    int32_t outcome;
    int32_t leader_epoch;
    size_t split_size; /* of the pieces of a batch, at most */
    uint8_t *bytes;
    size_t size; /* of `bytes` */
} kf_command;

/* Counters and histograms: the data plane counts, any thread reads; one number may be newer than
 * the next. */
enum { KF_HISTOGRAM_BUCKETS = 40 };

typedef struct kf_histogram {
    kf_counter buckets[KF_HISTOGRAM_BUCKETS]; /* bucket i: values below 2^i units */
    kf_counter count;
    kf_sum sum; /* in the same unit */
} kf_histogram;

/* Of the transport. */
typedef struct kf_stats {
    kf_counter requests, bytes_out, bytes_in, heartbeats;
    kf_counter throttle_ms;
    kf_histogram request_time; /* request written to answer read */
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
    kf_producer *producer; /* NULL: nothing is produced here */
    kf_fetcher *fetcher; /* NULL: nothing is fetched here */

    /* limits, set once before the first link */
    size_t max_frame; /* receive.message.max.bytes */
    double request_timeout; /* seconds */
    double max_idle; /* of a link, from its last request or answer; 0: forever */

    kf_wake wake; /* what users' threads sleep on */
    kf_mutex lock; /* commands, events, nodes, alive_until */
    kf_command *commands, **commands_tail;
    kf_event *events, **events_tail;
    kf_node *nodes; /* those that ever had a link, newest first */
    double alive_until; /* heartbeats end then: after that the user is stuck */

    kf_atomic_int wake_level; /* enum kf_wake_level: who may end the sleep */
    kf_stats stats;
} kf_plane;

void kf_plane_init(kf_plane *plane, const kf_env *env);
/* Frees the sides, too. */
void kf_plane_destroy(kf_plane *plane);

/* End the data plane's sleep if `level` may. */
void kf_plane_wake(kf_plane *plane, int level);
/* Have users' threads and event loops look again at what they wait for (any thread, no lock held).
 */
void kf_plane_wake_users(kf_plane *plane);
/* Aborts instead of returning NULL, see kf_event.h. */
kf_command *kf_command_new(int kind);
void kf_plane_command(kf_plane *plane, kf_command *command); /* owns it from here on */
kf_command *kf_plane_take_commands(kf_plane *plane);
void kf_command_free(kf_command *command);

/* Heartbeats go on until then (any thread). */
void kf_plane_set_alive(kf_plane *plane, double until);
double kf_plane_alive(kf_plane *plane);

void kf_plane_event(kf_plane *plane, kf_event *event);
kf_event *kf_plane_take_events(kf_plane *plane);

/* True if something has come in that may end a sleep of this level: the data plane must not begin
 * it. */
bool kf_plane_has_news(kf_plane *plane, int level);

/* The node's counters, made on first use (data plane). */
kf_node *kf_plane_node(kf_plane *plane, int32_t id);

void kf_histogram_add(kf_histogram *histogram, double value, double unit);

#endif /* KF_PLANE_H */
