/* See canned.h. */

#include "canned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "state.h"

enum {
    BATCH_HEADER = 61,
    OFFSET_SIZE = 8, /* the base offset, in front of everything else */
    BATCH_LENGTH_AT = 8,
    BATCH_OVERHEAD = 12, /* base offset and length: what the length does not count */
    MAGIC_AT = 16,
    RECORD_COUNT_AT = 57,
    MAX_BATCH = 16 << 20,
    EARLIEST = -2,
};

/* What one partition of a Fetch request asks for. */
struct wanted {
    int32_t index;
    int64_t offset;
    int32_t max_bytes;
};

/* Set before the first connection, and only read from then on. */
static struct {
    uint8_t *data;
    size_t size;
    int64_t records, copies;
} batch;

static int64_t load(const uint8_t *at, int size) {
    int64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

bool load_batch(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    batch.data = malloc(MAX_BATCH);
    if (batch.data == NULL)
        abort();
    batch.size = fread(batch.data, 1, MAX_BATCH, file);
    fclose(file);
    if (batch.size < BATCH_HEADER || batch.data[MAGIC_AT] != 2)
        return false;
    batch.records = load(batch.data + RECORD_COUNT_AT, 4);
    return batch.records > 0 &&
           load(batch.data + BATCH_LENGTH_AT, 4) + BATCH_OVERHEAD == (int64_t)batch.size;
}

void set_copies(int64_t copies) {
    batch.copies = copies;
}

static int64_t end_offset(void) {
    return batch.records * batch.copies;
}

static int16_t judge(const struct topic *topic, int32_t index, int node) {
    if (topic == NULL || index < 0 || index >= state.partition_count)
        return ERROR_UNKNOWN_TOPIC_OR_PARTITION;
    return leader_of(index) == node ? 0 : ERROR_NOT_LEADER;
}

static size_t pass_count(struct stream *in, bool flexible, struct out *out) {
    int64_t count = get_count(in, flexible);
    size_t elements = count > 0 ? (size_t)count : 0;
    put_count(out, elements, flexible);
    return elements;
}

void handle_find_coordinator(struct stream *in, struct request *request, struct out *out) {
    char group[TOPIC_NAME_SIZE];
    get_string(in, group, sizeof group, request->flexible);
    put_i16(out, ERROR_COORDINATOR_NOT_AVAILABLE);
    put_i32(out, -1);
    put_string(out, "", request->flexible);
    put_i32(out, -1);
}

void handle_list_offsets(struct stream *in, struct request *request, int node, struct out *out) {
    bool flexible = request->flexible;
    get_i32(in); /* replica */
    if (request->version >= 2) {
        uint8_t isolation;
        stream_take(in, &isolation, 1);
        put_i32(out, atomic_load(&state.throttle_ms));
    }
    for (size_t t = pass_count(in, flexible, out); t > 0 && !in->bad; t--) {
        const struct topic *topic = pass_topic(in, false, flexible, out);
        for (size_t p = pass_count(in, flexible, out); p > 0 && !in->bad; p--) {
            int32_t index = get_i32(in);
            if (request->version >= 4)
                get_i32(in); /* leader epoch */
            int64_t timestamp = get_i64(in);
            get_tags(in, flexible);
            int16_t error = judge(topic, index, node);
            put_i32(out, index);
            put_i16(out, error);
            put_i64(out, -1); /* timestamp */
            put_i64(out, error != 0 ? -1 : timestamp == EARLIEST ? 0 : end_offset());
            if (request->version >= 4)
                put_i32(out, error != 0 ? -1 : 0); /* leader epoch */
            put_tags(out, flexible);
        }
        get_tags(in, flexible);
        put_tags(out, flexible);
    }
    get_tags(in, flexible);
    put_tags(out, flexible);
}

static struct wanted get_wanted(struct stream *in, const struct request *request) {
    struct wanted wanted;
    wanted.index = get_i32(in);
    if (request->version >= 9)
        get_i32(in); /* leader epoch */
    wanted.offset = get_i64(in);
    if (request->version >= 12)
        get_i32(in); /* epoch of the last record */
    if (request->version >= 5)
        get_i64(in); /* log start: a follower's */
    wanted.max_bytes = get_i32(in);
    get_tags(in, request->flexible);
    return wanted;
}

/* Write one partition's answer; returns the bytes of its records. The first batch of a request is
 * served whatever its size, as by Kafka. */
static int64_t put_partition(struct out *out, const struct request *request, int16_t error,
                             struct wanted wanted, int64_t room, bool is_first) {
    bool flexible = request->flexible;
    int64_t end = end_offset(), copies = 0, next = 0;
    if (error == 0 && (wanted.offset < 0 || wanted.offset > end))
        error = ERROR_OFFSET_OUT_OF_RANGE;
    if (error == 0 && wanted.offset < end) {
        room = room < wanted.max_bytes ? room : wanted.max_bytes;
        next = wanted.offset / batch.records;
        copies = room / (int64_t)batch.size;
        copies = copies > 0 || !is_first ? copies : 1;
        copies = copies < batch.copies - next ? copies : batch.copies - next;
    }
    put_i32(out, wanted.index);
    put_i16(out, error);
    put_i64(out, error == 0 ? end : -1); /* high watermark */
    put_i64(out, error == 0 ? end : -1); /* last stable offset */
    if (request->version >= 5)
        put_i64(out, error == 0 ? 0 : -1); /* log start */
    put_count(out, 0, flexible);           /* aborted transactions */
    if (request->version >= 11)
        put_i32(out, -1); /* preferred replica */
    put_count(out, (size_t)copies * batch.size, flexible);
    for (int64_t i = 0; i < copies; i++) {
        put_i64(out, (next + i) * batch.records);
        put_bytes(out, batch.data + OFFSET_SIZE, batch.size - OFFSET_SIZE);
    }
    put_tags(out, flexible);
    return copies * (int64_t)batch.size;
}

static void skip_forgotten(struct stream *in, const struct request *request) {
    char name[TOPIC_NAME_SIZE];
    bool flexible = request->flexible;
    for (int64_t t = get_count(in, flexible); t > 0 && !in->bad; t--) {
        if (request->version >= 13)
            stream_skip(in, TOPIC_ID_SIZE);
        else
            get_string(in, name, sizeof name, flexible);
        for (int64_t p = get_count(in, flexible); p > 0 && !in->bad; p--)
            get_i32(in);
        get_tags(in, flexible);
    }
}

void handle_fetch(struct stream *in, struct request *request, int node, struct out *out) {
    bool flexible = request->flexible;
    char rack[TOPIC_NAME_SIZE];
    uint8_t isolation;
    int64_t served = 0;
    if (request->version < 15)
        get_i32(in); /* replica */
    int32_t max_wait_ms = get_i32(in);
    int32_t min_bytes = get_i32(in);
    int64_t max_bytes = get_i32(in);
    stream_take(in, &isolation, 1);
    put_i32(out, atomic_load(&state.throttle_ms));
    if (request->version >= 7) {
        get_i32(in); /* session */
        get_i32(in); /* its epoch */
        put_i16(out, 0);
        put_i32(out, 0);
    }
    for (size_t t = pass_count(in, flexible, out); t > 0 && !in->bad; t--) {
        const struct topic *topic = pass_topic(in, request->version >= 13, flexible, out);
        for (size_t p = pass_count(in, flexible, out); p > 0 && !in->bad; p--) {
            struct wanted wanted = get_wanted(in, request);
            int16_t error = judge(topic, wanted.index, node);
            served += put_partition(out, request, error, wanted, max_bytes - served, served == 0);
        }
        get_tags(in, flexible);
        put_tags(out, flexible);
    }
    if (request->version >= 7)
        skip_forgotten(in, request);
    if (request->version >= 11)
        get_string(in, rack, sizeof rack, flexible);
    get_tags(in, flexible);
    put_tags(out, flexible);
    note_fetched(served / (int64_t)(batch.size + !batch.size) * batch.records, served);
    /* What comes behind on this connection waits as well, as it does at Kafka's. */
    if (served < min_bytes && max_wait_ms > 0 && !in->bad)
        nanosleep(&(struct timespec){max_wait_ms / 1000, max_wait_ms % 1000 * 1000000L}, NULL);
}
