/* Kafka's four codecs over the C libraries that the build found: gzip (libdeflate, else zlib),
 * snappy in xerial framing (libsnappy), lz4 frames (liblz4), zstd (libzstd).
 *
 * A context holds a codec's working memory: make one per thread and codec, and use it from one
 * thread at a time. Compressing allocates nothing but what the library takes on its first use (and
 * libsnappy on each); decompressing grows its output by itself, up to a limit. Sizes that the
 * input declares are hints at most: they never decide how much memory is taken.
 */
#ifndef KF_COMPRESS_H
#define KF_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

/* As in the low three bits of a batch's attributes. */
typedef enum kf_codec {
    KF_CODEC_NONE = 0,
    KF_CODEC_GZIP = 1,
    KF_CODEC_SNAPPY = 2,
    KF_CODEC_LZ4 = 3,
    KF_CODEC_ZSTD = 4,
} kf_codec;

typedef enum kf_codec_status {
    KF_CODEC_OK = 0,
    KF_CODEC_MALFORMED, /* not what the codec's format allows, or with bytes after its end */
    KF_CODEC_CUT_OFF,   /* the input stops before the end of a frame */
    KF_CODEC_TOO_LARGE, /* would give more than the limit */
    KF_CODEC_NO_MEMORY,
} kf_codec_status;

typedef struct kf_codec_context kf_codec_context;

/* The output of decompression, malloc'ed. Begin with all zero, and end with kf_output_free() or
 * kf_output_move(). */
typedef struct kf_output {
    uint8_t *data;
    size_t size;
    size_t capacity;
} kf_output;

/* 1 if this build has a library for the codec, else 0. KF_CODEC_NONE needs none, and gives 0. */
int kf_codec_is_native(kf_codec codec);

/* The library behind the codec, such as "libdeflate", or NULL. */
const char *kf_codec_library(kf_codec codec);

/* Make a context, or return NULL: no memory, or no library. The level is for compression only,
 * within the codec's range (gzip 1 to 9, or -1 for 6; lz4 0 to 17, zstd -131072 to 22). */
kf_codec_context *kf_codec_new(kf_codec codec, int level);

/* Free a context; NULL is allowed. */
void kf_codec_free(kf_codec_context *context);

/* The capacity that kf_compress() needs for `size` bytes, however badly they compress. */
size_t kf_compress_bound(kf_codec codec, size_t size);

/* Compress `size` bytes into `out`; return the bytes written, or -1 if `capacity` is below the
 * bound and did not suffice, or there is no memory. */
ptrdiff_t kf_compress(kf_codec_context *context, const uint8_t *data, size_t size, uint8_t *out,
                      size_t capacity);

/* Decompress all frames in `data` into `out`, which holds at most `limit` bytes afterwards. On
 * failure `out` holds nothing. `magic` is the message format: the lz4 frame headers of v0 have a
 * wrong checksum, which is corrected here. */
kf_codec_status kf_decompress(kf_codec_context *context, const uint8_t *data, size_t size,
                              size_t limit, int magic, kf_output *out);

/* Enlarge the output: at least to double, if possible to `wanted` bytes, never beyond one byte
 * over the limit. That byte lets a decoder show that there is more. */
kf_codec_status kf_output_grow(kf_output *out, size_t wanted, size_t limit);

/* Free the output, which is all zero afterwards. Memory beyond that of a usual batch goes back to
 * the system at once, even where malloc would keep it. */
void kf_output_free(kf_output *out);

/* Copy all `size` bytes to `to` and free the output. A large one goes piece by piece, so that both
 * copies together never take much more than one of them. */
void kf_output_move(kf_output *out, uint8_t *to);

/* The checksum byte of an lz4 frame header. Its descriptor, from the flags up to the checksum, has
 * `size` bytes, at most 14. */
uint8_t kf_lz4_header_checksum(const uint8_t *descriptor, size_t size);

#endif /* KF_COMPRESS_H */
