/* Columns of the records of a batch, as Arrow gets them. As many bytes are written as were
 * measured, and they are those that the spans name. Names of headers come out as UTF-8. */
#include <string.h>

#include "fuzz.h"
#include "kf_span_column.h"

/* Memory of exactly that size, so that a byte too far is seen; never NULL. */
static void *room(int64_t size) {
    void *made = malloc((size_t)size);
    if (made == NULL && size != 0) {
        abort();
    }
    return made;
}

static bool is_utf8(const uint8_t *text, int32_t len) {
    size_t size;
    for (const uint8_t *at = text; at < text + len; at += size) {
        if (!kf_utf8_step(at, text + len, &size)) {
            return false;
        }
    }
    return true;
}

static void check_part(const kf_span *spans, int64_t count, const uint8_t *base, kf_part part,
                       int64_t bytes) {
    int32_t *offsets = room((count + 1) * (int64_t)sizeof *offsets);
    uint8_t *data = room(bytes);
    uint8_t *views = room(count * KF_SPAN_VIEW_SIZE);
    uint8_t *bits = calloc((size_t)count / 8 + 1, 1);
    offsets[0] = 0;
    kf_part_copy(spans, count, base, part, offsets, data);
    kf_part_views(spans, count, base, part, 7, 3, views);
    kf_part_validity(spans, count, part, bits, 0);
    KF_MUST(offsets[count] == bytes);
    for (int64_t i = 0; i < count; i++) {
        int32_t len = kf_part_len(&spans[i], part);
        const uint8_t *item = base + kf_part_pos(&spans[i], part);
        size_t size = len < 0 ? 0 : (size_t)len;
        KF_MUST((bits[i >> 3] >> (i & 7) & 1) == (len >= 0));
        KF_MUST((size_t)(offsets[i + 1] - offsets[i]) == size);
        KF_MUST(size == 0 || memcmp(data + offsets[i], item, size) == 0);
        int32_t view[4];
        memcpy(view, views + i * KF_SPAN_VIEW_SIZE, sizeof view);
        KF_MUST((size_t)view[0] == size);
        KF_MUST(size <= KF_SPAN_VIEW_INLINE_MAX
                    ? size == 0 || memcmp(&view[1], item, size) == 0
                    : view[2] == 7 && base + view[3] - 3 == item && memcmp(&view[1], item, 4) == 0);
    }
    free(offsets);
    free(data);
    free(views);
    free(bits);
}

static void check_headers(const kf_span *spans, int64_t count, const uint8_t *base, size_t size,
                          const kf_span_sizes *sizes) {
    kf_header_columns out = {0};
    out.lists = room((count + 1) * (int64_t)sizeof *out.lists);
    out.key_offsets = room((sizes->headers + 1) * (int64_t)sizeof *out.key_offsets);
    out.value_offsets = room((sizes->headers + 1) * (int64_t)sizeof *out.value_offsets);
    out.keys = room(sizes->header_key_bytes);
    out.values = room(sizes->header_value_bytes);
    out.value_bits = calloc((size_t)sizes->headers / 8 + 1, 1);
    out.lists[0] = out.key_offsets[0] = out.value_offsets[0] = 0;
    kf_headers_copy(spans, count, base, size, 0, &out);
    KF_MUST(out.pairs == sizes->headers && out.lists[count] == out.pairs);
    KF_MUST(out.key_offsets[out.pairs] == sizes->header_key_bytes);
    KF_MUST(out.value_offsets[out.pairs] == sizes->header_value_bytes);
    int64_t nulls = 0;
    for (int32_t i = 0; i < out.pairs; i++) {
        KF_MUST(
            is_utf8(out.keys + out.key_offsets[i], out.key_offsets[i + 1] - out.key_offsets[i]));
        nulls += !(out.value_bits[i >> 3] >> (i & 7) & 1);
    }
    KF_MUST(nulls == sizes->null_header_values);
    free(out.lists);
    free(out.key_offsets);
    free(out.value_offsets);
    free(out.keys);
    free(out.values);
    free(out.value_bits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kf_batch_header header;
    int32_t scanned;
    kf_reader reader = kf_reader_of(data, size);
    kf_batch_header_read(&reader, &header);
    const uint8_t *base = reader.pos;
    size_t records_size = kf_left(&reader);
    if (reader.bad || kf_scan_promise(&header, records_size) != KF_SCAN_OK) {
        return 0;
    }
    kf_span *spans = room((header.record_count + 1) * (int64_t)sizeof *spans);
    kf_scan_records(&reader, &header, spans, &scanned);
    kf_span_sizes sizes = {0};
    kf_measure(spans, scanned, base, records_size, &sizes);
    check_part(spans, scanned, base, KF_PART_KEY, sizes.key_bytes);
    check_part(spans, scanned, base, KF_PART_VALUE, sizes.value_bytes);
    check_headers(spans, scanned, base, records_size, &sizes);
    free(spans);
    return 0;
}
