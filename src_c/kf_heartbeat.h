/* A request that the data plane sends every period, whether Python runs or not. Data plane. */
#ifndef KF_HEARTBEAT_H
#define KF_HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct kf_heartbeat {
    struct kf_heartbeat *next;
    int64_t token;
    int32_t link_id;
    uint8_t *frame; /* request, length included */
    size_t frame_size;
    int32_t epoch_pos; /* of epoch or generation in it, which answers change; 0: they do not */
    uint8_t *expected; /* the answer that needs nobody, from behind the correlation id */
    size_t expected_size;
    uint8_t *between; /* another request: sent once, instead of the next heartbeat; or NULL */
    size_t between_size;
    int64_t between_token;
    double between_timeout;
    double period;  /* seconds from one to the next */
    double timeout; /* of one */
    double due;
    int64_t told; /* answers that went up */
    int unheard;  /* answers that went up since the last that was expected, or known above */
    bool silent;  /* no epoch was told yet: only requests between are sent */
    bool in_flight;
    bool between_in_flight; /* what is in flight is the request between */
} kf_heartbeat;

static inline void kf_heartbeat_free(kf_heartbeat *heartbeat) {
    free(heartbeat->frame);
    free(heartbeat->expected);
    free(heartbeat->between);
    free(heartbeat);
}

#endif /* KF_HEARTBEAT_H */
