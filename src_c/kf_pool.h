/* The slab pool: `buffer.memory` as memory. Batches are chains of slabs taken from here.
 *
 * Slabs come in size classes, 16 KiB doubling to 1 MiB, and are cut from regions of 2 MiB by
 * halving. A slab that comes back joins its other half, so that the same memory serves all classes.
 * A record larger than the largest class gets a slab of its own size.
 *
 * A region is a huge page where the system has them: touching 4 KiB pages one by one costs as much
 * as copying the records. The first region has small pages, so that a producer which sends little
 * takes little.
 *
 * Reserved bytes count against the limit, not memory that was touched. Compressed copies are taken
 * `beyond` the limit: a full pool must still be able to send.
 *
 * Threads: any. The lock is a leaf: nothing else is locked under it.
 */
#ifndef KF_POOL_H
#define KF_POOL_H

#include "kf_sync.h"
#include <stddef.h>

enum {
    KF_SLAB_MIN_SHIFT = 14, /* 16 KiB: a unit */
    KF_SLAB_MAX_SHIFT = 20, /* 1 MiB */
    KF_REGION_SHIFT = 21,   /* 2 MiB: the usual huge page */
    KF_SLAB_CLASSES = KF_SLAB_MAX_SHIFT - KF_SLAB_MIN_SHIFT + 1,
    KF_REGION_UNITS = 1 << (KF_REGION_SHIFT - KF_SLAB_MIN_SHIFT),
};

typedef struct kf_slab {
    struct kf_slab *next;     /* in a batch's chain, or in a free list */
    struct kf_slab *previous; /* in a free list */
    struct kf_region *region; /* NULL: larger than the largest class, with memory of its own */
    uint8_t *data;
    size_t capacity;          /* bytes at `data` */
    size_t size;              /* bytes in use */
    bool beyond;              /* taken beyond the limit: not counted when given back */
    bool is_free;             /* in a free list */
} kf_slab;

/* Memory that slabs are cut from. A slab is described by the entry of its first unit. */
typedef struct kf_region {
    struct kf_region *next; /* in the pool */
    struct kf_region *previous;
    uint8_t *memory;
    kf_slab units[KF_REGION_UNITS];
} kf_region;

typedef struct kf_pool {
    kf_mutex lock;
    kf_cond room;         /* signalled when a quarter of the limit is free again */
    size_t limit;         /* buffer.memory */
    size_t reserved;      /* bytes handed out, without those taken beyond the limit */
    kf_atomic_int waiting; /* callers blocked for memory */
    kf_region *regions;
    size_t region_count;
    /* By class, whole regions at the end. Last in, first out: its memory is warm in the caches. */
    kf_slab *free[KF_SLAB_CLASSES + 1];
} kf_pool;

void kf_pool_init(kf_pool *pool, size_t limit);
void kf_pool_destroy(kf_pool *pool);

/* Take a slab of at least `size` bytes, or NULL: the limit is reached, or the machine is out of
 * memory. With `beyond` only the latter. */
kf_slab *kf_pool_take(kf_pool *pool, size_t size, bool beyond);

/* Give back a chain of slabs; wakes blocked callers once a quarter of the limit is free. */
void kf_pool_give(kf_pool *pool, kf_slab *chain);

/* Wait until there may be room for `size` bytes, at most `seconds`. Call in slices, without the
 * GIL, and count the caller in `waiting` meanwhile: the data plane then sends all there is. */
void kf_pool_wait(kf_pool *pool, size_t size, double seconds);

/* Whether a caller that waits for `size` bytes may try again. */
bool kf_pool_has_room(kf_pool *pool, size_t size);

/* Bytes reserved now; for metrics. */
size_t kf_pool_reserved(kf_pool *pool);

#endif /* KF_POOL_H */
