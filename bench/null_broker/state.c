/* See state.h. */

#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_ARRIVALS = 1 << 16, MAX_TOPIC_NAME = 249 };

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

struct state state = {
    .broker_count = 1,
    .partition_count = 1,
    .next_producer_id = 1000,
    .awaited = INT64_MAX,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    /* Writers first: connections that read without pause must not keep `stop reading` out. */
    .reading = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
};

/* When the first byte of each Produce request was read and how many records it brought, until the
 * room is used up. */
static struct {
    int64_t at_ns, records;
} arrivals[MAX_ARRIVALS];
static size_t arrival_count;

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL)
        abort();
    return memory;
}

int leader_of(int32_t partition) {
    return partition % state.broker_count + 1;
}

struct topic *find_topic(const char *name) {
    for (size_t i = 0; i < state.topic_count; i++)
        if (strcmp(state.topics[i]->name, name) == 0)
            return state.topics[i];
    return NULL;
}

struct topic *find_topic_by_id(const uint8_t *id) {
    for (size_t i = 0; i < state.topic_count; i++)
        if (memcmp(state.topics[i]->id, id, TOPIC_ID_SIZE) == 0)
            return state.topics[i];
    return NULL;
}

/* FNV-1a of the name, twice: the same name has the same id in every run. */
static void make_topic_id(const char *name, uint8_t *id) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int half = 0; half < 2; half++) {
        for (const char *c = name; *c != 0; c++)
            hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
        memcpy(id + 8 * half, &hash, sizeof hash);
    }
}

struct topic *find_or_create_topic(const char *name) {
    struct topic *topic = find_topic(name);
    size_t size = strlen(name);
    if (topic != NULL || state.topic_count == MAX_TOPICS || size == 0 || size > MAX_TOPIC_NAME ||
        strspn(name, NAME_CHARACTERS) != size)
        return topic;
    topic = allocate(1, sizeof *topic);
    memcpy(topic->name, name, size);
    make_topic_id(name, topic->id);
    topic->partitions = allocate((size_t)state.partition_count, sizeof *topic->partitions);
    state.topics[state.topic_count++] = topic;
    return topic;
}

static int16_t check_sequence(struct partition *partition, const struct batch *batch) {
    struct producer *known = NULL;
    for (size_t i = 0; i < partition->producer_count; i++)
        if (partition->producers[i].id == batch->producer_id)
            known = &partition->producers[i];
    if (known == NULL) {
        size_t size = (partition->producer_count + 1) * sizeof *known;
        partition->producers = realloc(partition->producers, size);
        if (partition->producers == NULL)
            abort();
        known = &partition->producers[partition->producer_count++];
        *known = (struct producer){.id = batch->producer_id, .epoch = -1};
    }
    if (known->epoch != batch->producer_epoch) {
        if (batch->base_sequence != 0)
            return ERROR_OUT_OF_ORDER_SEQUENCE;
        *known = (struct producer){.id = batch->producer_id, .epoch = batch->producer_epoch};
    }
    /* Sequences wrap at 2^31; a distance in the upper half of them is one backwards. */
    uint32_t ahead = (uint32_t)(batch->base_sequence - known->next_sequence) & INT32_MAX;
    if (ahead != 0)
        return ahead > INT32_MAX / 2 ? ERROR_DUPLICATE_SEQUENCE : ERROR_OUT_OF_ORDER_SEQUENCE;
    uint32_t next = (uint32_t)batch->base_sequence + (uint32_t)batch->record_count;
    known->next_sequence = (int32_t)(next & INT32_MAX);
    return 0;
}

