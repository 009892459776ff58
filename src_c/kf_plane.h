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

#include "kf_commands.h"
#include "kf_event.h"
#include "kf_heartbeat.h"
#include "kf_sync.h"
#include "kf_wake.h"

typedef struct kf_batch kf_batch;
typedef struct kf_node kf_node;
typedef struct kf_producer kf_producer;
typedef struct kf_fetcher kf_fetcher;

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
/* A blank command of one side (kf_commands.h is made from control/ messages, see make_messages).
 * Aborts instead of returning NULL, see kf_event.h. */
kf_command *kf_command_new(enum kf_side side);
void kf_plane_command(kf_plane *plane, kf_command *command); /* owns it from here on */
/* To be carried out, in order, at the start of the next step. */
kf_command *kf_plane_take_commands(kf_plane *plane);
/* Nobody knows this command: abort in a debug build, report KF_EVENT_UNKNOWN_COMMAND otherwise. */
void kf_plane_refuse(kf_plane *plane, const kf_command *command, int kind);
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
