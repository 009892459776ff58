/* One section for each codec: compress, decompress, and the little that is Kafka's own in it. */
#include "kf_compress.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kf_wire.h"

#ifdef KF_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef KF_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef KF_HAVE_SNAPPY
#include <snappy-c.h>
#endif
#ifdef KF_HAVE_LZ4
#include <lz4frame.h>
#endif
#ifdef KF_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#if defined(KF_HAVE_LIBDEFLATE) || defined(KF_HAVE_ZLIB)
#define KF_HAVE_GZIP 1
#endif
#define SOME_BUILDS __attribute__((unused)) /* not called if the codecs that do were left out */

enum {
    OUTPUT_MIN = 4096,      /* bytes of the first output buffer */
    USUAL_RATIO = 4,        /* first guess of output over input where nothing is declared */
    GZIP_DEFAULT_LEVEL = 6, /* what zlib takes -1 for */
    HINT_RATIO_MAX = 32,    /* a declared size is believed up to this ratio: enough for text */
};

struct kf_codec_context {
    kf_codec codec;
    int level;
    /* Made at the first use in its direction. */
#ifdef KF_HAVE_LIBDEFLATE
    struct libdeflate_compressor *deflater;
    struct libdeflate_decompressor *inflater;
#elif defined(KF_HAVE_ZLIB)
    z_stream deflater;
    z_stream inflater;
    bool deflater_ready;
    bool inflater_ready;
#endif
#ifdef KF_HAVE_LZ4
    LZ4F_cctx *lz4_compressor;
    LZ4F_dctx *lz4_decompressor;
#endif
#ifdef KF_HAVE_ZSTD
    ZSTD_CCtx *zstd_compressor;
    ZSTD_DCtx *zstd_decompressor;
#endif
};

/* ---- the output of decompression ---- */

/* Enlarge the output, if possible to `wanted` bytes. One byte beyond the limit is allowed, so that
 * a decoder can show that there is more; kf_decompress() judges it at the end. */
SOME_BUILDS static kf_codec_status grow(kf_output *out, size_t wanted, size_t limit) {
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

/* Size for a first output: what `size` bytes of input declare, if that is likely, else what they
 * usually give. */
SOME_BUILDS static size_t first_guess(size_t size, uint64_t declared) {
    bool likely = declared != 0 && declared / HINT_RATIO_MAX <= size;
    return likely ? (size_t)declared : size * USUAL_RATIO;
}

/* ---- gzip ---- */

#if defined(KF_HAVE_LIBDEFLATE)

static size_t gzip_bound(size_t size) {
    return libdeflate_gzip_compress_bound(NULL, size);
}

static ptrdiff_t gzip_compress(kf_codec_context *context, const uint8_t *data, size_t size,
                               uint8_t *out, size_t capacity) {
    if (context->deflater == NULL) {
        context->deflater = libdeflate_alloc_compressor(context->level);
        if (context->deflater == NULL) {
            return -1;
        }
    }
    size_t written = libdeflate_gzip_compress(context->deflater, data, size, out, capacity);
    return written == 0 ? -1 : (ptrdiff_t)written;
}

/* One member at the reader; libdeflate works on whole buffers, so a short one means to try again
 * with a larger one. */
static kf_codec_status gzip_member(kf_codec_context *context, kf_reader *in, size_t limit,
                                   kf_output *out) {
    for (;;) {
        size_t taken = 0;
        size_t given = 0;
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            context->inflater, in->pos, kf_left(in), out->data + out->size,
            out->capacity - out->size, &taken, &given);
        if (result == LIBDEFLATE_SUCCESS) {
            out->size += given;
            return kf_read_span(in, (int64_t)taken) == NULL ? KF_CODEC_MALFORMED : KF_CODEC_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE) {
            return KF_CODEC_MALFORMED;
        }
        kf_codec_status status = grow(out, 0, limit);
        if (status != KF_CODEC_OK) {
            return status;
        }
    }
}

