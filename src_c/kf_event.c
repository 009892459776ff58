#include "kf_event.h"

#include <stdlib.h>
#include <string.h>

void *kf_must(void *memory) {
    if (memory == NULL) {
        abort();
    }
    return memory;
}

kf_event *kf_event_new(enum kf_event_kind kind) {
    kf_event *event = kf_must(calloc(1, sizeof *event));
    event->kind = kind;
    return event;
}

kf_event *kf_event_unanswered(int32_t link_id, int64_t token, int32_t reason) {
    kf_event *event = kf_event_new(KF_EVENT_RAW_RESPONSE);
    event->raw_response.link_id = link_id;
    event->raw_response.token = token;
    event->raw_response.reason = reason;
    return event;
}

kf_event *kf_event_bad_answer(int32_t link_id, int32_t request, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit) {
    kf_event *event = kf_event_new(KF_EVENT_BAD_ANSWER);
    event->bad_answer.link_id = link_id;
    event->bad_answer.request = request;
    event->bad_answer.version = version;
    event->bad_answer.misfit = (int32_t)misfit->kind;
    event->bad_answer.place = misfit->place;
    event->bad_answer.asked = misfit->asked;
    event->bad_answer.was_well = misfit->was_well;
    kf_bytes_copy(&event->bad_answer.frame, frame, size);
    return event;
}

void kf_event_free(kf_event *event) {
    kf_event_release(event);
    free(event);
}

/* ---- what events consist of ---- */

void *kf_grown(void *items, int count, int *capacity, size_t size) {
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity == 0 ? 4 : *capacity * 2;
    return kf_must(realloc(items, (size_t)*capacity * size));
}

void kf_append_number(kf_numbers *numbers, int64_t number) {
    size_t size = sizeof *numbers->items;
    numbers->items = kf_grown(numbers->items, numbers->count, &numbers->capacity, size);
    numbers->items[numbers->count++] = number;
}

bool kf_bytes_copy(kf_bytes *bytes, const uint8_t *data, size_t size) {
    bytes->data = size > 0 ? malloc(size) : NULL;
    if (bytes->data == NULL) {
        return false;
    }
    memcpy(bytes->data, data, size);
    bytes->size = size;
    return true;
}
