/* The four requests of a producer: read from `in`, answered into `out`. canned.h has a consumer's.
 *
 * None of them holds a lock while it reads the stream, because a broker that was told to stop
 * reading still has to run commands.
 */
#ifndef NB_HANDLERS_H
#define NB_HANDLERS_H

#include "wire.h"

enum {
    API_PRODUCE = 0,
    API_FETCH = 1,
    API_LIST_OFFSETS = 2,
    API_METADATA = 3,
    API_FIND_COORDINATOR = 10,
    API_VERSIONS = 18,
    API_INIT_PRODUCER_ID = 22,
};

enum { PRODUCE_MIN = 3, PRODUCE_MAX = 13 };

struct topic;

struct request {
    int16_t key, version;
    int32_t correlation;
    bool flexible;
};

/* Read a request's topic, by name or by id, and write it into the answer alike; NULL: there is
 * none. */
struct topic *pass_topic(struct stream *in, bool by_id, bool flexible, struct out *out);

/* Advertise no higher version of Produce than this. */
void set_produce_max(int16_t version);

void handle_api_versions(struct stream *in, struct request *request, struct out *out);
void handle_metadata(struct stream *in, struct request *request, struct out *out);
void handle_init_producer_id(struct stream *in, struct request *request, struct out *out);
/* Return whether the request wants an answer (acks is not 0). `node` is the broker it came to. */
bool handle_produce(struct stream *in, struct request *request, int node, struct out *out);

#endif /* NB_HANDLERS_H */