static kf_codec_status gzip_decompress(kf_codec_context *context, kf_reader *in, size_t limit,
                                       kf_output *out) {
    uint32_t declared = 0; /* the last four bytes, little-endian: the size of the last member */
    if (kf_left(in) >= 4) {
        declared = __builtin_bswap32(kf_load_u32(in->end - 4));
    }
    if (context->inflater == NULL) {
        context->inflater = libdeflate_alloc_decompressor();
        if (context->inflater == NULL) {
            return KF_CODEC_NO_MEMORY;
        }
    }
    kf_codec_status status = grow(out, first_guess(kf_left(in), declared), limit);
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        status = gzip_member(context, in, limit, out);
    }
    return status;
}

static void gzip_free(kf_codec_context *context) {
    libdeflate_free_compressor(context->deflater);
    libdeflate_free_decompressor(context->inflater);
}

#elif defined(KF_HAVE_ZLIB)

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* zlib's way to ask for gzip's header and trailer */
    ZLIB_MEMORY_LEVEL = 8,
};

static size_t gzip_bound(size_t size) {
    return size + (size >> 12) + (size >> 14) + (size >> 25) + 64; /* compressBound, for size_t */
}

static ptrdiff_t gzip_compress(kf_codec_context *context, const uint8_t *data, size_t size,
                               uint8_t *out, size_t capacity) {
    z_stream *stream = &context->deflater;
    if (size > UINT_MAX) {
        return -1;
    }
    if (!context->deflater_ready) {
        context->deflater_ready = deflateInit2(stream, context->level, Z_DEFLATED, GZIP_WINDOW_BITS,
                                               ZLIB_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    }
    if (!context->deflater_ready || deflateReset(stream) != Z_OK) {
        return -1;
    }
    stream->next_in = (z_const Bytef *)data;
    stream->avail_in = (uInt)size;
    stream->next_out = out;
    stream->avail_out = capacity < UINT_MAX ? (uInt)capacity : UINT_MAX;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END) {
        return -1;
    }
    return (ptrdiff_t)stream->total_out;
}

static kf_codec_status gzip_member(z_stream *stream, size_t limit, kf_output *out) {
    for (;;) {
        size_t room = out->capacity - out->size;
        stream->next_out = out->data + out->size;
        stream->avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
        uInt before = stream->avail_out;
        int result = inflate(stream, Z_NO_FLUSH);
        out->size += before - stream->avail_out;
        if (result == Z_STREAM_END) {
            return KF_CODEC_OK;
        }
        if (result != Z_OK && result != Z_BUF_ERROR) {
            return result == Z_MEM_ERROR ? KF_CODEC_NO_MEMORY : KF_CODEC_MALFORMED;
        }
        if (stream->avail_out != 0) {
            return KF_CODEC_CUT_OFF; /* neither end nor output wanted: it waits for input */
        }
        kf_codec_status status = grow(out, 0, limit);
        if (status != KF_CODEC_OK) {
            return status;
        }
    }
}

static kf_codec_status gzip_decompress(kf_codec_context *context, kf_reader *in, size_t limit,
                                       kf_output *out) {
    z_stream *stream = &context->inflater;
    if (kf_left(in) > UINT_MAX) {
        return KF_CODEC_TOO_LARGE;
    }
    if (!context->inflater_ready) {
        context->inflater_ready = inflateInit2(stream, GZIP_WINDOW_BITS) == Z_OK;
    }
    kf_codec_status status = grow(out, first_guess(kf_left(in), 0), limit);
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        if (!context->inflater_ready || inflateReset(stream) != Z_OK) {
            return KF_CODEC_NO_MEMORY;
        }
        stream->next_in = (z_const Bytef *)in->pos;
        stream->avail_in = (uInt)kf_left(in);
        status = gzip_member(stream, limit, out);
        kf_read_span(in, (int64_t)(kf_left(in) - stream->avail_in));
    }
    return status;
}

static void gzip_free(kf_codec_context *context) {
    if (context->deflater_ready) {
        deflateEnd(&context->deflater);
    }
    if (context->inflater_ready) {
        inflateEnd(&context->inflater);
    }
}

#endif

/* ---- snappy: blocks of 32 KiB in the framing of xerial's Java library ---- */

#ifdef KF_HAVE_SNAPPY

