/* The cursors: the input is a program for a reader of its own bytes, and what was read is written
 * and read again. */
#include "fuzz.h"
#include "kf_wire.h"

static void check_uvarint(uint64_t raw) {
    uint8_t out[KF_VARLONG_MAX];
    size_t size = (size_t)(kf_put_uvarint(out, raw) - out);
    KF_MUST(size == kf_uvarint_size(raw));
    kf_reader reader = kf_reader_of(out, size);
    KF_MUST(kf_read_uvarint_wide(&reader, KF_VARLONG_MAX, 64) == raw);
    KF_MUST(!reader.bad && kf_left(&reader) == 0);
    for (size_t cut = 0; cut < size; cut++) {
        reader = kf_reader_of(out, cut);
        kf_read_uvarint_wide(&reader, KF_VARLONG_MAX, 64);
        KF_MUST(reader.bad);
    }
}

static void check_signed(int64_t value) {
    uint8_t out[KF_VARLONG_MAX];
    kf_reader reader = kf_reader_of(out, (size_t)(kf_put_varint(out, value) - out));
    KF_MUST(kf_left(&reader) == kf_varint_size(value));
    KF_MUST(kf_read_varlong(&reader) == value && !reader.bad);
    KF_MUST(kf_unzigzag(kf_zigzag(value)) == value);
}

static void step(kf_reader *reader, uint8_t operation) {
    const uint8_t *before = reader->pos;
    kf_reader inner;
    switch (operation % 10) {
    case 0:
        kf_read_i8(reader);
        break;
    case 1:
        kf_read_i16(reader);
        break;
    case 2:
        check_signed(kf_read_i32(reader));
        break;
    case 3:
        check_uvarint((uint64_t)kf_read_i64(reader));
        break;
    case 4:
        check_uvarint(kf_read_uvarint(reader));
        break;
    case 5:
        check_signed(kf_read_varint(reader));
        break;
    case 6:
        check_signed(kf_read_varlong(reader));
        break;
    case 7: {
        int64_t len = kf_read_varlong(reader);
        const uint8_t *span = kf_read_span(reader, len);
        if (span != NULL) {
            kf_touch(span, (size_t)len);
        }
        break;
    }
    case 8:
        kf_skip_tags(reader);
        break;
    default:
        kf_enter(reader, &inner, kf_read_varint(reader));
        while (!inner.bad && kf_left(&inner) != 0) {
            kf_read_uvarint(&inner);
        }
        kf_leave(reader, &inner);
        break;
    }
    KF_MUST(reader->pos >= before && reader->pos <= reader->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kf_reader reader = kf_reader_of(data, size);
    while (!reader.bad && kf_left(&reader) != 0) {
        step(&reader, (uint8_t)kf_read_i8(&reader));
    }
    if (reader.bad) { /* stays bad, and gives zero */
        const uint8_t *at = reader.pos;
        KF_MUST(kf_read_i64(&reader) == 0 && kf_read_varint(&reader) == 0 && reader.pos == at);
    }
    return 0;
}
