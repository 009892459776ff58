/* The one wake of a client's users: what a waiting thread sleeps on, whatever it waits for.
 *
 *   waiter: seen = kf_wake_count ─► look at what is waited for ─► kf_wake_wait(seen) ─► look again
 *   publisher: publish ─► kf_wake_raise
 *
 * The one exception: a thread whose `send` waits for memory sleeps on the condition of the pool
 * (kf_pool_wait), because this wake is raised for every batch that ends, which seldom means room.
 * (A task of an event loop sleeps on this wake for memory, too.)
 *
 * An event count: a waiter that reads the count before it looks cannot miss what is published after
 * that. So one wake serves any number of waiters, whatever they wait for.
 */
#ifndef KF_WAKE_H
#define KF_WAKE_H

#include "kf_sync.h"

typedef struct kf_wake {
    kf_mutex lock; /* held by a sleeper from its last look at the count until it sleeps */
    kf_cond raised;
    kf_atomic_long count;   /* how often it was raised */
    kf_atomic_int sleepers; /* threads in kf_wake_wait */
    kf_atomic_int watchers; /* event loops, which sleep elsewhere: `wake_observers` wakes them */
} kf_wake;

static inline void kf_wake_init(kf_wake *wake) {
    kf_mutex_init(&wake->lock);
    kf_cond_init(&wake->raised);
}

static inline void kf_wake_destroy(kf_wake *wake) {
    kf_cond_destroy(&wake->raised);
    kf_mutex_destroy(&wake->lock);
}

static inline int64_t kf_wake_count(kf_wake *wake) {
    return kf_get_long(&wake->count);
}

/* End all sleeps (any thread). Returns whether there are event loops to be woken. */
static inline bool kf_wake_raise(kf_wake *wake) {
    atomic_fetch_add_explicit(&wake->count, 1, memory_order_seq_cst);
    kf_fence(); /* first the count, then the sleepers; kf_wake_wait has the opposite order */
    if (kf_get(&wake->sleepers) > 0) {
        kf_lock(&wake->lock);
        kf_unlock(&wake->lock);
        kf_cond_wake_all(&wake->raised); /* not under the lock, which each of them needs */
    }
    return kf_get(&wake->watchers) > 0;
}

/* Sleep until the count differs from `seen`, at most `seconds`. The sleep may end early, as a wait
 * on a condition variable does. Returns whether the count differs. */
static inline bool kf_wake_wait(kf_wake *wake, int64_t seen, double seconds) {
    kf_lock(&wake->lock);
    kf_add(&wake->sleepers, 1);
    kf_fence();
    if (kf_wake_count(wake) == seen) {
        kf_cond_wait(&wake->raised, &wake->lock, seconds);
    }
    kf_add(&wake->sleepers, -1);
    kf_unlock(&wake->lock);
    return kf_wake_count(wake) != seen;
}

#endif /* KF_WAKE_H */
