/* Fetching, as the data plane and the user's thread share it: streams, chunks, arrivals.
 *
 *   control plane ── start, stop, pause ──► stream ── Fetch ──► answer ── chunk ──┐
 *   user's thread ── set_generation (seek) ──► stream ◄── of an older one: drop ──┤
 *   user's thread ◄── take ── arrivals ◄──────────────────────────────────────────┘
 *
 * A stream is a partition that is being fetched. Each start of it has a higher generation. The
 * user's thread says from which generation on chunks are `wanted`, and a seek raises that number.
 * Chunks of an older generation are dropped wherever they are, and a stream that was started before
 * the seek is not fetched any more.
 *
 * Threads: sessions, and a stream's fields under «data plane», belong to that thread alone.
 * Arrivals are under the fetcher's lock, under which the budget's may be taken.
 */
#ifndef KF_FETCH_H
#define KF_FETCH_H

#include "kf_frame.h"
#include "kf_queue.h"

/* A transaction whose records are to be dropped from here on, up to its abort marker. */
typedef struct kf_aborted {
    int64_t producer_id;
    int64_t first_offset;
} kf_aborted;

/* A partition's piece of a frame. Made by the data plane, then owned by one thread at a time. */
typedef struct kf_chunk {
    struct kf_chunk *next; /* in the arrivals */
    kf_frame *frame;       /* one reference */
    kf_stream *stream;     /* one reference; NULL: of no stream (tests) */
    int64_t stream_id;
    int64_t generation;         /* of the stream when this was asked for */
    int64_t asked_offset;       /* records below it are not wanted */
    int64_t next_offset;        /* the fetch position behind it, by its batch headers */
    int64_t high_watermark;     /* -1: not told */
    int64_t last_stable_offset; /* -1: not told */
    int64_t log_start_offset;   /* -1: not told */
    const uint8_t *data;        /* whole batches, unless it is broken */
    size_t size;
    bool broken; /* a batch header makes no sense: from there on `data` is as it came, and nothing
                  * more is fetched before the stream is started again */
    bool done;   /* read to its end */
    int32_t aborted_count;
    kf_aborted aborted[];
} kf_chunk;

/* How requests name a topic. A stream keeps its older names too, because a session may still know
 * the stream by one of them. */
typedef struct kf_name {
    struct kf_name *older;
    size_t size;
    uint8_t data[];
} kf_name;

/* Counted by reference: the control plane's handle, the data plane, each session entry and each
 * chunk hold one. */
struct kf_stream {
    kf_atomic_int refs;
    int64_t id;
    int32_t partition;
    int32_t topic_order; /* the same for all streams of a topic: they stand together */
    int64_t end; /* nothing is asked for from this offset on */
    kf_atomic_long wanted; /* the lowest generation that the user wants; user's thread */
    kf_atomic_long unread; /* bytes of chunks that are not done; any thread */
    kf_atomic_long high_watermark, last_stable_offset, log_start_offset; /* as told last, or -1 */

    /* data plane */
    kf_stream *next, *previous; /* of the fetcher's streams */
    kf_name *name[KF_TOPIC_FORMATS]; /* NULL: requests of this format cannot name it */
    kf_link *link; /* fetched from here; NULL: from nowhere */
    int64_t generation; /* -1: never started */
    int64_t position; /* fetch position */
    int32_t leader_epoch;
    int32_t last_epoch; /* leader epoch of the last batch that was fetched, or -1 */
    bool paused;
    bool frozen; /* an answer was punted: nothing before the next start */
    bool broken; /* a batch header made no sense: nothing before the next start */
    kf_session *session; /* the last session that added an entry for the stream, or NULL */
    int32_t entry; /* place of that entry, or -1 */
};

/* What a request asked for a stream; stays while the session remembers it. */
typedef struct kf_entry {
    kf_stream *stream; /* one reference */
    const kf_name *name; /* by which the session knows it */
    int64_t generation;
    int64_t offset;
    int32_t leader_epoch;
    int32_t last_epoch;
    uint32_t seen; /* number of the answer that named it last */
    bool forgotten; /* the request that is being built asks the broker to forget it */
} kf_entry;

enum {
    KF_PIECE_MIN = 2 << 20, /* bytes that a Fetch asks for to begin with */
};

/* Fetching over one link: how requests are framed, and the fetch session (KIP-227). Before v7 each
 * request is a session of its own. Data plane. */
struct kf_session {
    kf_budget *budget;
    uint8_t *prefix, *suffix; /* of the request, from the control plane */
    size_t prefix_size, suffix_size;
    int32_t max_bytes_pos; /* of max_bytes in the prefix */
    int16_t version;
    int topic_format; /* enum kf_topic_format */
    bool flexible;    /* v12 and up */

