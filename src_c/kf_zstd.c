/* zstd frames. */
#include "kf_codec.h"

#ifdef KF_HAVE_ZSTD

#include <zstd.h>
#include <zstd_errors.h>

static size_t bound(size_t size) {
    return ZSTD_compressBound(size);
}

static void *new_compressor(int level) {
    (void)level;
    return ZSTD_createCCtx();
}

static void free_compressor(void *compressor) {
    ZSTD_freeCCtx(compressor);
}

static void *new_decompressor(void) {
    return ZSTD_createDCtx();
}

static void free_decompressor(void *decompressor) {
    ZSTD_freeDCtx(decompressor);
}

static ptrdiff_t compress_all(void *compressor, int level, const uint8_t *data, size_t size,
                              uint8_t *out, size_t capacity) {
    size_t written = ZSTD_compressCCtx(compressor, out, capacity, data, size, level);
    return ZSTD_isError(written) ? -1 : (ptrdiff_t)written;
}

/* Whole buffers, not streaming: a stream decoder would allocate the window that a frame declares.
 * Where the output is too short, try again with a larger one. */
static kf_codec_status decompress_all(void *decompressor, kf_reader *in, size_t usual, size_t limit,
                                      int magic, kf_output *out) {
    (void)magic;
    unsigned long long declared = ZSTD_getFrameContentSize(in->pos, kf_left(in));
    bool known = declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != ZSTD_CONTENTSIZE_ERROR;
    size_t guess = kf_output_guess(kf_left(in), known ? declared : 0, usual);
    kf_codec_status status = kf_output_grow(out, guess, limit);
    while (status == KF_CODEC_OK) {
        size_t given =
            ZSTD_decompressDCtx(decompressor, out->data, out->capacity, in->pos, kf_left(in));
        if (!ZSTD_isError(given)) {
            out->size = given;
            return KF_CODEC_OK;
        }
        switch (ZSTD_getErrorCode(given)) {
        case ZSTD_error_dstSize_tooSmall:
            status = kf_output_grow(out, 0, limit);
            break;
        case ZSTD_error_memory_allocation:
            return KF_CODEC_NO_MEMORY;
        case ZSTD_error_srcSize_wrong:
            return KF_CODEC_CUT_OFF;
        default:
            return KF_CODEC_MALFORMED;
        }
    }
    return status;
}

const kf_codec_driver kf_zstd_driver = {
    .library = "libzstd",
    .bound = bound,
    .new_compressor = new_compressor,
    .free_compressor = free_compressor,
    .new_decompressor = new_decompressor,
    .free_decompressor = free_decompressor,
    .compress = compress_all,
    .decompress = decompress_all,
};

#else

const kf_codec_driver kf_zstd_driver = {0};

#endif
