/* Locks, waits and atomics: the only place that names pthreads and the memory model.
 *
 * Waits are relative and sliced by the caller: a Python thread must look for signals between two
 * slices (a signal that lands between two waits interrupts none of them).
 */
#ifndef KF_SYNC_H
#define KF_SYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define KF_WAIT_SLICE 0.025 /* seconds between two looks for signals */

typedef pthread_mutex_t kf_mutex;
typedef pthread_cond_t kf_cond;
typedef _Atomic int32_t kf_atomic_int;
typedef _Atomic int64_t kf_atomic_long;

static inline void kf_mutex_init(kf_mutex *mutex) {
    pthread_mutex_init(mutex, NULL);
}

static inline void kf_mutex_destroy(kf_mutex *mutex) {
    pthread_mutex_destroy(mutex);
}

static inline void kf_lock(kf_mutex *mutex) {
    pthread_mutex_lock(mutex);
}

static inline void kf_unlock(kf_mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

/* Condition variables count on the monotonic clock: a wall clock that is set must not stretch a
 * wait. */
static inline void kf_cond_init(kf_cond *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static inline void kf_cond_destroy(kf_cond *cond) {
    pthread_cond_destroy(cond);
}

static inline void kf_cond_wake_all(kf_cond *cond) {
    pthread_cond_broadcast(cond);
}

/* Wait at most `seconds` with `mutex` held; spurious returns are normal. */
static inline void kf_cond_wait(kf_cond *cond, kf_mutex *mutex, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = (int64_t)until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_cond_timedwait(cond, mutex, &until);
}

/* Tell the processor that this thread is in a loop which waits for another's store. */
static inline void kf_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` does nothing on most of them */
#endif
}

/* The full fence of a store-then-load handshake (Dekker): publish, fence, read the other's flag. */
static inline void kf_fence(void) {
    atomic_thread_fence(memory_order_seq_cst);
}

static inline int32_t kf_get(kf_atomic_int *value) {
    return atomic_load_explicit(value, memory_order_acquire);
}

static inline void kf_set(kf_atomic_int *value, int32_t to) {
    atomic_store_explicit(value, to, memory_order_release);
}

static inline int32_t kf_swap(kf_atomic_int *value, int32_t to) {
    return atomic_exchange_explicit(value, to, memory_order_seq_cst);
}

/* Set the value to `to` if it is `*expected`. Else false, and `*expected` becomes the value. */
static inline bool kf_change(kf_atomic_int *value, int32_t *expected, int32_t to) {
    return atomic_compare_exchange_strong_explicit(value, expected, to, memory_order_seq_cst,
                                                   memory_order_seq_cst);
}

/* Add and return the new value. */
static inline int32_t kf_add(kf_atomic_int *value, int32_t by) {
    return atomic_fetch_add_explicit(value, by, memory_order_seq_cst) + by;
}

static inline int64_t kf_get_long(kf_atomic_long *value) {
    return atomic_load_explicit(value, memory_order_acquire);
}

static inline void kf_set_long(kf_atomic_long *value, int64_t to) {
    atomic_store_explicit(value, to, memory_order_release);
}

static inline int64_t kf_add_long(kf_atomic_long *value, int64_t by) {
    return atomic_fetch_add_explicit(value, by, memory_order_relaxed) + by;
}

/* Counters: one thread at a time counts, any thread reads at any time. Relaxed, and no
 * read-modify-write: they cost what plain numbers do, and order nothing. */
typedef _Atomic int64_t kf_counter;
typedef _Atomic double kf_sum;

static inline int64_t kf_counted(const kf_counter *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void kf_count(kf_counter *counter, int64_t by) {
    atomic_store_explicit(counter, kf_counted(counter) + by, memory_order_relaxed);
}

static inline double kf_summed(const kf_sum *sum) {
    return atomic_load_explicit(sum, memory_order_relaxed);
}

static inline void kf_sum_up(kf_sum *sum, double by) {
    atomic_store_explicit(sum, kf_summed(sum) + by, memory_order_relaxed);
}

#endif /* KF_SYNC_H */
