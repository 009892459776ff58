/* One connection to one node. The data plane sees it as functions to read, write and close.
 *
 * Requests go out in order and come back in order. The window holds the requests in flight; their
 * batches and framing live as long as they do. The bytes of an answer are gathered here until a
 * frame is whole; what the frame means is the sender's business.
 *
 * Thread: data plane only, except for the fields that are set before KF_COMMAND_ADD_LINK.
 */
#ifndef KF_LINK_H
#define KF_LINK_H

#include "kf_fetch.h"
#include "kf_plane.h"
#include "kf_queue.h"
#include "kf_wire.h"
#include <sys/uio.h>

enum {
    KF_TRACE_LINES = 1024,       /* of the debug ring */
    KF_LINK_WRITE_PIECES = 256,  /* per write call */
    KF_LINK_RECEIVE_MIN = 65536, /* bytes of the receive buffer to begin with */
    KF_LINK_WORDS = 128, /* bytes that a layer's words for an error may have */
    KF_LINK_PEEK = 4096, /* bytes read to learn the length of a Fetch answer */
    KF_API_KEY_POS = 4, /* in every request: after its length; the version follows */
    KF_CORRELATION_POS = 8, /* in every request: after its length, API key and version */
};

/* Results of a link's read and write besides a byte count. A socket's read wants to read, and its
 * write wants to write. Under TLS each of the two may want either: a read answers the peer's
 * handshake messages, a write waits for them. */
enum { KF_IO_WANT_READ = -1, KF_IO_WANT_WRITE = -2, KF_IO_ERROR = -3 };

/* What a link waits for, as bits. */
enum { KF_WANT_NOTHING = 0, KF_WANT_READ = 1, KF_WANT_WRITE = 2 };

typedef struct kf_link_io {
    /* Write a gather list; bytes written, KF_IO_WANT_*, or KF_IO_ERROR (errno in `*error`). */
    int64_t (*write)(void *context, const struct iovec *pieces, int count, int *error);
    /* Read at most `size` bytes: their number, 0 if the peer closed, or as write. */
    int64_t (*read)(void *context, void *into, size_t size, int *error);
    /* Bytes that the next read returns although the poller may not say so, because a layer above
     * the socket holds them. NULL: there is no such layer. */
    size_t (*pending)(void *context);
    /* Put the words for the error of a layer above the socket into `into`; their length, 0 if the
     * last error is an errno. Otherwise `*error` was a number of the layer's own. NULL: as
     * `pending`. */
    size_t (*explain)(void *context, char *into, size_t size);
    /* Close; the link reads and writes no more. Idempotent. */
    void (*close)(void *context);
    /* Free `context`; the last call. */
    void (*dispose)(void *context);
    void *context;
} kf_link_io;

/* A login ends (KIP-368). Shortly before, the link's gate shuts, and what is to be sent waits: the
 * queues, the streams and the heartbeats where they are, raw requests in a list of their own. When
 * all requests in flight have been answered, the control plane is told. It logs in again, with
 * requests that pass the gate, and opens the gate. */
enum kf_gate {
    KF_GATE_OPEN = 0,
    KF_GATE_SHUT = 1, /* requests are in flight */
    KF_GATE_TOLD = 2, /* the control plane knows that none is; only a login's requests pass */
};

/* How Produce requests and their answers look: on a link as programmed, in a request as sent. */
typedef struct kf_produce_form {
    int16_t version;
    bool flexible;    /* v9 and up */
    int topic_format; /* enum kf_topic_format */
} kf_produce_form;

/* A topic as a request in flight names it: the topic may have got another id since. */
typedef struct kf_topic_field {
    const uint8_t *start; /* in the request's framing; the length of a name included */
    size_t size;
} kf_topic_field;

/* Return the topic's field in an answer: the same bytes as in the request. */
static inline const uint8_t *kf_read_topic(kf_reader *reader, int topic_format, size_t *size) {
    const uint8_t *start = reader->pos;
    if (topic_format == KF_TOPIC_NAME) {
        kf_read_span(reader, kf_read_i16(reader));
    } else if (topic_format == KF_TOPIC_COMPACT_NAME) {
        kf_read_span(reader, (int64_t)kf_read_uvarint(reader) - 1);
    } else {
        kf_read_span(reader, KF_TOPIC_ID_SIZE);
    }
    *size = (size_t)(reader->pos - start);
    return start;
}

typedef struct kf_request {
    struct kf_request *next;
    int kind; /* enum kf_request_kind */
    int32_t correlation_id;
    bool answered;        /* an answer is expected (not with acks=0) */
    bool written;         /* to its last byte */
    double written_at;
    double timeout;       /* seconds for its answer, see kf_link_deadline */
    double queued_at;
    int64_t token;        /* raw and heartbeats: the control plane's */
    uint8_t *framing;     /* bytes that belong to this request alone */
    struct iovec *pieces; /* framing and batches, in wire order */
    int piece_count;
    int piece_pos;        /* first piece not wholly written; its iov_base has been moved on */
    size_t size;          /* bytes on the wire, length field included */
    kf_batch **batches;   /* Produce: in wire order */
    kf_topic_field *topics; /* Produce: of each batch */
    int batch_count;
    kf_produce_form form; /* Produce: as sent; the link's own may change before the answer */
} kf_request;

enum kf_trace_kind {
    KF_TRACE_OPEN = 1,
    KF_TRACE_SENT = 2,
    KF_TRACE_RECEIVED = 3,
    KF_TRACE_PUNT = 4,
    KF_TRACE_CLOSE = 5,
    KF_TRACE_QUEUED = 6,
    KF_TRACE_GATE_SHUT = 7,
    KF_TRACE_GATE_OPEN = 8,
};

