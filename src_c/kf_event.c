#include "kf_event.h"

#include <stdlib.h>
#include <string.h>

void *kf_must(void *memory) {
    if (memory == NULL) {
        abort();
    }
    return memory;
}

kf_event *kf_event_new(int kind, int32_t link_id) {
    kf_event *event = kf_must(calloc(1, sizeof *event));
    event->kind = kind;
    event->link_id = link_id;
    return event;
}

/* Append a blank of this size. */
static void *add(kf_event *event, size_t size) {
    if (event->row_count == event->row_capacity) {
        int capacity = event->row_capacity == 0 ? 4 : event->row_capacity * 2;
        event->rows = kf_must(realloc(event->rows, (size_t)capacity * size));
        event->row_capacity = capacity;
    }
    return memset((uint8_t *)event->rows + (size_t)event->row_count++ * size, 0, size);
}

kf_batch_row *kf_event_add_batch(kf_event *event) {
    return add(event, sizeof(kf_batch_row));
}

kf_stream_row *kf_event_add_stream(kf_event *event) {
    return add(event, sizeof(kf_stream_row));
}

void kf_event_add_queue(kf_event *event, int64_t queue_id) {
    *(int64_t *)add(event, sizeof queue_id) = queue_id;
}

bool kf_event_copy(kf_event *event, const uint8_t *data, size_t size) {
    event->bytes = size > 0 ? malloc(size) : NULL;
    if (event->bytes == NULL) {
        return false;
    }
    memcpy(event->bytes, data, size);
    event->size = size;
    return true;
}

kf_event *kf_event_bad_answer(int32_t link_id, int request_kind, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit) {
    kf_event *event = kf_event_new(KF_EVENT_BAD_ANSWER, link_id);
    event->token = request_kind;
    event->code = version;
    event->misfit = *misfit;
    kf_event_copy(event, frame, size);
    return event;
}

void kf_event_free(kf_event *event) {
    free(event->bytes);
    free(event->rows);
    free(event);
}
