/* A broker that keeps no bytes, only the list of records that it took. It checks sequences as Kafka
 * does. At random it refuses batches, calls them too large, or hangs up.
 *
 * A request: length, correlation id, batch count; for each batch: queue, base sequence, size,
 * batch. Its answer: length, correlation id; for each batch: error code, base offset.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, ANSWER_MAX = 8 + 10 * QUEUES };

typedef struct log {
    tag *tags;
    int64_t size, capacity;
    int32_t next_sequence;
    int64_t next_number[CALLERS]; /* the least number that this caller's next record may have */
} log;

typedef struct connection {
    pthread_t thread;
    int fd;
    uint64_t random;
} connection;

static kf_mutex lock;
static log logs[QUEUES];
static connection connections[CONNECTIONS_MAX];
static int connection_count; /* data plane only, until all threads are joined */

void broker_init(void) {
    kf_mutex_init(&lock);
}

void broker_destroy(void) {
    for (int i = 0; i < QUEUES; i++) {
        free(logs[i].tags);
    }
    kf_mutex_destroy(&lock);
}

int64_t broker_log_size(int queue) {
    kf_lock(&lock);
    int64_t size = logs[queue].size;
    kf_unlock(&lock);
    return size;
}

tag broker_log_at(int queue, int64_t offset) {
    kf_lock(&lock);
    if (offset < 0 || offset >= logs[queue].size) {
        fail("offset %ld of queue %d, whose log has %ld", (long)offset, queue,
             (long)logs[queue].size);
    }
    tag found = logs[queue].tags[offset];
    kf_unlock(&lock);
    return found;
}

static void append(int queue, tag added) {
    log *at = &logs[queue];
    int64_t *next = &at->next_number[added >> 32];
    if (at->size == at->capacity) {
        at->capacity = at->capacity == 0 ? 1024 : at->capacity * 2;
        at->tags = realloc(at->tags, (size_t)at->capacity * sizeof *at->tags);
        if (at->tags == NULL) {
            fail("out of memory");
        }
    }
    if ((int64_t)(uint32_t)added < *next) {
        fail("queue %d: record %u of caller %u came late or twice", queue, (uint32_t)added,
             (uint32_t)(added >> 32));
    }
    *next = (int64_t)(uint32_t)added + 1;
    at->tags[at->size++] = added;
}

static void take_records(int queue, kf_reader *reader, int32_t count) {
    kf_reader body;
    for (int32_t i = 0; i < count; i++) {
        kf_enter(reader, &body, kf_read_varint(reader));
        kf_read_i8(&body);
        kf_read_varlong(&body);
        int32_t delta = kf_read_varint(&body);
        int32_t key_len = kf_read_varint(&body);
        tag added = (uint64_t)kf_read_i64(&body);
        if (body.bad || key_len != sizeof added || delta != i) {
            fail("queue %d: a record is damaged", queue);
        }
        append(queue, added);
    }
    if (kf_left(reader) != 0) {
        fail("queue %d: %zu bytes too many in a batch", queue, kf_left(reader));
    }
}

static int16_t judge_batch(connection *from, const log *at, int32_t sequence, int32_t size) {
    uint64_t choice = next_random(&from->random) % 100;
    if (sequence != at->next_sequence) {
        return sequence < at->next_sequence ? ANSWER_DUPLICATE : ANSWER_OUT_OF_ORDER;
    }
    if (choice < 4) {
        return ANSWER_RETRY;
    }
    if (choice < 8 && size > 2 * SPLIT_SIZE) {
        return ANSWER_TOO_LARGE;
    }
    return choice == 8 ? ANSWER_REJECTED : ANSWER_OK;
}

static uint8_t *answer_batch(connection *from, kf_reader *request, uint8_t *at) {
    kf_batch_header header;
    int32_t queue = kf_read_i32(request);
    int32_t size = kf_read_i32(request);
    kf_reader batch;
    kf_enter(request, &batch, size);
    kf_batch_header_read(&batch, &header);
    if (batch.bad || queue < 0 || queue >= QUEUES || header.record_count < 1) {
        fail("a request is damaged");
    }
    log *into = &logs[queue];
    int16_t code = judge_batch(from, into, header.base_sequence, size);
    int64_t base_offset = code == ANSWER_OK ? into->size : -1;
    if (code == ANSWER_OK) {
        take_records(queue, &batch, header.record_count);
        into->next_sequence = kf_sequence_after(into->next_sequence, header.record_count);
    }
    at = kf_put_i16(at, code);
    return kf_put_i64(at, base_offset);
}

/* Read exactly `size` bytes; false when the peer has hung up. */
static bool read_all(int fd, uint8_t *into, size_t size) {
    while (size > 0) {
        ssize_t got = read(fd, into, size);
        if (got <= 0) {
            return false;
        }
        into += got;
        size -= (size_t)got;
    }
    return true;
}

static void *serve(void *argument) {
    connection *from = argument;
    uint8_t head[4];
    uint8_t answer[ANSWER_MAX];
    while (read_all(from->fd, head, sizeof head)) {
        size_t size = kf_load_u32(head);
        uint8_t *frame = malloc(size);
        if (frame == NULL) {
            fail("out of memory");
        }
        if (!read_all(from->fd, frame, size)) {
            free(frame);
            break;
        }
        kf_reader request = kf_reader_of(frame, size);
        uint8_t *at = kf_put_i32(answer + 4, kf_read_i32(&request));
        bool cut = next_random(&from->random) % 64 == 0;
        kf_lock(&lock);
        for (int32_t left = kf_read_i32(&request); left > 0; left--) {
            at = answer_batch(from, &request, at);
        }
        kf_unlock(&lock);
        free(frame);
        kf_put_i32(answer, (int32_t)(at - answer - 4));
        if (cut || write(from->fd, answer, (size_t)(at - answer)) < 0) {
            break; /* what was taken stays taken, and the client does not know */
        }
    }
    close(from->fd);
    return NULL;
}

void broker_serve(int fd, uint64_t seed) {
    if (connection_count == CONNECTIONS_MAX) {
        fail("more than %d connections", CONNECTIONS_MAX);
    }
    connection *added = &connections[connection_count++];
    added->fd = fd;
    added->random = seed;
    if (pthread_create(&added->thread, NULL, serve, added) != 0) {
        fail("no thread for a connection");
    }
}

void broker_join(void) {
    for (int i = 0; i < connection_count; i++) {
        pthread_join(connections[i].thread, NULL);
    }
}
