/* The driver that each codec gives to kf_compress.c. Each codec has a file of its own, with an
 * empty driver where its library is missing.
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
     * kf_decompress() judges that, and frees `out` after a failure. `usual` is what to expect where
     * nothing is declared. */
    kf_codec_status (*decompress)(void *decompressor, kf_reader *in, size_t usual, size_t limit,
                                  int magic, kf_output *out);
} kf_codec_driver;

extern const kf_codec_driver kf_gzip_driver;
extern const kf_codec_driver kf_snappy_driver;
extern const kf_codec_driver kf_lz4_driver;
extern const kf_codec_driver kf_zstd_driver;

enum {
    KF_HINT_RATIO_MAX = 32, /* declared output over input that is believed: enough for text */
};

/* Size for a first output: what `size` bytes of input declare, if that is likely, else `usual`. */
static inline size_t kf_output_guess(size_t size, uint64_t declared, size_t usual) {
    bool likely = declared != 0 && declared / KF_HINT_RATIO_MAX <= size;
    return likely ? (size_t)declared : usual;
}

#endif /* KF_CODEC_H */