int16_t accept_batch(struct topic *topic, int32_t index, int node, const struct batch *batch,
                     int64_t *base_offset) {
    int16_t error = batch->error;
    if (topic == NULL || index < 0 || index >= state.partition_count)
        error = ERROR_UNKNOWN_TOPIC_OR_PARTITION;
    else if (leader_of(index) != node)
        error = ERROR_NOT_LEADER;
    else if (error == 0 && state.check_sequence && batch->producer_id >= 0)
        error = check_sequence(&topic->partitions[index], batch);
    if (error != 0) {
        state.refused++;
        return error;
    }
    struct partition *partition = &topic->partitions[index];
    *base_offset = partition->next_offset;
    partition->next_offset += batch->record_count;
    partition->records += batch->record_count;
    partition->batches++;
    state.batches++;
    state.bytes += batch->size;
    atomic_fetch_add(&state.records, batch->record_count);
    return 0;
}

struct connection *new_connection(int fd, int node) {
    struct connection *connection = allocate(1, sizeof *connection);
    connection->in.fd = fd;
    connection->in.gulp = state.check_crc ? CHECK_BUFFER : FIELDS_BUFFER;
    connection->node = node;
    connection->last_held = &connection->first_held;
    pthread_mutex_init(&connection->out_lock, NULL);
    pthread_mutex_lock(&state.lock);
    connection->next = state.connections;
    state.connections = connection;
    pthread_mutex_unlock(&state.lock);
    return connection;
}

static void drop_first_held(struct connection *connection) {
    struct held *held = connection->first_held;
    connection->first_held = held->next;
    if (held->next == NULL)
        connection->last_held = &connection->first_held;
    free(held->out.data);
    free(held);
}

void forget_connection(struct connection *connection) {
    pthread_mutex_lock(&state.lock);
    struct connection **at = &state.connections;
    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    pthread_mutex_unlock(&state.lock);
    close(connection->in.fd);
    while (connection->first_held != NULL)
        drop_first_held(connection);
    pthread_mutex_destroy(&connection->out_lock);
    free(connection);
}

static bool send_all(int fd, const struct out *out) {
    for (size_t pos = 0; pos < out->size;) {
        ssize_t sent = send(fd, out->data + pos, out->size - pos, MSG_NOSIGNAL);
        if (sent > 0)
            pos += (size_t)sent;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR)
            return false;
    }
    return true;
}

static void wake_main(void) {
    uint64_t one = 1;
    ssize_t written = write(state.wake, &one, sizeof one);
    (void)written; /* it can only be full, and then the main thread wakes anyway */
}

bool answer(struct connection *connection, struct out out) {
    bool alive = true;
    int64_t delay = atomic_load(&state.delay_ns);
    pthread_mutex_lock(&connection->out_lock);
    /* `hold` is read under the lock: one release sends all that was kept before it. */
    if (delay == 0 && !atomic_load(&state.hold) && connection->first_held == NULL) {
        alive = send_all(connection->in.fd, &out);
        free(out.data);
    } else {
        struct held *held = allocate(1, sizeof *held);
        *held = (struct held){.due_ns = monotonic_ns() + delay, .out = out};
        *connection->last_held = held;
        connection->last_held = &held->next;
        wake_main();
    }
    pthread_mutex_unlock(&connection->out_lock);
    return alive;
}

int64_t send_due_answers(int64_t now_ns) {
    int64_t next = -1;
    if (atomic_load(&state.hold))
        return next;
    pthread_mutex_lock(&state.lock);
    for (struct connection *c = state.connections; c != NULL; c = c->next) {
        pthread_mutex_lock(&c->out_lock);
        while (c->first_held != NULL && c->first_held->due_ns <= now_ns) {
            send_all(c->in.fd, &c->first_held->out);
            drop_first_held(c);
        }
        if (c->first_held != NULL) {
            int64_t wait = c->first_held->due_ns - now_ns;
            next = next < 0 || wait < next ? wait : next;
        }
        pthread_mutex_unlock(&c->out_lock);
    }
    pthread_mutex_unlock(&state.lock);
    return next;
}

void note_produced(int64_t arrived_ns, int64_t record_count) {
    pthread_mutex_lock(&state.lock);
    if (state.first_ns == 0)
        state.first_ns = arrived_ns;
    state.last_ns = monotonic_ns();
    if (arrival_count < MAX_ARRIVALS) {
        arrivals[arrival_count].at_ns = arrived_ns;
        arrivals[arrival_count++].records = record_count;
    }
    pthread_mutex_unlock(&state.lock);
    atomic_fetch_add(&state.requests, 1);
    if (atomic_load(&state.records) >= atomic_load(&state.awaited))
        wake_main();
}

