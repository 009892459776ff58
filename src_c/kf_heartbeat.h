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
    int32_t epoch_pos; /* where `frame` has the epoch or generation, which answers change; or 0 */
    uint8_t *expected; /* the answer that nobody needs, without its correlation id */
    size_t expected_size;
    uint8_t *between; /* another request: sent once, instead of the next heartbeat; or NULL */
    size_t between_size;
    int64_t between_token;
    double between_timeout;
    double period;  /* seconds from one to the next */
    double timeout; /* seconds to wait for the answer to one */
    double due;     /* when the next one is sent */
    int64_t told; /* answers that went up */
    int unheard;  /* of these, since one was expected or the control plane had heard them all */
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