enum {
    XERIAL_HEADER_SIZE = 16,
    XERIAL_BLOCK_SIZE = 32 * 1024,
    SNAPPY_RATIO_MAX = 22, /* no element of the format gives more than 64 bytes for three */
};

/* The magic, then version 1 and compatible version 1; readers look at the magic only. */
static const uint8_t XERIAL_HEADER[XERIAL_HEADER_SIZE + 1] = "\x82SNAPPY\0\0\0\0\1\0\0\0\1";
enum { XERIAL_MAGIC_SIZE = 8 };

static size_t snappy_bound(size_t size) {
    size_t blocks = size / XERIAL_BLOCK_SIZE;
    size_t rest = size % XERIAL_BLOCK_SIZE;
    return XERIAL_HEADER_SIZE + blocks * (4 + snappy_max_compressed_length(XERIAL_BLOCK_SIZE)) + 4 +
           snappy_max_compressed_length(rest);
}

static ptrdiff_t snappy_blocks(const uint8_t *data, size_t size, uint8_t *out, size_t capacity) {
    if (capacity < snappy_bound(size)) {
        return -1;
    }
    uint8_t *at = kf_put_bytes(out, XERIAL_HEADER, XERIAL_HEADER_SIZE);
    while (size != 0) {
        size_t block = size < XERIAL_BLOCK_SIZE ? size : XERIAL_BLOCK_SIZE;
        size_t written = snappy_max_compressed_length(block);
        if (snappy_compress((const char *)data, block, (char *)at + 4, &written) != SNAPPY_OK) {
            return -1;
        }
        kf_put_i32(at, (int32_t)written);
        at += 4 + written;
        data += block;
        size -= block;
    }
    return at - out;
}

/* A block must give the size it declares, so what it declares can be refused unseen. */
static kf_codec_status snappy_block(const uint8_t *block, size_t size, size_t limit,
                                    kf_output *out) {
    size_t given = 0;
    if (snappy_uncompressed_length((const char *)block, size, &given) != SNAPPY_OK) {
        return KF_CODEC_MALFORMED;
    }
    if (given > limit - out->size) {
        return KF_CODEC_TOO_LARGE;
    }
    if (given / SNAPPY_RATIO_MAX > size) {
        return KF_CODEC_MALFORMED;
    }
    if (given > out->capacity - out->size) {
        kf_codec_status status = grow(out, out->size + given, limit);
        if (status != KF_CODEC_OK) {
            return status;
        }
    }
    if (snappy_uncompress((const char *)block, size, (char *)out->data + out->size, &given) !=
        SNAPPY_OK) {
        return KF_CODEC_MALFORMED;
    }
    out->size += given;
    return KF_CODEC_OK;
}

static kf_codec_status snappy_decompress(kf_reader *in, size_t limit, kf_output *out) {
    kf_codec_status status = grow(out, 0, limit);
    if (kf_left(in) < XERIAL_MAGIC_SIZE || memcmp(in->pos, XERIAL_HEADER, XERIAL_MAGIC_SIZE) != 0) {
        return status == KF_CODEC_OK ? snappy_block(in->pos, kf_left(in), limit, out) : status;
    }
    if (kf_read_span(in, XERIAL_HEADER_SIZE) == NULL) {
        return KF_CODEC_CUT_OFF;
    }
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        int32_t size = kf_read_i32(in);
        const uint8_t *block = kf_read_span(in, size);
        if (in->bad || size <= 0) {
            return size > 0 ? KF_CODEC_CUT_OFF : KF_CODEC_MALFORMED;
        }
        status = snappy_block(block, (size_t)size, limit, out);
    }
    return status;
}

#endif

/* ---- lz4 frames ---- */

static inline uint32_t rotate_left(uint32_t value, unsigned bits) {
    return value << bits | value >> (32 - bits);
}

