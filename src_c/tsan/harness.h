/* What the threads of the harness share. See harness.c. */
#ifndef HARNESS_H
#define HARNESS_H

#include "kf_link.h"
#include "kf_producer.h"

enum {
    QUEUES = 6,
    LINKS = 2,
    CALLERS = 3,
    SPLIT_SIZE = 2048,
    STUCK_SECONDS = 20, /* nothing here takes a second: a wait that long was forgotten */
};

/* What the null broker answers, in Kafka's numbers. */
enum {
    ANSWER_OK = 0,
    ANSWER_RETRY = 6,
    ANSWER_TOO_LARGE = 10,
    ANSWER_REJECTED = 29,
    ANSWER_OUT_OF_ORDER = 45,
    ANSWER_DUPLICATE = 46,
};

/* Which record: its caller, and its number among that caller's records of this queue. */
typedef uint64_t tag;

static inline tag tag_of(uint32_t caller, uint32_t number) {
    return (uint64_t)caller << 32 | number;
}

typedef struct harness {
    kf_plane plane;
    kf_producer *producer;
    kf_topic topic;
    kf_queue queues[QUEUES];
    uint64_t seed;
    uint32_t records; /* of each caller */
    int data_event;   /* ends the data plane's sleep */
    int control_event;
    int observer_event;
    kf_atomic_int stopping;
    kf_atomic_int observed_failed; /* records in failed batches, as the observer saw them */
    kf_atomic_int observed_splits;
} harness;

/* Tell what is wrong, and end the program. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t next_random(uint64_t *state);
/* Sleep until the event, or for a while; clears it. */
void sleep_on(int event, int milliseconds);

/* broker.c: the log behind all links */
void broker_init(void);
void broker_destroy(void);
/* Serve one connection on a thread of its own; it may hang up at any time. */
void broker_serve(int fd, uint64_t seed);
void broker_join(void);
int64_t broker_log_size(int queue);
/* The record at this offset. */
tag broker_log_at(int queue, int64_t offset);

/* sender.c: a data plane of the smallest kind; `argument` is the harness */
void *sender_main(void *argument);
/* The control plane's part: verdicts on what the data plane reports. */
void *control_main(void *argument);

#endif /* HARNESS_H */
