/* gzip members, by libdeflate, which is faster, or by zlib. */
#include "kf_codec.h"

#include <limits.h>
#include <stdlib.h>

enum {
    JAVA_DEFAULT_LEVEL = -1,
    ZLIB_DEFAULT_LEVEL = 6, /* what zlib takes -1 for; libdeflate does not know it */
};

#if defined(KF_HAVE_LIBDEFLATE)

#include <libdeflate.h>

static size_t bound(size_t size) {
    return libdeflate_gzip_compress_bound(NULL, size);
}

static void *new_compressor(int level) {
    return libdeflate_alloc_compressor(level == JAVA_DEFAULT_LEVEL ? ZLIB_DEFAULT_LEVEL : level);
}

static void free_compressor(void *compressor) {
    libdeflate_free_compressor(compressor);
}

static void *new_decompressor(void) {
    return libdeflate_alloc_decompressor();
}

static void free_decompressor(void *decompressor) {
    libdeflate_free_decompressor(decompressor);
}

static ptrdiff_t compress_all(void *compressor, int level, const uint8_t *data, size_t size,
                              uint8_t *out, size_t capacity) {
    (void)level;
    size_t written = libdeflate_gzip_compress(compressor, data, size, out, capacity);
    return written == 0 ? -1 : (ptrdiff_t)written;
}

/* Read one member. libdeflate works on whole buffers: where the output is too short, try again with
 * a larger one. */
static kf_codec_status read_member(void *decompressor, kf_reader *in, size_t limit,
                                   kf_output *out) {
    for (;;) {
        size_t taken = 0;
        size_t given = 0;
        enum libdeflate_result result =
            libdeflate_gzip_decompress_ex(decompressor, in->pos, kf_left(in), out->data + out->size,
                                          out->capacity - out->size, &taken, &given);
        if (result == LIBDEFLATE_SUCCESS) {
            out->size += given;
            return kf_read_span(in, (int64_t)taken) == NULL ? KF_CODEC_MALFORMED : KF_CODEC_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE) {
            return KF_CODEC_MALFORMED;
        }
        kf_codec_status status = kf_output_grow(out, 0, limit);
        if (status != KF_CODEC_OK) {
            return status;
        }
    }
}

static kf_codec_status decompress_all(void *decompressor, kf_reader *in, size_t usual, size_t limit,
                                      int magic, kf_output *out) {
    (void)magic;
    uint32_t declared = 0; /* the last four bytes, little-endian: the size of the last member */
    if (kf_left(in) >= 4) {
        declared = __builtin_bswap32(kf_load_u32(in->end - 4));
    }
    kf_codec_status status =
        kf_output_grow(out, kf_output_guess(kf_left(in), declared, usual), limit);
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        status = read_member(decompressor, in, limit, out);
    }
    return status;
}

#define LIBRARY "libdeflate"

#elif defined(KF_HAVE_ZLIB)

#include <zlib.h>

enum {
    WINDOW_BITS = 15 + 16, /* zlib's way to ask for gzip's header and trailer */
    MEMORY_LEVEL = 8,
};

static size_t bound(size_t size) {
    return size + (size >> 12) + (size >> 14) + (size >> 25) + 64; /* compressBound, for size_t */
}

static void *new_compressor(int level) {
    z_stream *stream = calloc(1, sizeof *stream);
    int usual = level == JAVA_DEFAULT_LEVEL ? ZLIB_DEFAULT_LEVEL : level;
    if (stream != NULL && deflateInit2(stream, usual, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                                       Z_DEFAULT_STRATEGY) != Z_OK) {
        free(stream);
        stream = NULL;
    }
    return stream;
}

static void free_compressor(void *compressor) {
    deflateEnd(compressor);
    free(compressor);
}

static void *new_decompressor(void) {
    z_stream *stream = calloc(1, sizeof *stream);
    if (stream != NULL && inflateInit2(stream, WINDOW_BITS) != Z_OK) {
        free(stream);
        stream = NULL;
    }
    return stream;
}

static void free_decompressor(void *decompressor) {
    inflateEnd(decompressor);
    free(decompressor);
}

static ptrdiff_t compress_all(void *compressor, int level, const uint8_t *data, size_t size,
                              uint8_t *out, size_t capacity) {
    z_stream *stream = compressor;
    (void)level;
    if (size > UINT_MAX || deflateReset(stream) != Z_OK) {
        return -1;
    }
    stream->next_in = (z_const Bytef *)data;
    stream->avail_in = (uInt)size;
    stream->next_out = out;
    stream->avail_out = capacity < UINT_MAX ? (uInt)capacity : UINT_MAX;
    return deflate(stream, Z_FINISH) == Z_STREAM_END ? (ptrdiff_t)stream->total_out : -1;
}

static kf_codec_status read_member(z_stream *stream, size_t limit, kf_output *out) {
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
        kf_codec_status status = kf_output_grow(out, 0, limit);
        if (status != KF_CODEC_OK) {
            return status;
        }
    }
}

static kf_codec_status decompress_all(void *decompressor, kf_reader *in, size_t usual, size_t limit,
                                      int magic, kf_output *out) {
    z_stream *stream = decompressor;
    (void)magic;
    if (kf_left(in) > UINT_MAX) {
        return KF_CODEC_TOO_LARGE;
    }
    kf_codec_status status = kf_output_grow(out, usual, limit);
    while (status == KF_CODEC_OK && kf_left(in) != 0) {
        if (inflateReset(stream) != Z_OK) {
            return KF_CODEC_NO_MEMORY;
        }
        stream->next_in = (z_const Bytef *)in->pos;
        stream->avail_in = (uInt)kf_left(in);
        status = read_member(stream, limit, out);
        kf_read_span(in, (int64_t)(kf_left(in) - stream->avail_in));
    }
    return status;
}

#define LIBRARY "zlib"

#endif

#ifdef LIBRARY
const kf_codec_driver kf_gzip_driver = {
    .library = LIBRARY,
    .bound = bound,
    .new_compressor = new_compressor,
    .free_compressor = free_compressor,
    .new_decompressor = new_decompressor,
    .free_decompressor = free_decompressor,
    .compress = compress_all,
    .decompress = decompress_all,
};
#else
const kf_codec_driver kf_gzip_driver = {0};
#endif
