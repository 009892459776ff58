/* What the data plane reports upwards, as a tagged union; `_events.pyx` makes objects of it.
 *
 * Events and rows are a few hundred bytes each. A process without memory for them is beyond saving,
 * so the functions that make them abort instead of returning NULL.
 */
#ifndef KF_EVENT_H
#define KF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The control plane owns (and frees) each event. Its struct in `kf_event` has the same name. */
enum kf_event_kind {
    KF_EVENT_RAW_RESPONSE = 1,
    KF_EVENT_LINK_CLOSED,
    KF_EVENT_BAD_ANSWER,
    KF_EVENT_THROTTLED,
    KF_EVENT_HEARTBEATS_ENDED,
    KF_EVENT_GATE_SHUT,
    KF_EVENT_LINK_TRACES,
    KF_EVENT_TRACES_ENDED,
    KF_EVENT_UNKNOWN_COMMAND,
    KF_EVENT_PRODUCE_PUNT,
    KF_EVENT_ROUTE_WANTED,
    KF_EVENT_QUEUE_REPORT,
    KF_EVENT_FETCH_PUNT,
    KF_EVENT_STREAMS_STOPPED,
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
                         * the event's head is its words */
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

/* ---- what events consist of ---- */

typedef struct kf_bytes {
    uint8_t *data; /* NULL: none, or no memory for them */
    size_t size;
} kf_bytes;

typedef struct kf_batch_rows {
    kf_batch_row *rows;
    int count, capacity;
} kf_batch_rows;

typedef struct kf_stream_rows {
    kf_stream_row *rows;
    int count, capacity;
} kf_stream_rows;

typedef struct kf_queue_ids {
    int64_t *ids;
    int count, capacity;
} kf_queue_ids;

/* ---- the kinds ---- */

/* The answer to a raw request or a heartbeat. */
typedef struct kf_raw_response {
    int32_t link_id;
    int32_t reason; /* without a frame: enum kf_close */
    int64_t token;
    kf_bytes frame; /* without its length field */
} kf_raw_response;

typedef struct kf_link_closed {
    int32_t link_id;
    int32_t reason; /* enum kf_close */
    int32_t awaited; /* kind of the oldest request in flight, or 0 */
    int64_t detail; /* see enum kf_close */
    kf_bytes head; /* the first bytes of what was no whole frame */
} kf_link_closed;

/* A Produce or Fetch answer for which the link is closed next. */
typedef struct kf_bad_answer {
    int32_t link_id;
    int32_t request; /* its kind */
    int16_t version;
    kf_misfit misfit;
    kf_bytes frame;
} kf_bad_answer;

typedef struct kf_throttled {
    int32_t link_id;
    int32_t throttle_ms; /* of a Produce or Fetch answer */
} kf_throttled;

/* The user is stuck. */
typedef struct kf_heartbeats_ended {
    int32_t link_id;
    int64_t token;
} kf_heartbeats_ended;

/* The link's gate is shut, and nothing is in flight. */
typedef struct kf_gate_shut {
    int32_t link_id;
} kf_gate_shut;

/* A link's debug ring, in answer to DumpLinks. */
typedef struct kf_link_traces {
    int32_t link_id;
    int32_t node_id;
    int32_t in_flight; /* requests */
    kf_bytes ring; /* kf_trace, oldest first */
} kf_link_traces;

/* All links were dumped. */
typedef struct kf_traces_ended {
    int64_t token;
} kf_traces_ended;

/* Our own fault. */
typedef struct kf_unknown_command {
    int32_t side;
    int32_t kind;
} kf_unknown_command;

/* A Produce answer that is not plain success. */
typedef struct kf_produce_punt {
    int32_t link_id;
    int16_t version;
    kf_bytes frame;
    kf_batch_rows batches; /* those that it refuses */
} kf_produce_punt;

/* Queues with data that have no link. */
typedef struct kf_route_wanted {
    kf_queue_ids queues;
} kf_route_wanted;

/* A frozen queue has nothing in flight any more. */
typedef struct kf_queue_report {
    kf_queue_row queue;
    kf_batch_rows batches; /* in order */
} kf_queue_report;

/* A Fetch answer for which these streams were frozen. */
typedef struct kf_fetch_punt {
    int32_t link_id;
    int16_t version;
    kf_bytes frame;
    kf_stream_rows streams;
} kf_fetch_punt;

/* Stopped by command, or their link is gone. */
typedef struct kf_streams_stopped {
    kf_stream_rows streams;
} kf_streams_stopped;

typedef struct kf_event {
    struct kf_event *next;
    enum kf_event_kind kind;
    union {
        kf_raw_response raw_response;
        kf_link_closed link_closed;
        kf_bad_answer bad_answer;
        kf_throttled throttled;
        kf_heartbeats_ended heartbeats_ended;
        kf_gate_shut gate_shut;
        kf_link_traces link_traces;
        kf_traces_ended traces_ended;
        kf_unknown_command unknown_command;
        kf_produce_punt produce_punt;
        kf_route_wanted route_wanted;
        kf_queue_report queue_report;
        kf_fetch_punt fetch_punt;
        kf_streams_stopped streams_stopped;
    };
} kf_event;

/* A blank one. */
kf_event *kf_event_new(enum kf_event_kind kind);
/* One that tells the end of a request without an answer. */
kf_event *kf_event_unanswered(int32_t link_id, int64_t token, int32_t reason);
/* With a copy of the frame, or without one if there is no memory for it. */
kf_event *kf_event_bad_answer(int32_t link_id, int32_t request, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit);
void kf_event_free(kf_event *event);

/* Append a blank row, for the caller to fill in. */
kf_batch_row *kf_append_batch(kf_batch_rows *batches);
kf_stream_row *kf_append_stream(kf_stream_rows *streams);
void kf_append_queue_id(kf_queue_ids *queues, int64_t queue_id);
/* Make `bytes` a copy of these. False: there are none, or no memory for them. */
bool kf_bytes_copy(kf_bytes *bytes, const uint8_t *data, size_t size);

/* Return `memory`; abort if there was none. */
void *kf_must(void *memory);

#endif /* KF_EVENT_H */
