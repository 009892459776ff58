#include "kf_pool.h"

#include <stdlib.h>

/* The class whose slabs hold `size` bytes, or -1 if it is larger than the largest class. */
static int class_of(size_t size) {
    int index = 0;
    size_t capacity = (size_t)1 << KF_SLAB_MIN_SHIFT;
    while (capacity < size && index < KF_SLAB_CLASSES) {
        capacity <<= 1;
        index++;
    }
    return index < KF_SLAB_CLASSES ? index : -1;
}

/* The free list for slabs of this capacity, or -1: only whole classes are kept. */
static int free_list_of(size_t capacity) {
    int index = class_of(capacity);
    return index >= 0 && capacity == (size_t)1 << (KF_SLAB_MIN_SHIFT + index) ? index : -1;
}

/* Bytes that a slab of `size` takes: its class's, but never more than could ever be had. */
static size_t capacity_of(const kf_pool *pool, size_t size) {
    int index = class_of(size);
    size_t capacity = index < 0 ? size : (size_t)1 << (KF_SLAB_MIN_SHIFT + index);
    return capacity > pool->limit ? size : capacity;
}

static bool has_room(const kf_pool *pool) {
    return pool->reserved <= pool->limit - pool->limit / 4;
}

void kf_pool_init(kf_pool *pool, size_t limit) {
    kf_mutex_init(&pool->lock);
    kf_cond_init(&pool->room);
    pool->limit = limit;
    pool->reserved = 0;
    pool->cached = 0;
    pool->waiting = 0;
    for (int i = 0; i < KF_SLAB_CLASSES; i++) {
        pool->free[i] = NULL;
    }
}

/* Free cached slabs until `size` more bytes fit under the limit; largest classes first, for they
 * are the fewest. Called with the lock held. */
static void trim(kf_pool *pool, size_t size) {
    for (int i = KF_SLAB_CLASSES - 1; i >= 0; i--) {
        while (pool->free[i] != NULL && pool->reserved + pool->cached + size > pool->limit) {
            kf_slab *slab = pool->free[i];
            pool->free[i] = slab->next;
            pool->cached -= slab->capacity;
            free(slab);
        }
    }
}

void kf_pool_destroy(kf_pool *pool) {
    pool->limit = 0;
    trim(pool, 0);
    kf_cond_destroy(&pool->room);
    kf_mutex_destroy(&pool->lock);
}

kf_slab *kf_pool_take(kf_pool *pool, size_t size, bool beyond) {
    size_t capacity = capacity_of(pool, size);
    int index = free_list_of(capacity);
    kf_slab *slab = NULL;
    kf_lock(&pool->lock);
    if (!beyond && pool->reserved + capacity > pool->limit) {
        kf_unlock(&pool->lock);
        return NULL;
    }
    if (index >= 0 && pool->free[index] != NULL) {
        slab = pool->free[index];
        pool->free[index] = slab->next;
        pool->cached -= capacity;
    } else {
        trim(pool, capacity);
    }
    if (!beyond) {
        pool->reserved += capacity;
    }
    kf_unlock(&pool->lock);
    if (slab == NULL) {
        slab = malloc(sizeof *slab + capacity);
        if (slab == NULL) {
            if (!beyond) {
                kf_lock(&pool->lock);
                pool->reserved -= capacity;
                kf_unlock(&pool->lock);
            }
            return NULL;
        }
    }
    slab->next = NULL;
    slab->capacity = capacity;
    slab->size = 0;
    slab->beyond = beyond;
    return slab;
}

void kf_pool_give(kf_pool *pool, kf_slab *chain) {
    bool wake = false;
    kf_slab *surplus = NULL;
    kf_lock(&pool->lock);
    while (chain != NULL) {
        kf_slab *slab = chain;
        int index = free_list_of(slab->capacity);
        chain = slab->next;
        if (!slab->beyond) {
            pool->reserved -= slab->capacity;
        }
        if (index >= 0 && pool->reserved + pool->cached + slab->capacity <= pool->limit) {
            slab->next = pool->free[index];
            pool->free[index] = slab;
            pool->cached += slab->capacity;
        } else {
            slab->next = surplus;
            surplus = slab;
        }
    }
    wake = kf_get(&pool->waiting) > 0 && has_room(pool);
    if (wake) {
        kf_cond_wake_all(&pool->room);
    }
    kf_unlock(&pool->lock);
    while (surplus != NULL) {
        kf_slab *slab = surplus;
        surplus = slab->next;
        free(slab);
    }
}

void kf_pool_wait(kf_pool *pool, size_t size, double seconds) {
    kf_lock(&pool->lock);
    if (!has_room(pool) || pool->reserved + capacity_of(pool, size) > pool->limit) {
        kf_cond_wait(&pool->room, &pool->lock, seconds);
    }
    kf_unlock(&pool->lock);
}

size_t kf_pool_reserved(kf_pool *pool) {
    kf_lock(&pool->lock);
    size_t reserved = pool->reserved;
    kf_unlock(&pool->lock);
    return reserved;
}