void note_fetched(int64_t record_count, int64_t size) {
    atomic_fetch_add(&state.fetches, 1);
    atomic_fetch_add(&state.fetched_records, record_count);
    atomic_fetch_add(&state.fetched_bytes, size);
}

void set_reading(bool on) {
    static bool reading = true;
    if (reading && !on)
        pthread_rwlock_wrlock(&state.reading);
    else if (!reading && on)
        pthread_rwlock_unlock(&state.reading);
    reading = on;
}

void set_address(int node, const char *host, int port) {
    pthread_mutex_lock(&state.lock);
    struct broker *broker = &state.brokers[node - 1];
    snprintf(broker->host, sizeof broker->host, "%s", host);
    broker->port = port;
    pthread_mutex_unlock(&state.lock);
}

void cut_connections(void) {
    pthread_mutex_lock(&state.lock);
    for (struct connection *c = state.connections; c != NULL; c = c->next)
        shutdown(c->in.fd, SHUT_RDWR);
    pthread_mutex_unlock(&state.lock);
}

void reset_stats(void) {
    pthread_mutex_lock(&state.lock);
    for (size_t i = 0; i < state.topic_count; i++)
        for (int p = 0; p < state.partition_count; p++) {
            state.topics[i]->partitions[p].records = 0;
            state.topics[i]->partitions[p].batches = 0;
        }
    state.batches = state.bytes = state.refused = state.first_ns = state.last_ns = 0;
    arrival_count = 0;
    atomic_store(&state.records, 0);
    atomic_store(&state.requests, 0);
    atomic_store(&state.fetches, 0);
    atomic_store(&state.fetched_records, 0);
    atomic_store(&state.fetched_bytes, 0);
    pthread_mutex_unlock(&state.lock);
}

void print_stats(void) {
    pthread_mutex_lock(&state.lock);
    int connections = 0;
    for (struct connection *c = state.connections; c != NULL; c = c->next)
        connections++;
    printf("{\"requests\": %" PRId64 ", \"batches\": %" PRId64 ", \"records\": %" PRId64
           ", \"bytes\": %" PRId64 ", \"refused\": %" PRId64 ", \"connections\": %d"
           ", \"first_ns\": %" PRId64 ", \"last_ns\": %" PRId64 ", \"fetches\": %" PRId64
           ", \"fetched_records\": %" PRId64 ", \"fetched_bytes\": %" PRId64 ", \"partitions\": {",
           atomic_load(&state.requests), state.batches, atomic_load(&state.records), state.bytes,
           state.refused, connections, state.first_ns, state.last_ns, atomic_load(&state.fetches),
           atomic_load(&state.fetched_records), atomic_load(&state.fetched_bytes));
    for (size_t i = 0; i < state.topic_count; i++) {
        printf("%s\"%s\": [", i > 0 ? ", " : "", state.topics[i]->name);
        for (int p = 0; p < state.partition_count; p++)
            printf("%s%" PRId64, p > 0 ? ", " : "", state.topics[i]->partitions[p].records);
        printf("]");
    }
    puts("}}");
    pthread_mutex_unlock(&state.lock);
}

void print_arrivals(void) {
    pthread_mutex_lock(&state.lock);
    for (size_t i = 0; i < arrival_count; i++)
        printf("%s%" PRId64 ":%" PRId64, i > 0 ? " " : "", arrivals[i].at_ns, arrivals[i].records);
    puts("");
    pthread_mutex_unlock(&state.lock);
}

void await_records(int64_t count) {
    atomic_store(&state.awaited, count);
    maybe_print_awaited();
}

void maybe_print_awaited(void) {
    if (atomic_load(&state.records) < atomic_load(&state.awaited))
        return;
    atomic_store(&state.awaited, INT64_MAX);
    puts("ok");
    fflush(stdout);
}