/* The second byte of xxHash32 with seed 0, for inputs under 16 bytes. */
uint8_t kf_lz4_header_checksum(const uint8_t *descriptor, size_t size) {
    const uint32_t primes[] = {2654435761U, 2246822519U, 3266489917U, 668265263U, 374761393U};
    uint32_t hash = primes[4] + (uint32_t)size;
    for (; size >= 4; descriptor += 4, size -= 4) {
        uint32_t word = __builtin_bswap32(kf_load_u32(descriptor));
        hash = rotate_left(hash + word * primes[2], 17) * primes[3];
    }
    for (; size != 0; descriptor++, size--) {
        hash = rotate_left(hash + *descriptor * primes[4], 11) * primes[0];
    }
    hash = (hash ^ hash >> 15) * primes[1];
    hash = (hash ^ hash >> 13) * primes[2];
    return (uint8_t)((hash ^ hash >> 16) >> 8);
}

#ifdef KF_HAVE_LZ4

enum { LZ4_SMALL_BLOCK_SIZE = 64 * 1024 };

/* What Java's reader demands: independent blocks. Its writer makes them 64 KiB; larger ones shrink
 * a large batch by a tenth more, as a block has only itself to refer to. */
static LZ4F_preferences_t lz4_preferences(int level, size_t size) {
    LZ4F_preferences_t preferences;
    memset(&preferences, 0, sizeof preferences);
    preferences.frameInfo.blockSizeID = size > LZ4_SMALL_BLOCK_SIZE ? LZ4F_max256KB : LZ4F_max64KB;
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences.compressionLevel = level;
    preferences.autoFlush = 1;
    return preferences;
}

enum { LZ4_FRAME_HEADER_MAX = 19 };

static size_t lz4_bound(size_t size) {
    LZ4F_preferences_t preferences = lz4_preferences(0, size);
    return LZ4_FRAME_HEADER_MAX + LZ4F_compressBound(size, &preferences);
}

static ptrdiff_t lz4_compress(kf_codec_context *context, const uint8_t *data, size_t size,
                              uint8_t *out, size_t capacity) {
    LZ4F_preferences_t preferences = lz4_preferences(context->level, size);
    LZ4F_compressOptions_t options;
    memset(&options, 0, sizeof options);
    options.stableSrc = 1;
    if (context->lz4_compressor == NULL &&
        LZ4F_isError(LZ4F_createCompressionContext(&context->lz4_compressor, LZ4F_VERSION))) {
        return -1;
    }
    LZ4F_cctx *compressor = context->lz4_compressor;
    size_t header = LZ4F_compressBegin(compressor, out, capacity, &preferences);
    if (LZ4F_isError(header)) {
        return -1;
    }
    size_t body =
        LZ4F_compressUpdate(compressor, out + header, capacity - header, data, size, &options);
    if (LZ4F_isError(body)) {
        return -1;
    }
    size_t used = header + body;
    size_t end = LZ4F_compressEnd(compressor, out + used, capacity - used, &options);
    return LZ4F_isError(end) ? -1 : (ptrdiff_t)(used + end);
}

enum {
    LZ4_MAGIC_SIZE = 4,
    LZ4_FLAG_CONTENT_SIZE = 0x08,
    LZ4_FLAG_DICTIONARY = 0x01,
};

/* Feed the header of a frame with its checksum put right: the writers of message format v0 hashed
 * the frame's magic along with the descriptor (KIP-57). */
static kf_codec_status lz4_legacy_header(LZ4F_dctx *decompressor, kf_reader *in) {
    uint8_t header[LZ4_FRAME_HEADER_MAX];
    if (kf_left(in) < LZ4_MAGIC_SIZE + 3) {
        return KF_CODEC_CUT_OFF;
    }
    uint8_t flags = in->pos[LZ4_MAGIC_SIZE];
    size_t descriptor = 2U + ((flags & LZ4_FLAG_CONTENT_SIZE) != 0 ? 8U : 0U) +
                        ((flags & LZ4_FLAG_DICTIONARY) != 0 ? 4U : 0U);
    size_t size = LZ4_MAGIC_SIZE + descriptor + 1;
    const uint8_t *start = kf_read_span(in, (int64_t)size);
    if (start == NULL) {
        return KF_CODEC_CUT_OFF;
    }
    memcpy(header, start, size);
    header[size - 1] = kf_lz4_header_checksum(header + LZ4_MAGIC_SIZE, descriptor);
    size_t none = 0;
    size_t taken = size;
    size_t result = LZ4F_decompress(decompressor, NULL, &none, header, &taken, NULL);
    return LZ4F_isError(result) || taken != size ? KF_CODEC_MALFORMED : KF_CODEC_OK;
}

