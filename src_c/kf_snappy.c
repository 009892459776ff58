/* Snappy in the framing of xerial's Java library: a header, then blocks of 32 KiB, each with its
 * length before it. Bare blocks, which some producers write, are read too. libsnappy keeps no
 * state between calls.
 */
#include "kf_codec.h"

#ifdef KF_HAVE_SNAPPY

#include <snappy-c.h>

enum {
    MAGIC_SIZE = 8,
    HEADER_SIZE = 16,
    BLOCK_SIZE = 32 * 1024,
    RATIO_MAX = 22, /* no element of the format gives more than 64 bytes for three */
};

/* The magic, then version 1 and compatible version 1; readers look at the magic only. */
static const uint8_t HEADER[HEADER_SIZE + 1] = "\x82SNAPPY\0\0\0\0\1\0\0\0\1";

static size_t bound(size_t size) {
    size_t blocks = size / BLOCK_SIZE;
    return HEADER_SIZE + blocks * (4 + snappy_max_compressed_length(BLOCK_SIZE)) + 4 +
           snappy_max_compressed_length(size % BLOCK_SIZE);
}

static ptrdiff_t compress_all(void *compressor, int level, const uint8_t *data, size_t size,
                              uint8_t *out, size_t capacity) {
    (void)compressor;
    (void)level;
    if (capacity < bound(size)) {
        return -1;
    }
    uint8_t *at = kf_put_bytes(out, HEADER, HEADER_SIZE);
    while (size != 0) {
        size_t block = size < BLOCK_SIZE ? size : BLOCK_SIZE;
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

/* A block must give the size that it declares, so a declared size can be refused at once. */
static kf_codec_status read_block(const uint8_t *block, size_t size, size_t limit, kf_output *out) {
    size_t given = 0;
    if (snappy_uncompressed_length((const char *)block, size, &given) != SNAPPY_OK) {
        return KF_CODEC_MALFORMED;
    }
    if (given > limit - out->size) {
        return KF_CODEC_TOO_LARGE;
    }
    if (given / RATIO_MAX > size) {
        return KF_CODEC_MALFORMED;
    }
    if (given > out->capacity - out->size) {
        kf_codec_status status = kf_output_grow(out, out->size + given, limit);
        if (status != KF_CODEC_OK) {
            return status;
        }
    }
    char *to = (char *)out->data + out->size;
    if (snappy_uncompress((const char *)block, size, to, &given) != SNAPPY_OK) {
        return KF_CODEC_MALFORMED;
    }
    out->size += given;
    return KF_CODEC_OK;
}

static kf_codec_status decompress_all(void *decompressor, kf_reader *in, size_t usual, size_t limit,
                                      int magic, kf_output *out) {
    (void)decompressor;
    (void)magic;
    kf_codec_status status = kf_output_grow(out, usual, limit);
    if (kf_left(in) < MAGIC_SIZE || memcmp(in->pos, HEADER, MAGIC_SIZE) != 0) {
        return status == KF_CODEC_OK ? read_block(in->pos, kf_left(in), limit, out) : status;
    }
    if (kf_read_span(in, HEADER_SIZE) == NULL) {
        return KF_CODEC_CUT_OFF;
    }
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        int32_t size = kf_read_i32(in);
        const uint8_t *block = kf_read_span(in, size);
        if (in->bad || size <= 0) {
            return size > 0 ? KF_CODEC_CUT_OFF : KF_CODEC_MALFORMED;
        }
        status = read_block(block, (size_t)size, limit, out);
    }
    return status;
}

const kf_codec_driver kf_snappy_driver = {
    .library = "libsnappy",
    .bound = bound,
    .compress = compress_all,
    .decompress = decompress_all,
};

#else

const kf_codec_driver kf_snappy_driver = {0};

#endif
