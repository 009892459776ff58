/* What the data plane and the user's thread share of fetching, under the threads that touch it:
 *
 *   data plane ── reserve, frames, chunks ──► arrivals ──► user: reads, holds, seeks, lets go
 *        ▲                                                   │
 *        └────────────── room ◄── wake ◄─────────────────────┘        meter: interrupts, looks
 *
 * The budget is small and the data plane sleeps without a timer, so a lost wake-up stops the run.
 * The user gets only chunks of the generation that it wants, without gaps. At the end nothing is
 * reserved, buffered or pinned.
 *
 *   fetching SEED FRAMES
 */
#include "kf_fetch.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    STREAMS = 5,
    BUDGET = 1 << 18,
    SHARE = 1 << 16, /* of one frame */
    HELD = 24,       /* chunks that the user looks at, read or not */
    STUCK_SECONDS = 20,
};

typedef struct fetching {
    kf_plane plane;
    kf_fetcher *fetcher;
    kf_stream *streams[STREAMS];
    uint64_t seed;
    int frames;
    int data_event;
    kf_atomic_int fetched; /* the data plane is done */
    kf_atomic_int stopping;
} fetching;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "fetching: %s\n", what);
    exit(1);
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

static void wake(void *context) {
    uint64_t one = 1;
    if (write(((fetching *)context)->data_event, &one, sizeof one) < 0) {
        fail("no event to write");
    }
}

static void wake_nobody(void *context) {
    (void)context;
}

/* ---- the data plane ---- */

static size_t reserve(fetching *shared) {
    for (;;) {
        size_t had = kf_budget_reserve(shared->fetcher->budget, SHARE, SHARE / 2, false);
        if (had != 0) {
            return had;
        }
        struct pollfd fd = {shared->data_event, POLLIN, 0};
        uint64_t drained;
        if (poll(&fd, 1, STUCK_SECONDS * 1000) <= 0 ||
            read(shared->data_event, &drained, sizeof drained) < 0) {
            fail("room came back and nobody said so");
        }
    }
}

/* A piece of the frame for this stream: its bytes say which, and where in its log they stand. */
static kf_chunk *make_chunk(kf_frame *frame, kf_stream *stream, size_t pos, size_t size) {
    int64_t wanted = kf_get_long(&stream->wanted);
    if (wanted != stream->generation) {
        stream->generation = wanted;
        stream->position = 0;
    }
    kf_chunk *chunk = kf_chunk_new(frame, stream, 0);
    if (chunk == NULL) {
        fail("out of memory");
    }
    memset(frame->data + pos, (int)((stream->id + stream->position) & 0xff), size);
    chunk->generation = stream->generation;
    chunk->asked_offset = stream->position;
    chunk->next_offset = ++stream->position;
    chunk->data = frame->data + pos;
    chunk->size = size;
    kf_set_long(&stream->high_watermark, stream->position);
    kf_add_long(&stream->unread, (int64_t)size);
    return chunk;
}

static void *data_main(void *argument) {
    fetching *shared = argument;
    uint64_t random = shared->seed;
    for (int i = 0; i < shared->frames; i++) {
        size_t reserved = reserve(shared);
        size_t size = 64 + next_random(&random) % reserved;
        int count = (int)(next_random(&random) % (STREAMS + 1));
        kf_frame *frame = kf_frame_new(shared->fetcher->budget, size, size / 2);
        if (frame == NULL) {
            fail("out of memory");
        }
        while (frame->capacity < size) {
            kf_frame_grow(frame);
        }
        kf_chunk *chunks = NULL;
        kf_chunk **tail = &chunks;
        for (int k = 0; k < count; k++) {
            size_t each = size / (size_t)count;
            *tail = make_chunk(frame, shared->streams[k], (size_t)k * each, each);
            tail = &(*tail)->next;
        }
        kf_budget_return(shared->fetcher->budget, reserved);
        if (count > 0) {
            kf_frame_buffer(frame, count);
            kf_fetcher_arrive(shared->fetcher, chunks);
        }
        kf_frame_unref(frame);
        if (kf_plane_alive(&shared->plane) < 0.0) {
            fail("nobody is dead here");
        }
    }
    kf_set(&shared->fetched, 1);
    kf_plane_wake_users(&shared->plane);
    return NULL;
}

/* ---- the user ---- */