/* One line of the debug ring: what became of a request, or of the link. */
typedef struct kf_trace {
    double at;
    int64_t serial; /* of the first batch, or -1 */
    int64_t size;   /* bytes */
    int32_t correlation_id;
    int16_t api_key; /* -1: it is about the link */
    int8_t version;
    uint8_t kind;
} kf_trace;

struct kf_link {
    kf_link *next;
    int32_t id;       /* 1 and up, unique in the client */
    int32_t node_id;
    kf_link_io io;
    int fd;           /* for the poller; -1: driven by hand */
    bool closed;
    bool readable;    /* a read may bring something; cleared when one does not */
    int read_wants;   /* KF_WANT_*: what the next read waits for */
    int write_wants;  /* what the rest of the unwritten requests waits for, or nothing */
    int32_t next_correlation_id;

    /* the window, in wire order */
    kf_request *first, *last;
    kf_request *unwritten;  /* first request not wholly written */
    int produce_in_flight;
    double round_trip;      /* smoothed seconds from written to answered; 0: not known */

    /* the gate */
    int gate;          /* enum kf_gate */
    double gate_until; /* when it shuts, or has; 0: it stays as it is */
    double used_before; /* last_used without the login's requests, while the gate is shut */
    kf_request *waiting, *waiting_last; /* raw requests, in order; not numbered yet */

    /* Produce as programmed by the control plane */
    uint8_t *prefix; /* request up to and with timeoutMs; length and correlation id blank */
    size_t prefix_size;
    kf_produce_form form; /* of the requests from now on */
    double throttled_until; /* nothing is sent before: the broker throttles */
    double paced_until; /* no drain before, unless a batch is urgent */
    int urgent; /* ready queues that are KF_URGENT */

    /* queues routed here, doubly linked by place */
    kf_queue *ready, *ready_last;
    kf_queue *lingering, *lingering_last;

    /* fetching; NULL: nothing is fetched over this link */
    kf_session *session;

    /* receiving; a Fetch answer goes into a frame of the session, all others here */
    uint8_t *buffer;
    size_t capacity;
    size_t filled;

    kf_trace trace[KF_TRACE_LINES];
    uint32_t trace_count;
    double last_used; /* when a request was queued or an answer came */
    double answered_at; /* when the last answer came */
    double last_drained; /* when batches were taken, or there was nothing to take */
    kf_node *node;
    int64_t bytes_out, bytes_in, requests;
};

kf_link *kf_link_new(int32_t id, int32_t node_id, const kf_link_io *io, int fd);
/* Frees what the link owns; requests must have ended before. */
void kf_link_free(kf_link *link);

void kf_request_free(kf_request *request);
/* Give the request the link's next correlation id, in its framing too. */
void kf_link_number(kf_link *link, kf_request *request);
/* Append to the window. */
void kf_link_queue(kf_link *link, kf_request *request, double now);
/* Let a raw request wait at the gate. */
void kf_link_hold(kf_link *link, kf_request *request);
/* Open the gate: what waits there is queued, in order. A login is no use of the link. */
void kf_link_open_gate(kf_link *link, double now);
/* What the poller is to wait for, KF_WANT_* as bits. */
static inline int kf_link_wants(const kf_link *link) {
    return link->read_wants | link->write_wants;
}
/* Note what the poller says: KF_WANT_* as bits, both of them if the connection has failed. */
static inline void kf_link_ready(kf_link *link, int ready) {
    if ((ready & link->read_wants) != 0) {
        link->readable = true;
    }
}
/* The words for the last error if a layer above the socket has raised it: their length, or 0. */
static inline size_t kf_link_explain(const kf_link *link, char *into, size_t size) {
    return link->io.explain != NULL ? link->io.explain(link->io.context, into, size) : 0;
}
/* Whether a read brings bytes that the poller does not know of. */
static inline bool kf_link_pending(const kf_link *link) {
    return link->io.pending != NULL && link->io.pending(link->io.context) > 0;
}
/* Write what can be written. Requests that expect no answer are moved to `*ended` when they are
 * written. False: the link failed, `*error` is errno. */
bool kf_link_write(kf_link *link, double now, kf_request **ended, int *error);
/* Read once. 1: bytes came, 0: nothing there, -1: the peer closed, -2: failed (`*error`). */
int kf_link_read(kf_link *link, int *error);
/* The next whole frame, without its length: 1 and `*frame`, `*size`; 0: not there yet;
 * -1: a length outside 4..max_frame (`*size` is the length as read). Valid until the next
 * kf_link_consume. */
int kf_link_frame(kf_link *link, size_t max_frame, const uint8_t **frame, int64_t *size);
void kf_link_consume(kf_link *link, int64_t size);
/* Take the first request out of the window if its correlation id fits. */
kf_request *kf_link_answered(kf_link *link, int32_t correlation_id, double now);
/* Take all requests out of the window, in order, and those at the gate. */
kf_request *kf_link_abandon(kf_link *link);
/* When the oldest request times out, or 0 if none is in flight. Its time begins when it is written
 * (or queued, before that), but not before the answer to the request ahead of it, nor before the
 * end of a pause that the broker has announced. */
double kf_link_deadline(const kf_link *link);
/* Note in the debug ring what becomes of the link, or of a request (`size`: of it, or of its
 * answer). */
void kf_link_trace(kf_link *link, double at, int kind);
void kf_link_trace_request(kf_link *link, double at, int kind, const kf_request *request,
                           size_t size);

#endif /* KF_LINK_H */
