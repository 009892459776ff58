/* Contexts, and the way from a codec's number to its driver. */
#include "kf_compress.h"

#include <stdlib.h>

#include "kf_codec.h"

enum { OUTPUT_MIN = 4096 }; /* bytes of the first output buffer */

struct kf_codec_context {
    const kf_codec_driver *driver;
    int level;
    /* Made at the first use in its direction; NULL also for codecs that keep no state. */
    void *compressor;
    void *decompressor;
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

kf_codec_status kf_output_grow(kf_output *out, size_t wanted, size_t limit) {
    size_t capacity = out->capacity * 2 > wanted ? out->capacity * 2 : wanted;
    capacity = capacity > OUTPUT_MIN ? capacity : OUTPUT_MIN;
    capacity = capacity < limit + 1 ? capacity : limit + 1;
    if (capacity <= out->capacity) {
        return KF_CODEC_TOO_LARGE;
    }
    uint8_t *data = realloc(out->data, capacity);
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
    return driver->decompress(context->decompressor, in, limit, magic, out);
}

kf_codec_status kf_decompress(kf_codec_context *context, const uint8_t *data, size_t size,
                              size_t limit, int magic, kf_output *out) {
    kf_reader in = kf_reader_of(data, size);
    kf_codec_status status = decompress(context, &in, limit, magic, out);
    if (status == KF_CODEC_OK && out->size > limit) {
        status = KF_CODEC_TOO_LARGE;
    }
    if (status != KF_CODEC_OK) {
        free(out->data);
        *out = (kf_output){NULL, 0, 0};
    }
    return status;
}
