/* Contexts, outputs, and the way from a codec's number to its driver. */
#include "kf_compress.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "kf_codec.h"

enum {
    USUAL_RATIO = 4,                /* output over input, until a context has seen some */
    OUTPUT_MIN = 4096,              /* bytes of the first output buffer */
    PIECE_SIZE = 1024 * 1024,       /* bytes that are there twice while a large output moves */
    UNUSUAL_SIZE = 16 * 1024 * 1024, /* no batch of a healthy topic gives as much */
    PAGE_SIZE_MAX = 64 * 1024,       /* on any machine */
};

struct kf_codec_context {
    const kf_codec_driver *driver;
    int level;
    /* Made at the first use in its direction; NULL also for codecs that keep no state. */
    void *compressor;
    void *decompressor;
    size_t ratio; /* output over input of the last batch, rounded up: a guess for the next one */
};

static const kf_codec_driver *driver_of(kf_codec codec) {
    static const kf_codec_driver *const drivers[] = {
        [KF_CODEC_GZIP] = &kf_gzip_driver,
        [KF_CODEC_SNAPPY] = &kf_snappy_driver,
        [KF_CODEC_LZ4] = &kf_lz4_driver,
        [KF_CODEC_ZSTD] = &kf_zstd_driver,
    };
    if ((size_t)codec >= sizeof drivers / sizeof drivers[0] || drivers[codec] == NULL) {
        return NULL;
    }
    return drivers[codec]->library == NULL ? NULL : drivers[codec];
}

const char *kf_codec_library(kf_codec codec) {
    const kf_codec_driver *driver = driver_of(codec);
    return driver == NULL ? NULL : driver->library;
}

int kf_codec_is_native(kf_codec codec) {
    return driver_of(codec) != NULL;
}

kf_codec_context *kf_codec_new(kf_codec codec, int level) {
    const kf_codec_driver *driver = driver_of(codec);
    kf_codec_context *context = driver == NULL ? NULL : calloc(1, sizeof *context);
    if (context != NULL) {
        context->driver = driver;
        context->level = level;
        context->ratio = USUAL_RATIO;
    }
    return context;
}

void kf_codec_free(kf_codec_context *context) {
    if (context == NULL) {
        return;
    }
    if (context->compressor != NULL) {
        context->driver->free_compressor(context->compressor);
    }
    if (context->decompressor != NULL) {
        context->driver->free_decompressor(context->decompressor);
    }
    free(context);
}

size_t kf_compress_bound(kf_codec codec, size_t size) {
    const kf_codec_driver *driver = driver_of(codec);
    return driver == NULL ? size : driver->bound(size);
}

ptrdiff_t kf_compress(kf_codec_context *context, const uint8_t *data, size_t size, uint8_t *out,
                      size_t capacity) {
    const kf_codec_driver *driver = context->driver;
    if (context->compressor == NULL && driver->new_compressor != NULL) {
        context->compressor = driver->new_compressor(context->level);
        if (context->compressor == NULL) {
            return -1;
        }
    }
    return driver->compress(context->compressor, context->level, data, size, out, capacity);
}

/* ---- outputs ---- */

/* Give the pages that lie wholly within back to the system; their bytes are lost. malloc alone
 * might keep them forever. */
static void discard(uint8_t *start, size_t size) {
    const uintptr_t within = PAGE_SIZE_MAX - 1;
    uintptr_t first = ((uintptr_t)start + within) & ~within;
    uintptr_t end = ((uintptr_t)start + size) & ~within;
    if (first < end) {
        madvise((void *)first, end - first, MADV_DONTNEED);
    }
}

/* Copy piece by piece, and discard each piece that was copied. A page that two pieces share goes
 * with the second one. */
static void move_bytes(uint8_t *to, uint8_t *from, size_t size) {
    for (size_t moved = 0; moved < size; moved += PIECE_SIZE) {
        size_t piece = size - moved < PIECE_SIZE ? size - moved : PIECE_SIZE;
        size_t shared = moved < PAGE_SIZE_MAX ? moved : PAGE_SIZE_MAX;
        memcpy(to + moved, from + moved, piece);
        if (piece == PIECE_SIZE) {
            discard(from + moved - shared, shared + piece);
        }
    }
}

static uint8_t *resized(kf_output *out, size_t capacity) {
    if (out->capacity < PIECE_SIZE) {
        return realloc(out->data, capacity);
    }
    uint8_t *data = malloc(capacity);
    if (data != NULL) {
        move_bytes(data, out->data, out->size);
        discard(out->data, out->capacity);
        free(out->data);
    }
    return data;
}

void kf_output_free(kf_output *out) {
    if (out->capacity > UNUSUAL_SIZE) {
        discard(out->data, out->capacity);
    }
    free(out->data);
    *out = (kf_output){NULL, 0, 0};
}

void kf_output_move(kf_output *out, uint8_t *to) {
    move_bytes(to, out->data, out->size);
    kf_output_free(out);
}

kf_codec_status kf_output_grow(kf_output *out, size_t wanted, size_t limit) {
    size_t capacity = out->capacity * 2 > wanted ? out->capacity * 2 : wanted;
    capacity = capacity > OUTPUT_MIN ? capacity : OUTPUT_MIN;
    capacity = capacity < limit + 1 ? capacity : limit + 1;
    if (capacity <= out->capacity) {
        return KF_CODEC_TOO_LARGE;
    }
    uint8_t *data = resized(out, capacity);
    if (data == NULL) {
        return KF_CODEC_NO_MEMORY;
    }
    out->data = data;
    out->capacity = capacity;
    return KF_CODEC_OK;
}

static kf_codec_status decompress(kf_codec_context *context, kf_reader *in, size_t limit, int magic,
                                  kf_output *out) {
    const kf_codec_driver *driver = context->driver;
    if (context->decompressor == NULL && driver->new_decompressor != NULL) {
        context->decompressor = driver->new_decompressor();
        if (context->decompressor == NULL) {
            return KF_CODEC_NO_MEMORY;
        }
    }
    size_t size = kf_left(in);
    kf_codec_status status =
        driver->decompress(context->decompressor, in, size * context->ratio, limit, magic, out);
    if (status == KF_CODEC_OK && size != 0) {
        size_t ratio = out->size / size + 1;
        context->ratio = ratio < KF_HINT_RATIO_MAX ? ratio : KF_HINT_RATIO_MAX;
    }
    return status;
}

/* A library's state keeps the memory that it has needed, up to two blocks of lz4 (8 MiB). After an
 * error, or an unusually large output, the state is freed. Making it again costs little beside
 * that. */
static void forget_large_state(kf_codec_context *context, kf_codec_status status, size_t size) {
    if (context->decompressor != NULL && (status != KF_CODEC_OK || size > UNUSUAL_SIZE)) {
        context->driver->free_decompressor(context->decompressor);
        context->decompressor = NULL;
    }
}

kf_codec_status kf_decompress(kf_codec_context *context, const uint8_t *data, size_t size,
                              size_t limit, int magic, kf_output *out) {
    kf_reader in = kf_reader_of(data, size);
    kf_codec_status status = decompress(context, &in, limit, magic, out);
    if (status == KF_CODEC_OK && out->size > limit) {
        status = KF_CODEC_TOO_LARGE;
    }
    forget_large_state(context, status, out->size);
    if (status != KF_CODEC_OK) {
        discard(out->data, out->capacity);
        kf_output_free(out);
    }
    return status;
}
