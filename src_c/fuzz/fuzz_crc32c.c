/* CRC32C: all paths of this CPU agree, at any alignment, in one piece, in two, and joined. */
#include "fuzz.h"
#include "kf_crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    size_t cut = (size_t)data[0] * data[1] % size;
    size_t paths = kf_crc32c_path_count();
    uint32_t whole = kf_crc32c_by_path(paths - 1, 0, data, size);
    for (size_t path = 0; path < paths; path++) {
        uint32_t head = kf_crc32c_by_path(path, 0, data, cut);
        uint32_t tail = kf_crc32c_by_path(path, 0, data + cut, size - cut);
        KF_MUST(kf_crc32c_by_path(path, 0, data, size) == whole);
        KF_MUST(kf_crc32c_by_path(path, head, data + cut, size - cut) == whole);
        KF_MUST(kf_crc32c_combine_by_path(path, head, tail, size - cut) == whole);
    }
    return 0;
}
