/* What makes and frees the data plane's events; kf_events.h, made from classes, has their structs.
 *
 * The control plane owns (and frees) each event. Events and rows are a few hundred bytes each. A
 * process without memory for them is beyond saving, so the functions that make them abort instead
 * of returning NULL.
 */
#ifndef KF_EVENT_H
#define KF_EVENT_H

#include "kf_events.h"

/* How a Produce or Fetch answer does not fit its request: the fields of kf_bad_answer. */
typedef struct kf_misfit {
    enum kf_misfit_kind kind;
    int32_t place;
    int64_t asked;
    bool was_well;
} kf_misfit;

/* A blank one. */
kf_event *kf_event_new(enum kf_event_kind kind);
/* One that tells the end of a request without an answer. */
kf_event *kf_event_unanswered(int32_t link_id, int64_t token, int32_t reason);
/* With a copy of the frame, or without one if there is no memory for it. */
kf_event *kf_event_bad_answer(int32_t link_id, int32_t request, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit);
void kf_event_free(kf_event *event);

void kf_append_number(kf_numbers *numbers, int64_t number);
/* Make `bytes` a copy of these. False: there are none, or no memory for them. */
bool kf_bytes_copy(kf_bytes *bytes, const uint8_t *data, size_t size);

/* Return `items` with room for one more of this size. */
void *kf_grown(void *items, int count, int *capacity, size_t size);
/* Return `memory`; abort if there was none. */
void *kf_must(void *memory);

#endif /* KF_EVENT_H */
