/* Compress and decompress: the bound suffices, and the same bytes come back. The first byte
 * chooses codec and level. */
#include <string.h>

#include "fuzz.h"
#include "kf_compress.h"

static int level_of(kf_codec codec, uint8_t choice) {
    switch (codec) {
    case KF_CODEC_GZIP:
        return 1 + choice % 9;
    case KF_CODEC_LZ4:
        return choice % 13;
    case KF_CODEC_ZSTD:
        return choice % 5 - 1;
    default:
        return 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) {
        return 0;
    }
    kf_codec codec = (kf_codec)(KF_CODEC_GZIP + data[0] % 4);
    kf_codec_context *context = kf_codec_new(codec, level_of(codec, data[0] / 4));
    if (context == NULL) {
        return 0;
    }
    data++;
    size--;
    size_t bound = kf_compress_bound(codec, size);
    uint8_t *packed = malloc(bound);
    KF_MUST(packed != NULL);
    ptrdiff_t packed_size = kf_compress(context, data, size, packed, bound);
    KF_MUST(packed_size >= 0 && (size_t)packed_size <= bound);
    kf_output out = {NULL, 0, 0};
    KF_MUST(kf_decompress(context, packed, (size_t)packed_size, size, 2, &out) == KF_CODEC_OK);
    KF_MUST(out.size == size && (size == 0 || memcmp(out.data, data, size) == 0));
    kf_output_free(&out);
    free(packed);
    kf_codec_free(context);
    return 0;
}