static void check_chunk(const kf_chunk *chunk, int64_t *generation, int64_t *position) {
    if (chunk->generation != *generation) {
        fail("a chunk of another generation than the user wants");
    }
    /* What was on its way at a seek may be missing, so a generation may begin in its middle. */
    if (*position != -1 && chunk->asked_offset != *position) {
        fail("a gap between two chunks");
    }
    *position = chunk->next_offset;
    uint8_t expected = (uint8_t)((chunk->stream_id + chunk->asked_offset) & 0xff);
    for (size_t i = 0; i < chunk->size; i += 97) {
        if (chunk->data[i] != expected) {
            fail("a frame was written while somebody reads it");
        }
    }
}

static void *user_main(void *argument) {
    fetching *shared = argument;
    uint64_t random = shared->seed + 1;
    kf_chunk *held[HELD] = {NULL};
    int64_t generations[STREAMS] = {0};
    int64_t positions[STREAMS] = {0};
    for (bool last = false; !last;) {
        last = kf_get(&shared->fetched) != 0;
        int64_t seen = kf_wake_count(&shared->plane.wake);
        if (!last && !kf_fetcher_has_arrivals(shared->fetcher) && kf_get(&shared->fetched) == 0) {
            kf_wake_wait(&shared->plane.wake, seen, 1.0); /* may end early: this loop looks again */
        }
        kf_chunk *chunk = kf_fetcher_take(shared->fetcher, 1 + (int)(next_random(&random) % 8));
        last = last && chunk == NULL;
        while (chunk != NULL) {
            kf_chunk *next = chunk->next;
            int64_t id = chunk->stream_id;
            size_t place = next_random(&random) % HELD;
            check_chunk(chunk, &generations[id], &positions[id]);
            if (held[place] != NULL) {
                kf_chunk_free(held[place]);
            }
            held[place] = chunk;
            if (next_random(&random) % 2 == 0) {
                kf_chunk_done(chunk);
            }
            chunk = next;
        }
        uint64_t dropped =
            next_random(&random) % HELD; /* else unread chunks could fill the budget */
        if (held[dropped] != NULL) {
            kf_chunk_free(held[dropped]);
            held[dropped] = NULL;
        }
        if (next_random(&random) % 16 == 0) {
            uint64_t id = next_random(&random) % STREAMS;
            kf_fetcher_want(shared->fetcher, shared->streams[id], ++generations[id]);
            positions[id] = -1;
        }
        kf_plane_set_alive(&shared->plane, (double)(next_random(&random) % 100));
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i] != NULL) {
            kf_chunk_free(held[i]);
        }
    }
    return NULL;
}

/* ---- the run ---- */

static void *meter_main(void *argument) {
    fetching *shared = argument;
    while (!kf_get(&shared->stopping)) {
        kf_budget_use use = kf_budget_used(shared->fetcher->budget);
        if (use.reserved + use.buffered > BUDGET + 64) {
            fail("the budget is overdrawn");
        }
        for (int i = 0; i < STREAMS; i++) {
            if (kf_get_long(&shared->streams[i]->unread) < 0 ||
                kf_get_long(&shared->streams[i]->high_watermark) < -1) {
                fail("a count is negative");
            }
        }
        kf_plane_wake_users(&shared->plane);
        poll(NULL, 0, 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static fetching shared;
    void *(*const mains[])(void *) = {data_main, user_main, meter_main};
    pthread_t threads[3];
    if (argc != 3) {
        fail("usage: fetching SEED FRAMES");
    }
    shared.seed = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u;
    shared.frames = (int)strtol(argv[2], NULL, 10);
    shared.data_event = eventfd(0, EFD_NONBLOCK);
    kf_env env = {.wake_data = wake,
                  .wake_control = wake_nobody,
                  .wake_observers = wake_nobody,
                  .context = &shared};
    kf_plane_init(&shared.plane, &env);
    shared.fetcher = shared.plane.fetcher = kf_fetcher_new(&shared.plane, BUDGET);
    for (int i = 0; i < STREAMS; i++) {
        shared.streams[i] = kf_stream_new(i, 0, i, INT64_MAX);
    }
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, mains[i], &shared);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    kf_set(&shared.stopping, 1);
    pthread_join(threads[2], NULL);
    kf_budget_use use = kf_budget_used(shared.fetcher->budget);
    if (use.reserved + use.buffered + use.pinned != 0) {
        fail("something is still reserved, buffered or pinned");
    }
    for (int i = 0; i < STREAMS; i++) {
        if (kf_get_long(&shared.streams[i]->unread) != 0) {
            fail("something is still unread");
        }
        kf_stream_unref(shared.streams[i]);
    }
    printf("fetching: seed %lu: %d frames, %ld chunks dropped\n", (unsigned long)shared.seed,
           shared.frames, (long)kf_counted(&shared.fetcher->stats.dropped_chunks));
    kf_plane_destroy(&shared.plane);
    close(shared.data_event);
    return 0;
}
