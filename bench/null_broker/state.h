/* What the null broker's connections share: topics, counters, answers that wait, and the switches
 * that the commands move. */
#ifndef NB_STATE_H
#define NB_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

enum { MAX_BROKERS = 256, MAX_PARTITIONS = 10000, MAX_TOPICS = 1000, HOST_SIZE = 256 };

/* The idempotent producer's place in a partition. */
struct producer {
    int64_t id;
    int16_t epoch;
    int32_t next_sequence;
};

struct partition {
    int64_t next_offset;
    int64_t records, batches; /* since the last `reset` */
    struct producer *producers;
    size_t producer_count;
};

struct topic {
    char name[TOPIC_NAME_SIZE];
    uint8_t id[TOPIC_ID_SIZE];
    struct partition *partitions;
};

/* Where clients are told to find a broker: its own port, or the proxy in front of it. */
struct broker {
    char host[HOST_SIZE];
    int port;
};

/* An answer that was held back. */
struct held {
    struct held *next;
    int64_t due_ns;
    struct out out;
};

struct connection {
    struct stream in;
    int node; /* id of the broker that it came to */
    struct connection *next;
    pthread_mutex_t out_lock; /* guards the rest: the main thread sends what was held */
    struct held *first_held, **last_held;
};

struct state {
    int broker_count, partition_count;
    bool check_crc, check_sequence;
    pthread_rwlock_t reading; /* held for writing while the broker does not read */
    atomic_bool hold;
    atomic_int throttle_ms;
    _Atomic int64_t delay_ns, next_producer_id;
    _Atomic int64_t records, requests;
    _Atomic int64_t fetches, fetched_records, fetched_bytes;
    _Atomic int64_t awaited; /* wake the main thread at so many records */
    int wake;                /* eventfd of the main thread */
    pthread_mutex_t lock;    /* guards all that follows */
    struct broker brokers[MAX_BROKERS];
    struct topic *topics[MAX_TOPICS];
    size_t topic_count;
    struct connection *connections;
    int64_t batches, bytes, refused, first_ns, last_ns;
};

extern struct state state;

/* ---- topics; the caller holds `state.lock` ---- */
int leader_of(int32_t partition);
struct topic *find_topic(const char *name);
struct topic *find_topic_by_id(const uint8_t *id);
struct topic *find_or_create_topic(const char *name); /* NULL if the name or the table is bad */
/* Judge a batch as a broker does; count it and give it its offset, or return an error code. */
int16_t accept_batch(struct topic *topic, int32_t partition, int node, const struct batch *batch,
                     int64_t *base_offset);

/* ---- connections; any thread ---- */
struct connection *new_connection(int fd, int node);
void forget_connection(struct connection *connection); /* closes and frees it */
/* Send an answer, or keep it while answers are held or delayed; false if the peer is gone. */
bool answer(struct connection *connection, struct out out);

/* ---- what handlers report ---- */
/* A Produce request was read to its end: when its first byte was read, and records accepted. */
void note_produced(int64_t arrived_ns, int64_t record_count);
/* A Fetch request was answered with so many records, of so many bytes. */
void note_fetched(int64_t record_count, int64_t size);

/* ---- commands; main thread ---- */
/* Send what is due; return the nanoseconds until more is, or -1. */
int64_t send_due_answers(int64_t now_ns);
void set_reading(bool on);
void set_address(int node, const char *host, int port);
void cut_connections(void);
void reset_stats(void);
void print_stats(void);
void print_arrivals(void);
void await_records(int64_t count);
void maybe_print_awaited(void);

#endif /* NB_STATE_H */
