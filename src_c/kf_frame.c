#include "kf_frame.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory ---- */

enum {
    KF_HUGE_PAGE = 2 << 20,
};

/* Capacities come in eighths of a power of two, so that the next answer of about the same size
 * fits into this one's memory. */
static size_t round_up(size_t size) {
    size_t step = 512;
    while (step * 8 < size) {
        step *= 2;
    }
    return (size + step - 1) / step * step;
}

/* Memory for a frame. A frame that fills huge pages asks for them: a page fault for every 4 KiB
 * costs as much as reading 4 KiB from the socket. */
static uint8_t *new_memory(size_t capacity) {
#ifdef MADV_HUGEPAGE
    void *memory;
    if (capacity >= KF_HUGE_PAGE && posix_memalign(&memory, KF_HUGE_PAGE, capacity) == 0) {
        madvise(memory, capacity / KF_HUGE_PAGE * KF_HUGE_PAGE, MADV_HUGEPAGE); /* advice */
        return memory;
    }
#endif
    return malloc(capacity);
}

static void free_frames(kf_frame *frames) {
    while (frames != NULL) {
        kf_frame *next = frames->next;
        free(frames->data);
        free(frames);
        frames = next;
    }
}

/* Take the first cached frame with enough memory, but not with much more than that. */
static kf_frame *take_cached(kf_budget *budget, size_t capacity) {
    kf_lock(&budget->lock);
    kf_frame **at = &budget->cache;
    while (*at != NULL && ((*at)->capacity < capacity || (*at)->capacity / 2 > capacity)) {
        at = &(*at)->next;
    }
    kf_frame *frame = *at;
    if (frame != NULL) {
        *at = frame->next;
        budget->cached -= frame->capacity;
        budget->cached_count--;
    }
    kf_unlock(&budget->lock);
    return frame;
}

/* Cut the cache down to what the limit leaves free, and to half of the limit: after a burst nobody
 * needs more. A quarter of the limit is kept even if nothing is free: while the user is slower than
 * the broker, the next answers are read into these frames. Called with the lock held. Returns the
 * surplus frames, which the caller frees without the lock. */
static kf_frame *trim(kf_budget *budget) {
    kf_frame **at = &budget->cache;
    size_t kept = 0;
    int count = 0;
    size_t used = budget->buffered + budget->pinned;
    size_t room = budget->limit > used ? budget->limit - used : 0;
    room = room < budget->limit / 2 ? room : budget->limit / 2;
    room = room > budget->limit / 4 ? room : budget->limit / 4;
    while (*at != NULL && count < KF_FRAME_CACHE_MAX && kept + (*at)->capacity <= room) {
        kept += (*at)->capacity;
        count++;
        at = &(*at)->next;
    }
    kf_frame *surplus = *at;
    *at = NULL;
    budget->cached = kept;
    budget->cached_count = count;
    return surplus;
}

/* ---- the budget ---- */

static size_t room_of(const kf_budget *budget) {
    size_t used = budget->reserved + budget->buffered;
    return used < budget->limit ? budget->limit - used : 0;
}

/* Room has come back: wake the data plane if there is as much as it waits for. Called with the lock
 * held, so that a plane which is about to end is still there. */
static void wake_starved(kf_budget *budget) {
    if (budget->wanted != 0 && budget->plane != NULL && room_of(budget) >= budget->wanted) {
        budget->wanted = 0;
        budget->plane->env.wake_data(budget->plane->env.context);
    }
}

kf_budget *kf_budget_new(kf_plane *plane, size_t limit) {
    kf_budget *budget = calloc(1, sizeof *budget);
    if (budget == NULL) {
        return NULL;
    }
    kf_mutex_init(&budget->lock);
    kf_set(&budget->refs, 1);
    budget->plane = plane;
    budget->limit = limit;
    return budget;
}

static void unref_budget(kf_budget *budget) {
    if (kf_add(&budget->refs, -1) == 0) {
        free_frames(budget->cache);
        kf_mutex_destroy(&budget->lock);
        free(budget);
    }
}