static kf_codec_status lz4_frame(LZ4F_dctx *decompressor, kf_reader *in, size_t limit,
                                 kf_output *out) {
    for (;;) {
        size_t given = out->capacity - out->size;
        size_t taken = kf_left(in);
        size_t result =
            LZ4F_decompress(decompressor, out->data + out->size, &given, in->pos, &taken, NULL);
        if (LZ4F_isError(result)) {
            return KF_CODEC_MALFORMED;
        }
        out->size += given;
        kf_read_span(in, (int64_t)taken);
        if (result == 0) {
            return KF_CODEC_OK; /* end of the frame */
        }
        if (out->size == out->capacity) {
            kf_codec_status status = grow(out, 0, limit);
            if (status != KF_CODEC_OK) {
                return status;
            }
        } else if (kf_left(in) == 0) {
            return KF_CODEC_CUT_OFF;
        }
    }
}

static kf_codec_status lz4_decompress(kf_codec_context *context, kf_reader *in, size_t limit,
                                      int magic, kf_output *out) {
    if (context->lz4_decompressor == NULL &&
        LZ4F_isError(LZ4F_createDecompressionContext(&context->lz4_decompressor, LZ4F_VERSION))) {
        return KF_CODEC_NO_MEMORY;
    }
    LZ4F_dctx *decompressor = context->lz4_decompressor;
    kf_codec_status status = grow(out, first_guess(kf_left(in), 0), limit);
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        LZ4F_resetDecompressionContext(decompressor);
        if (magic == 0) {
            status = lz4_legacy_header(decompressor, in);
        }
        if (status == KF_CODEC_OK) {
            status = lz4_frame(decompressor, in, limit, out);
        }
    }
    return status;
}

#endif

/* ---- zstd ---- */

#ifdef KF_HAVE_ZSTD

static ptrdiff_t zstd_compress(kf_codec_context *context, const uint8_t *data, size_t size,
                               uint8_t *out, size_t capacity) {
    if (context->zstd_compressor == NULL) {
        context->zstd_compressor = ZSTD_createCCtx();
        if (context->zstd_compressor == NULL) {
            return -1;
        }
    }
    size_t written =
        ZSTD_compressCCtx(context->zstd_compressor, out, capacity, data, size, context->level);
    return ZSTD_isError(written) ? -1 : (ptrdiff_t)written;
}

/* Whole buffers, not streaming: a stream decoder would allocate the window that a frame declares.
 * A short output means to try again with a larger one. */
