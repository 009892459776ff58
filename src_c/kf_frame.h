/* Fetch answers in memory, and the budget that bounds them.
 *
 *   room ── reserve ──► request in flight ── answer ──► buffered ── read to its end ──► pinned
 *     ▲                       │ nothing came                │ nobody holds it             │
 *     └───────────────────────┴─────────────────────────────┴──────── freed ◄─────────────┘
 *
 * A frame is one Fetch answer, counted by reference: each of its chunks holds it (kf_fetch.h), and
 * so does each view of the user's into it. Bytes that a request may bring are `reserved` while it
 * is in flight. Bytes that came are `buffered` until all chunks of their frame were read to their
 * end. After that they are `pinned` while somebody holds the frame. Only reserved and buffered
 * bytes count against the limit.
 *
 * Frames outlive the plane, and so does the budget, which takes their memory back. Threads: any.
 * The budget's lock is a leaf: nothing else is locked under it.
 */
#ifndef KF_FRAME_H
#define KF_FRAME_H

#include "kf_plane.h"

enum {
    KF_FRAME_CACHE_MAX = 64, /* frames kept for the next answers */
};

typedef struct kf_budget kf_budget;

/* One Fetch answer without its length field. Written by the data plane until it is whole, read by
 * any thread after. */
typedef struct kf_frame {
    struct kf_frame *next; /* in the budget's cache */
    kf_budget *budget;     /* NULL: memory of its own */
    kf_atomic_int refs;
    int32_t unread;  /* chunks not read to their end; under the budget's lock */
    bool buffered;   /* counts as buffered; under the budget's lock */
    bool pinned;     /* counts as pinned; under the budget's lock */
    size_t capacity; /* bytes at `data` */
    size_t size;     /* bytes of the answer */
    size_t filled;   /* bytes of the answer that have come so far */
    uint8_t *data;
} kf_frame;

struct kf_budget {
    kf_mutex lock;
    kf_atomic_int refs; /* the plane's, and one for each frame that is not in the cache */
    kf_plane *plane;    /* is woken when room comes back; NULL: it is gone */
    size_t limit;       /* fetch.buffer.bytes */
    size_t reserved;    /* what requests in flight may bring */
    size_t buffered;    /* frames with chunks that were not read to their end */
    size_t pinned;      /* other frames that somebody still holds */
    size_t wanted;      /* room that the data plane waits for; 0: it does not wait */
    size_t cached;      /* bytes of the frames in `cache` */
    int cached_count;
    kf_frame *cache; /* last in, first out: the warmest pages first */
};

/* What the budget holds at one moment, in bytes. */
typedef struct kf_budget_use {
    size_t reserved, buffered, pinned, cached;
} kf_budget_use;

/* The budget of one plane, with one reference; NULL: out of memory. */
kf_budget *kf_budget_new(kf_plane *plane, size_t limit);
/* The plane ends: free the cached frames, wake the plane no more, give up its reference. */
void kf_budget_detach(kf_budget *budget);
/* Reserve up to `most` bytes, but not fewer than `least`; returns how many. 0: there is no room,
 * and the data plane is woken when there is. With `beyond`, `least` are reserved in any case. */
size_t kf_budget_reserve(kf_budget *budget, size_t most, size_t least, bool beyond);
/* Give a reservation back: its answer is here, or will never come. */
void kf_budget_return(kf_budget *budget, size_t size);
kf_budget_use kf_budget_used(kf_budget *budget);

/* A frame for an answer of `size` bytes, of which `trusted` get memory at once, with one
 * reference; NULL: out of memory. `budget` may be NULL. */
kf_frame *kf_frame_new(kf_budget *budget, size_t size, size_t trusted);
/* Double the frame's memory, but never beyond the size of the answer. False: out of memory. */
bool kf_frame_grow(kf_frame *frame);
void kf_frame_ref(kf_frame *frame);
void kf_frame_unref(kf_frame *frame);
/* The frame is whole and has this many chunks: it counts as buffered until they are done. */
void kf_frame_buffer(kf_frame *frame, int32_t chunks);
/* One of its chunks is done. */
void kf_frame_read(kf_frame *frame);

#endif /* KF_FRAME_H */