void kf_budget_detach(kf_budget *budget) {
    kf_lock(&budget->lock);
    budget->plane = NULL;
    budget->limit = 0;
    kf_frame *surplus = trim(budget);
    kf_unlock(&budget->lock);
    free_frames(surplus);
    unref_budget(budget);
}

size_t kf_budget_reserve(kf_budget *budget, size_t most, size_t least, bool beyond) {
    kf_lock(&budget->lock);
    size_t room = room_of(budget);
    size_t had = room < most ? room : most;
    if (had < least) {
        if (beyond) {
            had = least;
        } else {
            had = 0;
            if (budget->wanted == 0 || least < budget->wanted) {
                budget->wanted = least;
            }
        }
    }
    budget->reserved += had;
    kf_unlock(&budget->lock);
    return had;
}

void kf_budget_return(kf_budget *budget, size_t size) {
    kf_lock(&budget->lock);
    budget->reserved -= size;
    wake_starved(budget);
    kf_unlock(&budget->lock);
}

kf_budget_use kf_budget_used(kf_budget *budget) {
    kf_lock(&budget->lock);
    kf_budget_use use = {budget->reserved, budget->buffered, budget->pinned, budget->cached};
    kf_unlock(&budget->lock);
    return use;
}

/* ---- frames ---- */

kf_frame *kf_frame_new(kf_budget *budget, size_t size, size_t trusted) {
    size_t capacity = round_up(trusted < size ? trusted : size);
    kf_frame *frame = budget == NULL ? NULL : take_cached(budget, capacity);
    if (frame == NULL) {
        frame = malloc(sizeof *frame);
        if (frame == NULL) {
            return NULL;
        }
        frame->data = new_memory(capacity);
        if (frame->data == NULL) {
            free(frame);
            return NULL;
        }
        frame->capacity = capacity;
    }
    frame->next = NULL;
    frame->budget = budget;
    frame->unread = 0;
    frame->buffered = frame->pinned = false;
    frame->size = size;
    frame->filled = 0;
    kf_set(&frame->refs, 1);
    if (budget != NULL) {
        kf_add(&budget->refs, 1);
    }
    return frame;
}

bool kf_frame_grow(kf_frame *frame) {
    size_t twice = frame->capacity * 2;
    size_t capacity = round_up(twice < frame->size ? twice : frame->size);
    uint8_t *larger = realloc(frame->data, capacity);
    if (larger == NULL) {
        return false;
    }
    frame->data = larger;
    frame->capacity = capacity;
    return true;
}

void kf_frame_ref(kf_frame *frame) {
    kf_add(&frame->refs, 1);
}

void kf_frame_unref(kf_frame *frame) {
    if (kf_add(&frame->refs, -1) != 0) {
        return;
    }
    kf_budget *budget = frame->budget;
    frame->next = NULL;
    if (budget == NULL) {
        free_frames(frame);
        return;
    }
    kf_lock(&budget->lock);
    if (frame->buffered) {
        budget->buffered -= frame->size;
        wake_starved(budget);
    } else if (frame->pinned) {
        budget->pinned -= frame->size;
    }
    frame->next = budget->cache;
    budget->cache = frame;
    kf_frame *surplus = trim(budget);
    kf_unlock(&budget->lock);
    free_frames(surplus);
    unref_budget(budget);
}

void kf_frame_buffer(kf_frame *frame, int32_t chunks) {
    kf_budget *budget = frame->budget;
    if (budget == NULL) {
        return;
    }
    kf_lock(&budget->lock);
    frame->unread = chunks;
    frame->buffered = true;
    budget->buffered += frame->size;
    kf_frame *surplus = trim(budget);
    kf_unlock(&budget->lock);
    free_frames(surplus);
}

void kf_frame_read(kf_frame *frame) {
    kf_budget *budget = frame->budget;
    if (budget == NULL) {
        return;
    }
    kf_lock(&budget->lock);
    if (--frame->unread == 0) {
        frame->buffered = false;
        frame->pinned = true;
        budget->buffered -= frame->size;
        budget->pinned += frame->size;
        wake_starved(budget);
    }
    kf_unlock(&budget->lock);
}