    int32_t id;    /* 0: none */
    int32_t epoch; /* of the next request; 0: a full one, which begins a session */
    kf_entry *entries;
    int32_t count, capacity;
    int32_t *table; /* places of entries by topic and partition, open addressing; -1: free */
    int32_t table_size;
    uint32_t answers; /* read so far */
    int32_t turn_topic, turn_partition; /* the stream that brought records last, or -1 */

    int32_t routed; /* streams that are fetched over the link */
    bool in_flight;
    bool full;       /* the request in flight names all streams that it asks for */
    size_t reserved; /* bytes of the budget, by the request in flight */
    size_t piece;    /* bytes to ask for, if the link's share of the budget allows as many */
    double begun_at; /* when a first piece of the answer was there; 0: none, or all at once */
    double back_off; /* seconds, after an answer that came at once and brought nothing */
    double not_before;
    kf_frame *frame; /* the answer that is being read */
    kf_session *successor; /* takes over when nothing is in flight: another version */
};

/* Counted by the data plane, read by any. */
typedef struct kf_fetch_stats {
    kf_counter fetches, full_fetches, bytes, chunks, empty_answers, sessions_begun, sessions_lost;
    kf_counter punts, dropped_chunks, broken_chunks, overdrafts;
} kf_fetch_stats;

struct kf_fetcher {
    kf_plane *plane;
    kf_budget *budget;
    size_t max_bytes;           /* fetch.max.bytes */
    size_t partition_max_bytes; /* max.partition.fetch.bytes */

    kf_mutex lock;
    kf_chunk *arrivals, **arrivals_tail;

    kf_stream *streams; /* data plane */
    kf_stream **scratch;
    int32_t scratch_capacity;
    kf_fetch_stats stats;
};

/* NULL: out of memory. */
kf_fetcher *kf_fetcher_new(kf_plane *plane, size_t buffer_bytes);
/* The plane has stopped and its links are closed; kf_plane_destroy calls this. */
void kf_fetcher_free(kf_fetcher *fetcher);

/* A chunk with room for so many aborted transactions, or NULL. Takes references to the frame and
 * the stream (which may be NULL). */
kf_chunk *kf_chunk_new(kf_frame *frame, kf_stream *stream, int32_t aborted_count);
/* The chunk was read to its end, or nobody wants it. With the last chunk its frame leaves the
 * budget. Only the first call counts. */
void kf_chunk_done(kf_chunk *chunk);
/* The same as kf_chunk_done, and free the chunk with its references. */
void kf_chunk_free(kf_chunk *chunk);

/* A stream with one reference, or NULL. Without an end, `end` is INT64_MAX. */
kf_stream *kf_stream_new(int64_t id, int32_t topic_order, int32_t partition, int64_t end);
/* Set the topic's field in requests of this format (data plane). False: out of memory. */
bool kf_stream_name(kf_stream *stream, int topic_format, const uint8_t *field, size_t size);
void kf_stream_ref(kf_stream *stream);
void kf_stream_unref(kf_stream *stream);

/* Hand over the chunks of one answer (data plane). Those that are not wanted any more are freed. */
void kf_fetcher_arrive(kf_fetcher *fetcher, kf_chunk *chunks);
/* Begin a generation (user's thread): what has arrived under an older one is freed at once. */
void kf_fetcher_want(kf_fetcher *fetcher, kf_stream *stream, int64_t generation);
/* Take the first `most` chunks in the order of their arrival (user's thread). */
kf_chunk *kf_fetcher_take(kf_fetcher *fetcher, int most);
/* Whether there are any (any thread). Each arrival raises the plane's wake. */
bool kf_fetcher_has_arrivals(kf_fetcher *fetcher);

kf_session *kf_session_new(void);
void kf_session_free(kf_session *session);
/* Forget what was asked: the next request is a full one. */
void kf_session_clear(kf_session *session);
/* Add an entry for the stream, under its present name; NULL: out of memory. It is not found before
 * the next kf_session_index. */
kf_entry *kf_session_add(kf_session *session, kf_stream *stream);
/* Remove the entry at `place`; the last entry moves there. */
void kf_session_remove(kf_session *session, int32_t place);
/* Make kf_session_find know all entries. False: out of memory. */
bool kf_session_index(kf_session *session);
/* The place of the entry of this topic and partition, or -1; `hint` is looked at first. */
int32_t kf_session_find(const kf_session *session, int32_t hint, const uint8_t *topic,
                        size_t topic_size, int32_t partition);

#endif /* KF_FETCH_H */
