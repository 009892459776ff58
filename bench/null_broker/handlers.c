/* See handlers.h. */

#include "handlers.h"

#include "canned.h"
#include "state.h"

/* What is advertised. librdkafka derives features from ranges: it writes no batch v2 unless Fetch 4
 * is listed, and no lz4 unless FindCoordinator 0 is; Kafka lists Produce 0 for its sake too. A
 * request of Produce below 3 ends the connection. */
static struct {
    int16_t key, min, max;
} apis[] = {
    {API_PRODUCE, 0, PRODUCE_MAX},
    {API_FETCH, FETCH_MIN, FETCH_MAX},
    {API_LIST_OFFSETS, LIST_OFFSETS_MIN, LIST_OFFSETS_MAX},
    {API_METADATA, 0, 13},
    {API_FIND_COORDINATOR, 0, 0},
    {API_VERSIONS, 0, 4},
    {API_INIT_PRODUCER_ID, 0, 5},
};

void set_produce_max(int16_t version) {
    apis[0].max = version;
}

void handle_api_versions(struct stream *in, struct request *request, struct out *out) {
    bool known = request->version <= 4;
    if (!known)
        request->version = 0; /* Kafka answers a version that it does not know in version 0 */
    bool flexible = request->version >= 3;
    stream_skip(in, in->left);
    put_i16(out, known ? 0 : ERROR_UNSUPPORTED_VERSION);
    put_count(out, sizeof apis / sizeof *apis, flexible);
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        put_i16(out, apis[i].key);
        put_i16(out, apis[i].min);
        put_i16(out, apis[i].max);
        put_tags(out, flexible);
    }
    if (request->version >= 1)
        put_i32(out, atomic_load(&state.throttle_ms));
    put_tags(out, flexible);
}

static void put_topic(struct out *out, const struct request *request, const char *name,
                      const struct topic *topic) {
    bool flexible = request->flexible;
    put_i16(out, topic != NULL ? 0 : ERROR_UNKNOWN_TOPIC_OR_PARTITION);
    put_string(out, name, flexible);
    if (request->version >= 10)
        put_bytes(out, topic != NULL ? topic->id : NULL, TOPIC_ID_SIZE);
    if (request->version >= 1)
        put_i8(out, 0); /* is_internal */
    int count = topic != NULL ? state.partition_count : 0;
    put_count(out, (size_t)count, flexible);
    for (int32_t index = 0; index < count; index++) {
        put_i16(out, 0);
        put_i32(out, index);
        put_i32(out, leader_of(index));
        if (request->version >= 7)
            put_i32(out, 0); /* leader epoch */
        for (int list = 0; list < 2; list++) { /* replicas, in-sync replicas */
            put_count(out, 1, flexible);
            put_i32(out, leader_of(index));
        }
        if (request->version >= 5)
            put_count(out, 0, flexible); /* offline replicas */
        put_tags(out, flexible);
    }
    if (request->version >= 8)
        put_i32(out, INT32_MIN); /* authorized operations: not asked for */
    put_tags(out, flexible);
}

static void put_all_topics(struct out *out, const struct request *request) {
    pthread_mutex_lock(&state.lock);
    put_count(out, state.topic_count, request->flexible);
    for (size_t i = 0; i < state.topic_count; i++)
        put_topic(out, request, state.topics[i]->name, state.topics[i]);
    pthread_mutex_unlock(&state.lock);
}

static void put_brokers(struct out *out, const struct request *request) {
    pthread_mutex_lock(&state.lock);
    put_count(out, (size_t)state.broker_count, request->flexible);
    for (int i = 0; i < state.broker_count; i++) {
        put_i32(out, i + 1);
        put_string(out, state.brokers[i].host, request->flexible);
        put_i32(out, state.brokers[i].port);
        if (request->version >= 1)
            put_string(out, NULL, request->flexible); /* rack */
        put_tags(out, request->flexible);
    }
    pthread_mutex_unlock(&state.lock);
}

void handle_metadata(struct stream *in, struct request *request, struct out *out) {
    bool flexible = request->flexible;
    char name[TOPIC_NAME_SIZE];
    uint8_t id[TOPIC_ID_SIZE] = {0};
    if (request->version >= 3)
        put_i32(out, atomic_load(&state.throttle_ms));
    put_brokers(out, request);
    if (request->version >= 2)
        put_string(out, "null-broker", flexible);
    if (request->version >= 1)
        put_i32(out, 1); /* controller */
    int64_t count = get_count(in, flexible);
    if (count < 0 || (count == 0 && request->version == 0)) {
        put_all_topics(out, request);
        count = 0;
    } else {
        put_count(out, (size_t)count, flexible);
    }
    for (int64_t i = 0; i < count && !in->bad; i++) {
        struct topic *topic;
        if (request->version >= 10)
            stream_take(in, id, TOPIC_ID_SIZE);
        bool named = get_string(in, name, sizeof name, flexible);
        get_tags(in, flexible);
        pthread_mutex_lock(&state.lock);
        topic = named ? find_or_create_topic(name) : find_topic_by_id(id);
        pthread_mutex_unlock(&state.lock);
        put_topic(out, request, topic != NULL ? topic->name : named ? name : NULL, topic);
    }
    stream_skip(in, in->left);
    if (request->version >= 8 && request->version <= 10)
        put_i32(out, INT32_MIN);
    if (request->version >= 13)
        put_i16(out, 0);
    put_tags(out, flexible);
}

