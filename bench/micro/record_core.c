/* The core of encoding and decoding in C, without Python: what record_core.py builds and runs.
 *
 * Prints one line of JSON: the best of many rounds, in ns per record of 100 bytes (GB/s for the
 * CRC, by each path that this CPU has). `copy` is the yardstick of the machine: memcpy of the batch
 * and its CRC.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kf_crc32c.h"
#include "kf_record.h"
#include "kf_scan.h"

enum {
    RECORDS = 150, /* fill a batch of 16 KiB */
    VALUE_SIZE = 100,
    ROUNDS = 400,
    REPEATS = 50, /* in one round: long enough for the clock */
    CRC_SIZE = 16 * 1024,
};

static uint8_t batch[32 * 1024];
static uint8_t copy[32 * 1024];
static uint8_t values[RECORDS][VALUE_SIZE];
static kf_span spans[RECORDS];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Make the compiler believe that all memory was read and written. */
static void fence(void) {
    __asm__ volatile("" ::: "memory");
}

static size_t encode(void) {
    uint8_t *at = batch + KF_BATCH_HEADER_SIZE;
    for (int32_t i = 0; i < RECORDS; i++) {
        kf_record record = {NULL, -1, values[i], VALUE_SIZE, NULL, 0};
        at = kf_record_put(at, &record, i / 16, i);
    }
    size_t size = (size_t)(at - batch);
    kf_batch_header header = {0};
    header.length = (int32_t)size - KF_BATCH_LENGTH_PREFIX;
    header.last_offset_delta = RECORDS - 1;
    header.record_count = RECORDS;
    kf_batch_header_put(batch, &header);
    uint32_t crc = kf_crc32c(0, batch + KF_BATCH_POS_ATTRIBUTES, size - KF_BATCH_POS_ATTRIBUTES);
    kf_put_i32(batch + KF_BATCH_POS_CRC, (int32_t)crc);
    return size;
}

static void decode(size_t size) {
    kf_reader reader = kf_reader_of(batch, size);
    kf_batch_header header;
    int32_t scanned;
    kf_batch_header_read(&reader, &header);
    uint32_t crc = kf_crc32c(0, batch + KF_BATCH_POS_ATTRIBUTES, size - KF_BATCH_POS_ATTRIBUTES);
    if (crc != header.crc || kf_scan_records(&reader, &header, spans, &scanned) != KF_SCAN_OK) {
        abort();
    }
}

static void copy_and_check(size_t size) {
    memcpy(copy, batch, size);
    fence();
    volatile uint32_t crc = kf_crc32c(0, copy, size);
    (void)crc;
}

static void check(size_t path) {
    volatile uint32_t crc = kf_crc32c_by_path(path, 0, batch, CRC_SIZE);
    (void)crc;
}

static void encode_one(size_t size) {
    (void)size;
    encode();
}

/* ns of one call with that argument, the best of all rounds. */
static double best(void (*run)(size_t), size_t argument) {
    double found = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < REPEATS; i++) {
            run(argument);
            fence();
        }
        double took = (now() - start) / REPEATS;
        found = took < found ? took : found;
    }
    return found;
}

int main(void) {
    for (size_t i = 0; i < RECORDS; i++) {
        for (size_t j = 0; j < VALUE_SIZE; j++) {
            values[i][j] = (uint8_t)((i * VALUE_SIZE + j) * 2654435761U >> 13);
        }
    }
    size_t size = encode();
    printf("{\"encode\": %.2f, \"decode\": %.2f, \"copy\": %.2f, \"crc_gbps\": {",
           best(encode_one, size) / RECORDS, best(decode, size) / RECORDS,
           best(copy_and_check, size) / RECORDS);
    for (size_t path = 0; path < kf_crc32c_path_count(); path++) {
        printf("%s\"%s\": %.2f", path == 0 ? "" : ", ", kf_crc32c_path_name(path),
               CRC_SIZE / best(check, path));
    }
    printf("}}\n");
    return 0;
}
