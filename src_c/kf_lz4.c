/* lz4 frames, as Java's client writes them and demands them. */
#include "kf_codec.h"

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

#include <lz4frame.h>

enum {
    SMALL_BLOCK_SIZE = 64 * 1024,
    MAGIC_SIZE = 4,
    HEADER_MIN = 7,
    HEADER_MAX = 19,
    FLAG_CONTENT_SIZE = 0x08,
    FLAG_DICTIONARY = 0x01,
};

/* Java's reader demands independent blocks. Its writer makes blocks of 64 KiB. Larger ones shrink a
 * large batch by a tenth more, because a block refers only to itself. */
static LZ4F_preferences_t preferences_of(int level, size_t size) {
    LZ4F_preferences_t preferences;
    memset(&preferences, 0, sizeof preferences);
    preferences.frameInfo.blockSizeID = size > SMALL_BLOCK_SIZE ? LZ4F_max256KB : LZ4F_max64KB;
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences.compressionLevel = level;
    preferences.autoFlush = 1;
    return preferences;
}

static size_t bound(size_t size) {
    LZ4F_preferences_t preferences = preferences_of(0, size);
    return HEADER_MAX + LZ4F_compressBound(size, &preferences);
}

static void *new_compressor(int level) {
    LZ4F_cctx *compressor = NULL;
    (void)level;
    return LZ4F_isError(LZ4F_createCompressionContext(&compressor, LZ4F_VERSION)) ? NULL
                                                                                  : compressor;
}

static void free_compressor(void *compressor) {
    LZ4F_freeCompressionContext(compressor);
}

static void *new_decompressor(void) {
    LZ4F_dctx *decompressor = NULL;
    return LZ4F_isError(LZ4F_createDecompressionContext(&decompressor, LZ4F_VERSION))
               ? NULL
               : decompressor;
}

static void free_decompressor(void *decompressor) {
    LZ4F_freeDecompressionContext(decompressor);
}

static ptrdiff_t compress_all(void *compressor, int level, const uint8_t *data, size_t size,
                              uint8_t *out, size_t capacity) {
    LZ4F_preferences_t preferences = preferences_of(level, size);
    LZ4F_compressOptions_t options;
    memset(&options, 0, sizeof options);
    options.stableSrc = 1;
    size_t used = LZ4F_compressBegin(compressor, out, capacity, &preferences);
    if (LZ4F_isError(used)) {
        return -1;
    }
    size_t body =
        LZ4F_compressUpdate(compressor, out + used, capacity - used, data, size, &options);
    if (LZ4F_isError(body)) {
        return -1;
    }
    used += body;
    size_t end = LZ4F_compressEnd(compressor, out + used, capacity - used, &options);
    return LZ4F_isError(end) ? -1 : (ptrdiff_t)(used + end);
}

/* Feed the header of a frame with a correct checksum: the writers of message format v0 hashed the
 * frame's magic along with the descriptor (KIP-57). `wanted` becomes the number of bytes that the
 * library asks for next. */
static kf_codec_status read_legacy_header(LZ4F_dctx *decompressor, kf_reader *in, size_t *wanted) {
    uint8_t header[HEADER_MAX];
    if (kf_left(in) < MAGIC_SIZE + 3) {
        return KF_CODEC_CUT_OFF;
    }
    uint8_t flags = in->pos[MAGIC_SIZE];
    size_t descriptor = 2U + ((flags & FLAG_CONTENT_SIZE) != 0 ? 8U : 0U) +
                        ((flags & FLAG_DICTIONARY) != 0 ? 4U : 0U);
    size_t size = MAGIC_SIZE + descriptor + 1;
    const uint8_t *start = kf_read_span(in, (int64_t)size);
    if (start == NULL) {
        return KF_CODEC_CUT_OFF;
    }
    memcpy(header, start, size);
    header[size - 1] = kf_lz4_header_checksum(header + MAGIC_SIZE, descriptor);
    size_t none = 0;
    size_t taken = size;
    *wanted = LZ4F_decompress(decompressor, NULL, &none, header, &taken, NULL);
    return LZ4F_isError(*wanted) || taken != size ? KF_CODEC_MALFORMED : KF_CODEC_OK;
}

/* Feed the library no more than it asks for: it would copy an incomplete block into a buffer of its
 * own, of up to 4 MiB. A whole frame always has the bytes that it asks for. */
static kf_codec_status read_frame(LZ4F_dctx *decompressor, kf_reader *in, size_t limit,
                                  size_t wanted, kf_output *out) {
    while (wanted != 0) {
        if (wanted > kf_left(in)) {
            return KF_CODEC_CUT_OFF;
        }
        size_t given = out->capacity - out->size;
        size_t taken = wanted;
        wanted =
            LZ4F_decompress(decompressor, out->data + out->size, &given, in->pos, &taken, NULL);
        if (LZ4F_isError(wanted)) {
            return KF_CODEC_MALFORMED;
        }
        out->size += given;
        kf_read_span(in, (int64_t)taken);
        if (wanted != 0 && out->size == out->capacity) {
            kf_codec_status status = kf_output_grow(out, 0, limit);
            if (status != KF_CODEC_OK) {
                return status;
            }
        }
    }
    return KF_CODEC_OK;
}

static kf_codec_status decompress_all(void *decompressor, kf_reader *in, size_t usual, size_t limit,
                                      int magic, kf_output *out) {
    kf_codec_status status = kf_output_grow(out, usual, limit);
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        size_t wanted = HEADER_MIN;
        LZ4F_resetDecompressionContext(decompressor);
        if (magic == 0) {
            status = read_legacy_header(decompressor, in, &wanted);
        }
        if (status == KF_CODEC_OK) {
            status = read_frame(decompressor, in, limit, wanted, out);
        }
    }
    return status;
}

const kf_codec_driver kf_lz4_driver = {
    .library = "liblz4",
    .bound = bound,
    .new_compressor = new_compressor,
    .free_compressor = free_compressor,
    .new_decompressor = new_decompressor,
    .free_decompressor = free_decompressor,
    .compress = compress_all,
    .decompress = decompress_all,
};

#else

const kf_codec_driver kf_lz4_driver = {0};

#endif
