/* The decompressors: whatever comes in, at most the limit comes out, and nothing is touched outside
 * of a buffer. The first byte chooses codec and message format, the second the limit. */
#include "fuzz.h"
#include "kf_compress.h"

static kf_codec_context *contexts[KF_CODEC_ZSTD + 1]; /* kept, as threads keep theirs */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    kf_codec codec = (kf_codec)(KF_CODEC_GZIP + data[0] % 4);
    size_t limit = (size_t)1 << data[1] % 24;
    if (contexts[codec] == NULL) {
        contexts[codec] = kf_codec_new(codec, 1);
    }
    if (contexts[codec] == NULL) {
        return 0;
    }
    kf_output out = {NULL, 0, 0};
    int magic = (data[0] & 0x80) != 0 ? 0 : 2;
    kf_codec_status status = kf_decompress(contexts[codec], data + 2, size - 2, limit, magic, &out);
    if (status == KF_CODEC_OK) {
        KF_MUST(out.size <= limit && out.capacity <= limit + 1);
        kf_touch(out.data, out.size);
    } else {
        KF_MUST(out.data == NULL && out.size == 0);
    }
    kf_output_free(&out);
    return 0;
}