static kf_codec_status zstd_decompress(kf_codec_context *context, kf_reader *in, size_t limit,
                                       kf_output *out) {
    if (context->zstd_decompressor == NULL) {
        context->zstd_decompressor = ZSTD_createDCtx();
        if (context->zstd_decompressor == NULL) {
            return KF_CODEC_NO_MEMORY;
        }
    }
    unsigned long long declared = ZSTD_getFrameContentSize(in->pos, kf_left(in));
    bool known = declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != ZSTD_CONTENTSIZE_ERROR;
    kf_codec_status status = grow(out, first_guess(kf_left(in), known ? declared : 0), limit);
    while (status == KF_CODEC_OK) {
        size_t given = ZSTD_decompressDCtx(context->zstd_decompressor, out->data, out->capacity,
                                           in->pos, kf_left(in));
        if (!ZSTD_isError(given)) {
            out->size = given;
            return KF_CODEC_OK;
        }
        switch (ZSTD_getErrorCode(given)) {
        case ZSTD_error_dstSize_tooSmall:
            status = grow(out, 0, limit);
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

#endif

/* ---- all of them ---- */

const char *kf_codec_library(kf_codec codec) {
    switch (codec) {
    case KF_CODEC_GZIP:
#if defined(KF_HAVE_LIBDEFLATE)
        return "libdeflate";
#elif defined(KF_HAVE_ZLIB)
        return "zlib";
#else
        return NULL;
#endif
#ifdef KF_HAVE_SNAPPY
    case KF_CODEC_SNAPPY:
        return "libsnappy";
#endif
#ifdef KF_HAVE_LZ4
    case KF_CODEC_LZ4:
        return "liblz4";
#endif
#ifdef KF_HAVE_ZSTD
    case KF_CODEC_ZSTD:
        return "libzstd";
#endif
    default:
        return NULL;
    }
}

int kf_codec_is_native(kf_codec codec) {
    return kf_codec_library(codec) != NULL;
}

kf_codec_context *kf_codec_new(kf_codec codec, int level) {
    kf_codec_context *context = NULL;
    if (kf_codec_is_native(codec)) {
        context = calloc(1, sizeof *context);
    }
    if (context != NULL) {
        context->codec = codec;
        context->level = codec == KF_CODEC_GZIP && level == -1 ? GZIP_DEFAULT_LEVEL : level;
    }
    return context;
}

void kf_codec_free(kf_codec_context *context) {
    if (context == NULL) {
        return;
    }
#ifdef KF_HAVE_GZIP
    gzip_free(context);
#endif
#ifdef KF_HAVE_LZ4
    LZ4F_freeCompressionContext(context->lz4_compressor);
    LZ4F_freeDecompressionContext(context->lz4_decompressor);
#endif
#ifdef KF_HAVE_ZSTD
    ZSTD_freeCCtx(context->zstd_compressor);
    ZSTD_freeDCtx(context->zstd_decompressor);
#endif
    free(context);
}

size_t kf_compress_bound(kf_codec codec, size_t size) {
    switch (codec) {
#ifdef KF_HAVE_GZIP
    case KF_CODEC_GZIP:
        return gzip_bound(size);
#endif
#ifdef KF_HAVE_SNAPPY
    case KF_CODEC_SNAPPY:
        return snappy_bound(size);
#endif
#ifdef KF_HAVE_LZ4
    case KF_CODEC_LZ4:
        return lz4_bound(size);
#endif
#ifdef KF_HAVE_ZSTD
    case KF_CODEC_ZSTD:
        return ZSTD_compressBound(size);
#endif
    default:
        return size;
    }
}

ptrdiff_t kf_compress(kf_codec_context *context, const uint8_t *data, size_t size, uint8_t *out,
                      size_t capacity) {
    switch (context->codec) {
#ifdef KF_HAVE_GZIP
    case KF_CODEC_GZIP:
        return gzip_compress(context, data, size, out, capacity);
#endif
#ifdef KF_HAVE_SNAPPY
    case KF_CODEC_SNAPPY:
        return snappy_blocks(data, size, out, capacity);
#endif
#ifdef KF_HAVE_LZ4
    case KF_CODEC_LZ4:
        return lz4_compress(context, data, size, out, capacity);
#endif
#ifdef KF_HAVE_ZSTD
    case KF_CODEC_ZSTD:
        return zstd_compress(context, data, size, out, capacity);
#endif
    default:
        (void)data;
        (void)size;
        (void)out;
        (void)capacity;
        return -1;
    }
}

static kf_codec_status decompress(kf_codec_context *context, kf_reader *in, size_t limit, int magic,
                                  kf_output *out) {
    switch (context->codec) {
#ifdef KF_HAVE_GZIP
    case KF_CODEC_GZIP:
        return gzip_decompress(context, in, limit, out);
#endif
#ifdef KF_HAVE_SNAPPY
    case KF_CODEC_SNAPPY:
        return snappy_decompress(in, limit, out);
#endif
#ifdef KF_HAVE_LZ4
    case KF_CODEC_LZ4:
        return lz4_decompress(context, in, limit, magic, out);
#endif
#ifdef KF_HAVE_ZSTD
    case KF_CODEC_ZSTD:
        return zstd_decompress(context, in, limit, out);
#endif
    default:
        (void)in;
        (void)limit;
        (void)magic;
        (void)out;
        return KF_CODEC_ABSENT;
    }
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