void handle_init_producer_id(struct stream *in, struct request *request, struct out *out) {
    char transactional_id[TOPIC_NAME_SIZE];
    int64_t id = -1;
    int16_t epoch = -1;
    get_string(in, transactional_id, sizeof transactional_id, request->flexible);
    get_i32(in); /* transaction timeout */
    if (request->version >= 3) {
        id = get_i64(in);
        epoch = get_i16(in);
    }
    stream_skip(in, in->left);
    /* A producer that has an id asks for the next epoch (KIP-360). */
    bool known = id >= 0 && epoch >= 0 && epoch < INT16_MAX;
    put_i32(out, atomic_load(&state.throttle_ms));
    put_i16(out, 0);
    put_i64(out, known ? id : atomic_fetch_add(&state.next_producer_id, 1));
    put_i16(out, known ? (int16_t)(epoch + 1) : 0);
    put_tags(out, request->flexible);
}

struct topic *pass_topic(struct stream *in, bool by_id, bool flexible, struct out *out) {
    char name[TOPIC_NAME_SIZE];
    uint8_t id[TOPIC_ID_SIZE];
    struct topic *topic;
    if (by_id) {
        stream_take(in, id, sizeof id);
        put_bytes(out, id, sizeof id);
    } else {
        get_string(in, name, sizeof name, flexible);
        put_string(out, name, flexible);
    }
    pthread_mutex_lock(&state.lock);
    topic = by_id ? find_topic_by_id(id) : find_topic(name);
    pthread_mutex_unlock(&state.lock);
    return topic;
}

/* Read one partition's records, which are gone from the stream whatever the verdict; return how
 * many were accepted. */
static int32_t produce_partition(struct stream *in, struct request *request, int node,
                                 struct topic *topic, struct out *out) {
    bool flexible = request->flexible;
    int32_t index = get_i32(in);
    int64_t size = get_size(in, flexible);
    struct batch batch = {.error = ERROR_CORRUPT_MESSAGE};
    if (size >= 0 && (uint64_t)size <= in->left)
        read_batch(in, (size_t)size, state.check_crc, &batch);
    else
        in->bad = true;
    get_tags(in, flexible);
    if (in->bad)
        return 0;
    int64_t base_offset = -1;
    pthread_mutex_lock(&state.lock);
    int16_t error = accept_batch(topic, index, node, &batch, &base_offset);
    pthread_mutex_unlock(&state.lock);
    put_i32(out, index);
    put_i16(out, error);
    put_i64(out, base_offset);
    put_i64(out, -1); /* log append time */
    if (request->version >= 5)
        put_i64(out, error == 0 ? 0 : -1); /* log start offset */
    if (request->version >= 8) {
        put_count(out, 0, flexible);       /* errors of single records */
        put_string(out, NULL, flexible);   /* error message */
    }
    put_tags(out, flexible);
    return error == 0 ? batch.record_count : 0;
}

bool handle_produce(struct stream *in, struct request *request, int node, struct out *out) {
    bool flexible = request->flexible;
    char transactional_id[TOPIC_NAME_SIZE];
    int64_t records = 0;
    get_string(in, transactional_id, sizeof transactional_id, flexible);
    int16_t acks = get_i16(in);
    get_i32(in); /* timeout */
    int64_t topics = get_count(in, flexible);
    put_count(out, topics > 0 ? (size_t)topics : 0, flexible);
    for (int64_t t = 0; t < topics && !in->bad; t++) {
        struct topic *topic = pass_topic(in, request->version >= 13, flexible, out);
        int64_t partitions = get_count(in, flexible);
        put_count(out, partitions > 0 ? (size_t)partitions : 0, flexible);
        for (int64_t p = 0; p < partitions && !in->bad; p++)
            records += produce_partition(in, request, node, topic, out);
        get_tags(in, flexible);
        put_tags(out, flexible);
    }
    get_tags(in, flexible);
    put_i32(out, atomic_load(&state.throttle_ms));
    put_tags(out, flexible);
    note_produced(in->arrived_ns, records);
    return acks != 0;
}
