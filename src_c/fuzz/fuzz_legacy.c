/* Message sets of formats v0 and v1. */
#include "fuzz.h"
#include "kf_legacy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kf_reader reader = kf_reader_of(data, size);
    const uint8_t *base = reader.pos;
    int64_t count = kf_message_count(reader);
    KF_MUST(count <= (int64_t)(size / KF_MESSAGE_SIZE_MIN));
    int64_t read = 0;
    while (kf_left(&reader) != 0) {
        kf_message message;
        if (!kf_message_read(&reader, base, &message)) {
            KF_MUST(count == -1);
            return 0;
        }
        kf_touch(base + message.pos, (size_t)message.size);
        if (message.key_len > 0) {
            kf_touch(base + message.key_pos, (size_t)message.key_len);
        }
        if (message.value_len > 0) {
            kf_touch(base + message.value_pos, (size_t)message.value_len);
        }
        read++;
    }
    KF_MUST(read == count);
    return 0;
}
