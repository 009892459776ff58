#include "kf_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    WHOLE_REGION = KF_SLAB_CLASSES, /* the list of free regions; no slab is that large */
};

static const size_t REGION_SIZE = (size_t)1 << KF_REGION_SHIFT;

static size_t class_size(int index) {
    return (size_t)1 << (KF_SLAB_MIN_SHIFT + index);
}

/* The class whose slabs hold `size` bytes, or -1 if it is larger than the largest class. */
static int class_of(size_t size) {
    int index = 0;
    while (index < KF_SLAB_CLASSES && class_size(index) < size) {
        index++;
    }
    return index < KF_SLAB_CLASSES ? index : -1;
}

/* Bytes that a slab of `size` takes: those of its class, unless the whole pool has fewer. */
static size_t capacity_of(const kf_pool *pool, size_t size) {
    int index = class_of(size);
    size_t capacity = index < 0 ? size : class_size(index);
    return capacity > pool->limit ? size : capacity;
}

static bool has_room(const kf_pool *pool) {
    return pool->reserved <= pool->limit - pool->limit / 4;
}

/* ---- regions ---- */

/* Map a region at a multiple of its size, or return NULL. */
static uint8_t *map_region(bool huge) {
    uint8_t *start =
        mmap(NULL, 2 * REGION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    size_t before = (REGION_SIZE - (uintptr_t)start % REGION_SIZE) % REGION_SIZE;
    uint8_t *memory = start + before;
    if (before != 0) {
        munmap(start, before);
    }
    munmap(memory + REGION_SIZE, REGION_SIZE - before);
#ifdef MADV_HUGEPAGE
    if (huge) {
        madvise(memory, REGION_SIZE, MADV_HUGEPAGE);
    }
#else
    (void)huge;
#endif
    return memory;
}

static void unmap_region(kf_region *region) {
    munmap(region->memory, REGION_SIZE);
    free(region);
}

/* ---- free lists; called with the lock held ---- */

static void put_free(kf_pool *pool, kf_slab *slab, int index) {
    slab->capacity = class_size(index);
    slab->is_free = true;
    slab->previous = NULL;
    slab->next = pool->free[index];
    if (slab->next != NULL) {
        slab->next->previous = slab;
    }
    pool->free[index] = slab;
}

static void remove_free(kf_pool *pool, kf_slab *slab, int index) {
    slab->is_free = false;
    if (slab->next != NULL) {
        slab->next->previous = slab->previous;
    }
    if (slab->previous != NULL) {
        slab->previous->next = slab->next;
    } else {
        pool->free[index] = slab->next;
    }
}

static bool add_region(kf_pool *pool) {
    kf_region *region = calloc(1, sizeof *region);
    if (region == NULL) {
        return false;
    }
    region->memory = map_region(pool->region_count > 0);
    if (region->memory == NULL) {
        free(region);
        return false;
    }
    for (size_t i = 0; i < KF_REGION_UNITS; i++) {
        region->units[i].region = region;
        region->units[i].data = region->memory + i * class_size(0);
    }
    region->next = pool->regions;
    if (region->next != NULL) {
        region->next->previous = region;
    }
    pool->regions = region;
    pool->region_count++;
    put_free(pool, region->units, WHOLE_REGION);
    return true;
}

/* Take a slab of this class: halve the smallest free one until it fits, and put the other halves
 * back. NULL: out of memory. */
static kf_slab *take_free(kf_pool *pool, int index) {
    int from = index;
    while (from <= WHOLE_REGION && pool->free[from] == NULL) {
        from++;
    }
    if (from > WHOLE_REGION) {
        if (!add_region(pool)) {
            return NULL;
        }
        from = WHOLE_REGION;
    }
    kf_slab *slab = pool->free[from];
    remove_free(pool, slab, from);
    while (from > index) {
        from--;
        put_free(pool, slab + ((size_t)1 << from), from);
    }
    slab->capacity = class_size(index);
    return slab;
}

/* Put a slab back, joined with its other half as long as that is free too. If its region is whole
 * again and more than the limit is mapped, return the region, for the caller to unmap. */
static kf_region *give_free(kf_pool *pool, kf_slab *slab) {
    kf_region *region = slab->region;
    int index = class_of(slab->capacity);
    while (index < WHOLE_REGION) {
        size_t unit = (size_t)(slab - region->units);
        kf_slab *other = &region->units[unit ^ (size_t)1 << index];
        if (!other->is_free || other->capacity != class_size(index)) {
            break;
        }
        remove_free(pool, other, index);
        slab = other < slab ? other : slab;
        index++;
    }
    if (index < WHOLE_REGION || (pool->region_count - 1) * REGION_SIZE < pool->limit) {
        put_free(pool, slab, index);
        return NULL;
    }
    if (region->next != NULL) {
        region->next->previous = region->previous;
    }
    if (region->previous != NULL) {
        region->previous->next = region->next;
    } else {
        pool->regions = region->next;
    }
    pool->region_count--;
    return region;
}

/* ---- the pool ---- */

void kf_pool_init(kf_pool *pool, size_t limit) {
    memset(pool, 0, sizeof *pool);
    kf_mutex_init(&pool->lock);
    kf_cond_init(&pool->room);
    pool->limit = limit;
}

void kf_pool_destroy(kf_pool *pool) {
    while (pool->regions != NULL) {
        kf_region *region = pool->regions;
        pool->regions = region->next;
        unmap_region(region);
    }
    kf_cond_destroy(&pool->room);
    kf_mutex_destroy(&pool->lock);
}

/* A slab with memory of its own, or NULL. */
static kf_slab *new_large(size_t size) {
    kf_slab *slab = malloc(sizeof *slab + size);
    if (slab != NULL) {
        slab->region = NULL;
        slab->data = (uint8_t *)(slab + 1);
        slab->capacity = size;
    }
    return slab;
}

kf_slab *kf_pool_take(kf_pool *pool, size_t size, bool beyond) {
    size_t capacity = capacity_of(pool, size);
    int index = class_of(capacity);
    bool classed = index >= 0 && class_size(index) == capacity;
    kf_slab *slab = NULL;
    kf_lock(&pool->lock);
    if (beyond || pool->reserved + capacity <= pool->limit) {
        slab = classed ? take_free(pool, index) : new_large(capacity);
    }
    if (slab != NULL && !beyond) {
        pool->reserved += capacity;
    }
    kf_unlock(&pool->lock);
    if (slab != NULL) {
        slab->next = NULL;
        slab->size = 0;
        slab->beyond = beyond;
    }
    return slab;
}

void kf_pool_give(kf_pool *pool, kf_slab *chain) {
    kf_slab *large = NULL;
    kf_region *surplus = NULL;
    kf_lock(&pool->lock);
    while (chain != NULL) {
        kf_slab *slab = chain;
        chain = slab->next;
        if (!slab->beyond) {
            pool->reserved -= slab->capacity;
        }
        if (slab->region == NULL) {
            slab->next = large;
            large = slab;
            continue;
        }
        kf_region *region = give_free(pool, slab);
        if (region != NULL) {
            region->next = surplus;
            surplus = region;
        }
    }
    if (kf_get(&pool->waiting) > 0 && has_room(pool)) {
        kf_cond_wake_all(&pool->room);
    }
    kf_unlock(&pool->lock);
    while (large != NULL) {
        kf_slab *slab = large;
        large = slab->next;
        free(slab);
    }
    while (surplus != NULL) {
        kf_region *region = surplus;
        surplus = region->next;
        unmap_region(region);
    }
}

/* The caller holds the lock. */
static bool may_take(const kf_pool *pool, size_t size) {
    return has_room(pool) && pool->reserved + capacity_of(pool, size) <= pool->limit;
}

void kf_pool_wait(kf_pool *pool, size_t size, double seconds) {
    kf_lock(&pool->lock);
    if (!may_take(pool, size)) {
        kf_cond_wait(&pool->room, &pool->lock, seconds);
    }
    kf_unlock(&pool->lock);
}

bool kf_pool_has_room(kf_pool *pool, size_t size) {
    kf_lock(&pool->lock);
    bool room = may_take(pool, size);
    kf_unlock(&pool->lock);
    return room;
}

size_t kf_pool_reserved(kf_pool *pool) {
    kf_lock(&pool->lock);
    size_t reserved = pool->reserved;
    kf_unlock(&pool->lock);
    return reserved;
}
