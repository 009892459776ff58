/* Between kf_compress.c and the codecs: what each of them brings. One file for each codec, which
 * gives an empty driver where its library is missing.
 */
#ifndef KF_CODEC_H
#define KF_CODEC_H

#include "kf_compress.h"
#include "kf_wire.h"

/* A codec over a C library. Its two states are made when they are first used; a codec that keeps
 * none leaves their functions NULL. */
typedef struct kf_codec_driver {
    const char *library; /* NULL: not in this build, and nothing else is set */

    /* Bytes that compressing `size` may take at most. */
    size_t (*bound)(size_t size);

    /* A state, or NULL: no memory. */
    void *(*new_compressor)(int level);
    void (*free_compressor)(void *compressor);
    void *(*new_decompressor)(void);
    void (*free_decompressor)(void *decompressor);

    /* As kf_compress(). */
    ptrdiff_t (*compress)(void *compressor, int level, const uint8_t *data, size_t size,
                          uint8_t *out, size_t capacity);

    /* Decompress everything in `in`, appending to `out`, which may end one byte over the limit:
     * kf_decompress() judges that, and frees `out` after a failure. */
    kf_codec_status (*decompress)(void *decompressor, kf_reader *in, size_t limit, int magic,
                                  kf_output *out);
} kf_codec_driver;

extern const kf_codec_driver kf_gzip_driver;
extern const kf_codec_driver kf_snappy_driver;
extern const kf_codec_driver kf_lz4_driver;
extern const kf_codec_driver kf_zstd_driver;

enum {
    KF_USUAL_RATIO = 4,     /* first guess of output over input where nothing is declared */
    KF_HINT_RATIO_MAX = 32, /* a declared size is believed up to this ratio: enough for text */
};

/* Enlarge the output: at least to double, if possible to `wanted` bytes, never beyond one byte
 * over the limit. That byte lets a decoder show that there is more. */
kf_codec_status kf_output_grow(kf_output *out, size_t wanted, size_t limit);

/* Size for a first output: what `size` bytes of input declare, if that is likely, else what they
 * usually give. */
static inline size_t kf_output_guess(size_t size, uint64_t declared) {
    bool likely = declared != 0 && declared / KF_HINT_RATIO_MAX <= size;
    return likely ? (size_t)declared : size * KF_USUAL_RATIO;
}

#endif /* KF_CODEC_H */
