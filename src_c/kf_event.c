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

kf_row *kf_event_row(kf_event *event) {
    if (event->row_count == event->row_capacity) {
        int capacity = event->row_capacity == 0 ? 4 : event->row_capacity * 2;
        event->rows = kf_must(realloc(event->rows, (size_t)capacity * sizeof *event->rows));
        event->row_capacity = capacity;
    }
    kf_row *row = &event->rows[event->row_count++];
    memset(row, 0, sizeof *row);
    row->serial = -1;
    row->base_offset = -1;
    return row;
}

kf_event *kf_event_bad_answer(int32_t link_id, int request_kind, int16_t version,
                              const uint8_t *frame, size_t size, const kf_misfit *misfit) {
    kf_event *event = kf_event_new(KF_EVENT_BAD_ANSWER, link_id);
    kf_row *row = kf_event_row(event);
    event->token = request_kind;
    event->code = version;
    row->error_code = (int16_t)misfit->kind;
    row->queue_id = misfit->asked;
    row->serial = misfit->place;
    row->attempts = misfit->earlier;
    event->bytes = malloc(size);
    if (event->bytes != NULL) {
        memcpy(event->bytes, frame, size);
        event->size = size;
    }
    return event;
}

void kf_event_free(kf_event *event) {
    free(event->bytes);
    free(event->rows);
    free(event);
}
