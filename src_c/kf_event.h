/* What the data plane reports upwards; the control plane takes it as tuples.
 *
 * Events and rows are a few hundred bytes each. A process without memory for them is beyond saving,
 * so the functions that make them abort instead of returning NULL.
 */
#ifndef KF_EVENT_H
#define KF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The control plane owns (and frees) each event. */
enum kf_event_kind {
    KF_EVENT_RESPONSE = 1,    /* the answer to a raw request: token, bytes */
    KF_EVENT_PUNT = 2, /* a Produce answer that is not plain success; `code`: its version; batches:
                        * those that it refuses */
    KF_EVENT_LINK_CLOSED = 3, /* `code`: enum kf_close; bytes: the first bytes of what was no whole
                               * frame; token: kind of the oldest request in flight, or 0 */
    KF_EVENT_THROTTLED = 4, /* `code`: throttle_time_ms of a Produce or Fetch answer */
    KF_EVENT_ROUTE = 5, /* queue_ids: queues with data that have no link */
    KF_EVENT_REPORT = 6, /* a frozen queue has nothing in flight any more: queue, batches */
    KF_EVENT_DUMP = 7, /* a link's debug ring: `bytes` are kf_trace, oldest first; `code`: requests
                        * in flight. One with link_id 0 ends the answer to `token` */
    KF_EVENT_FETCH_PUNT =
        8, /* a Fetch answer (version `code`) for which these streams were frozen */
    KF_EVENT_STREAMS_STOPPED = 9, /* stopped by command, or their link is gone */
    KF_EVENT_HEARTBEATS_ENDED = 10, /* the user is stuck: heartbeats of `token` have ended */
    KF_EVENT_BAD_ANSWER = 11, /* an answer (bytes) for which the link is closed next; `misfit`: why;
                               * token: kind of the request; `code`: its version */
    KF_EVENT_GATE_SHUT = 12, /* the link's gate is shut, and nothing is in flight */
    KF_EVENT_UNKNOWN_COMMAND = 13, /* our own fault; `code`: its kind, `detail`: enum kf_side */
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
    KF_CLOSE_CORRELATION = 7, /* an answer to no request in flight; `detail` is its id */
    KF_CLOSE_IDLE = 8, /* connections.max.idle.ms passed without a request */
    KF_CLOSE_LAYER = 9, /* the layer above the socket failed; `detail` is a number of its own, and
                         * the event's bytes are its words */
};

/* A frozen queue, in a report. */
typedef struct kf_queue_row {
    int64_t queue_id;
    int64_t generation; /* of the freeze: a verdict must carry it */
    int32_t next_sequence;
    bool may_have_gap; /* a batch that was sent has expired */
} kf_queue_row;

/* One of its unresolved batches. */
typedef struct kf_batch_row {
    int64_t queue_id;
    int64_t generation;
    int64_t serial; /* with `slice`: the batch */
    int64_t base_offset; /* as answered last, or -1 */
    size_t size; /* bytes, not compressed */
    size_t wire_size; /* bytes in a request */
    int32_t slice; /* of a split batch */
    int32_t base_sequence;
    int32_t record_count;
    int32_t failures; /* tries that have failed, and not for another batch's sake */
    int16_t error_code; /* as answered last; 0: its link was closed without an answer */
    bool maybe_written; /* it may be in the log */
} kf_batch_row;

/* A stream that is not fetched any more. */
typedef struct kf_stream_row {
    int64_t stream_id;
    int64_t generation;
    int64_t fetch_position;
    int32_t last_epoch; /* leader epoch of the last batch that was fetched, or -1 */
    int16_t error_code; /* of its part of the answer, or 0 */
} kf_stream_row;

typedef struct kf_misfit {
    int kind; /* enum kf_misfit_kind */
    int32_t place; /* counts the answer's partitions up to the one that is foreign or named twice */
    int64_t asked; /* id of the queue or stream that is missing, or -1 */
    bool earlier; /* an earlier answer over the same link was well formed */
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
    union {
        kf_queue_row queue; /* KF_EVENT_REPORT */
        kf_misfit misfit; /* KF_EVENT_BAD_ANSWER */
    };
    union { /* rows, by kind of event */
        void *rows;
        kf_batch_row *batches; /* KF_EVENT_REPORT, in order; KF_EVENT_PUNT */
        kf_stream_row *streams; /* KF_EVENT_FETCH_PUNT, KF_EVENT_STREAMS_STOPPED */
        int64_t *queue_ids; /* KF_EVENT_ROUTE */
    };
    int row_count;
    int row_capacity;
} kf_event;

kf_event *kf_event_new(int kind, int32_t link_id);
/* Append one, for the caller to fill in. */
kf_batch_row *kf_event_add_batch(kf_event *event);
kf_stream_row *kf_event_add_stream(kf_event *event);
void kf_event_add_queue(kf_event *event, int64_t queue_id);
/* Give the event a copy of these bytes. False: it has none, for want of memory or of bytes. */
bool kf_event_copy(kf_event *event, const uint8_t *data, size_t size);
/* KF_EVENT_BAD_ANSWER, with a copy of the frame, or without one if there is no memory for it. */
kf_event *kf_event_bad_answer(int32_t link_id, int request_kind, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit);
void kf_event_free(kf_event *event);

/* Return `memory`; abort if there was none. */
void *kf_must(void *memory);

#endif /* KF_EVENT_H */
