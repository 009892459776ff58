/* A batch v2: its header, the scan of its records, and each byte that a span names. A batch that
 * scans well is written again and must give the same spans. */
#include <string.h>

#include "fuzz.h"
#include "kf_record.h"
#include "kf_scan.h"

static void touch_headers(const uint8_t *base, size_t size, const kf_span *span) {
    kf_reader reader = kf_reader_of(base + span->headers_pos, size - (size_t)span->headers_pos);
    for (int32_t i = 0; i < span->header_count; i++) {
        int32_t key_len = kf_read_varint(&reader);
        kf_touch(kf_read_span(&reader, key_len), (size_t)key_len);
        int32_t value_len = kf_read_varint(&reader);
        if (value_len >= 0) {
            kf_touch(kf_read_span(&reader, value_len), (size_t)value_len);
        }
        KF_MUST(!reader.bad);
    }
}

static void touch_span(const uint8_t *base, size_t size, const kf_span *span) {
    KF_MUST(span->key_len >= -1 && span->value_len >= -1 && span->header_count >= 0);
    if (span->key_len > 0) {
        kf_touch(base + span->key_pos, (size_t)span->key_len);
    }
    if (span->value_len > 0) {
        kf_touch(base + span->value_pos, (size_t)span->value_len);
    }
    touch_headers(base, size, span);
}

/* Write the record again, without its headers, and scan it: the parts must be the same. */
static void write_again(const uint8_t *base, const kf_batch_header *header, const kf_span *span) {
    kf_record record = {0};
    record.key = base + span->key_pos;
    record.key_len = span->key_len;
    record.value = base + span->value_pos;
    record.value_len = span->value_len;
    size_t worst = kf_record_size_max(&record);
    uint8_t *out = malloc(worst);
    if (out == NULL) {
        return;
    }
    int64_t timestamp_delta =
        (int64_t)((uint64_t)span->timestamp - (uint64_t)header->base_timestamp);
    size_t size = (size_t)(kf_record_put(out, &record, timestamp_delta, 0) - out);
    KF_MUST(size <= worst);
    kf_batch_header one = *header;
    one.record_count = 1;
    one.last_offset_delta = 0;
    one.attributes = 0;
    kf_span found;
    int32_t scanned = 0;
    kf_reader reader = kf_reader_of(out, size);
    KF_MUST(kf_scan_records(&reader, &one, &found, &scanned) == KF_SCAN_OK && scanned == 1);
    KF_MUST(found.timestamp == span->timestamp && found.key_len == span->key_len);
    KF_MUST(found.value_len == span->value_len && found.header_count == 0);
    if (found.value_len > 0) {
        KF_MUST(memcmp(out + found.value_pos, record.value, (size_t)found.value_len) == 0);
    }
    free(out);
}

static void check_header(const uint8_t *data, const kf_batch_header *header) {
    uint8_t out[KF_BATCH_HEADER_SIZE];
    kf_batch_header_put(out, header);
    kf_put_i32(out + KF_BATCH_POS_CRC, (int32_t)header->crc);
    out[KF_BATCH_POS_MAGIC] = (uint8_t)header->magic;
    KF_MUST(memcmp(out, data, sizeof out) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kf_batch_header header;
    kf_reader reader = kf_reader_of(data, size);
    kf_batch_header_read(&reader, &header);
    if (reader.bad) {
        return 0;
    }
    check_header(data, &header);
    const uint8_t *base = reader.pos;
    size_t records_size = kf_left(&reader);
    if (kf_scan_promise(&header, records_size) != KF_SCAN_OK) {
        return 0;
    }
    kf_span *spans = calloc((size_t)header.record_count + 1, sizeof *spans);
    if (spans == NULL) {
        return 0;
    }
    int32_t scanned = -1;
    kf_scan_error error = kf_scan_records(&reader, &header, spans, &scanned);
    KF_MUST(scanned >= 0 && scanned <= header.record_count);
    KF_MUST(error != KF_SCAN_OK || scanned == header.record_count);
    KF_MUST(kf_scan_text(error) != NULL);
    for (int32_t i = 0; i < scanned; i++) {
        touch_span(base, records_size, &spans[i]);
        write_again(base, &header, &spans[i]);
    }
    free(spans);
    return 0;
}
