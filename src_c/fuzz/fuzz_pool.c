/* The slab pool: slabs of all sizes are taken and given back in any order. Each unit of a slab
 * holds its number: no two may share memory. The limit holds, and slabs that come back join. */
#include <string.h>

#include "fuzz.h"
#include "kf_pool.h"

enum {
    SLABS = 64,
    UNIT = 1 << KF_SLAB_MIN_SHIFT,
    LIMIT_REGIONS = 3,
};

typedef struct held {
    kf_slab *slab; /* NULL: the place is empty */
    uint64_t number;
    bool beyond;
} held;

/* Visit the last word of each unit, and the last word of the slab. */
static bool stamp(const held *slab, bool write) {
    uint64_t found;
    for (size_t end = UNIT; end < slab->slab->capacity + UNIT; end += UNIT) {
        size_t pos = (end < slab->slab->capacity ? end : slab->slab->capacity) - sizeof found;
        if (write) {
            memcpy(slab->slab->data + pos, &slab->number, sizeof found);
        }
        memcpy(&found, slab->slab->data + pos, sizeof found);
        if (found != slab->number) {
            return false;
        }
    }
    return true;
}

static size_t give(kf_pool *pool, held *place) {
    size_t counted = place->beyond ? 0 : place->slab->capacity;
    KF_MUST(stamp(place, false));
    kf_pool_give(pool, place->slab);
    place->slab = NULL;
    return counted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static held places[SLABS];
    kf_pool pool;
    size_t reserved = 0;
    kf_pool_init(&pool, (size_t)LIMIT_REGIONS << KF_REGION_SHIFT);
    for (size_t i = 0; i + 2 < size; i += 3) {
        held *place = &places[data[i] % SLABS];
        if (place->slab != NULL) {
            reserved -= give(&pool, place);
            continue;
        }
        /* 16 bytes to 2 MiB, as often in each class. */
        size_t wanted = ((size_t)16 + data[i + 1] % 16) << (data[i + 2] % 17);
        place->beyond = data[i + 2] >= 192;
        place->number = i;
        place->slab = kf_pool_take(&pool, wanted, place->beyond);
        if (place->slab == NULL) {
            KF_MUST(!place->beyond && reserved + wanted > pool.limit / 2);
            continue;
        }
        KF_MUST(place->slab->capacity >= wanted);
        stamp(place, true);
        reserved += place->beyond ? 0 : place->slab->capacity;
        KF_MUST(reserved <= pool.limit && reserved == kf_pool_reserved(&pool));
    }
    for (size_t i = 0; i < SLABS; i++) {
        reserved -= places[i].slab != NULL ? give(&pool, &places[i]) : 0;
    }
    KF_MUST(reserved == 0 && kf_pool_reserved(&pool) == 0);
    /* All are whole again, and no more than the limit is kept. */
    size_t whole = 0;
    for (kf_slab *region = pool.free[KF_SLAB_CLASSES]; region != NULL; region = region->next) {
        whole++;
    }
    KF_MUST(whole == pool.region_count && whole <= LIMIT_REGIONS);
    kf_pool_destroy(&pool);
    return 0;
}
