/* Walking from batch header to batch header over what a Fetch brought. */
#include "fuzz.h"
#include "kf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kf_reader reader = kf_reader_of(data, size);
    int64_t position = kf_read_i64(&reader);
    const uint8_t *records = reader.pos;
    size_t left = kf_left(&reader);
    kf_walked walked;
    kf_walk(records, left, position, &walked);
    KF_MUST(walked.size <= left);
    KF_MUST(walked.next_offset >= position);
    KF_MUST(walked.size != 0 || walked.next_offset == position);
    kf_touch(records, walked.size);
    /* The whole batches alone, without what follows them, lead to the same place. */
    kf_walked again;
    kf_walk(records, walked.size, position, &again);
    KF_MUST(again.size == walked.size && again.next_offset == walked.next_offset);
    KF_MUST(again.last_epoch == walked.last_epoch && !again.broken);
    return 0;
}
