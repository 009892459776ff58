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
    event->bad_answer.misfit = *misfit;
    kf_bytes_copy(&event->bad_answer.frame, frame, size);
    return event;
}

void kf_event_free(kf_event *event) {
    switch (event->kind) {
    case KF_EVENT_RAW_RESPONSE:
        free(event->raw_response.frame.data);
        break;
    case KF_EVENT_LINK_CLOSED:
        free(event->link_closed.head.data);
        break;
    case KF_EVENT_BAD_ANSWER:
        free(event->bad_answer.frame.data);
        break;
    case KF_EVENT_LINK_TRACES:
        free(event->link_traces.ring.data);
        break;
    case KF_EVENT_PRODUCE_PUNT:
        free(event->produce_punt.frame.data);
        free(event->produce_punt.batches.rows);
        break;
    case KF_EVENT_ROUTE_WANTED:
        free(event->route_wanted.queues.ids);
        break;
    case KF_EVENT_QUEUE_REPORT:
        free(event->queue_report.batches.rows);
        break;
    case KF_EVENT_FETCH_PUNT:
        free(event->fetch_punt.frame.data);
        free(event->fetch_punt.streams.rows);
        break;
    case KF_EVENT_STREAMS_STOPPED:
        free(event->streams_stopped.streams.rows);
        break;
    case KF_EVENT_THROTTLED:
    case KF_EVENT_HEARTBEATS_ENDED:
    case KF_EVENT_GATE_SHUT:
    case KF_EVENT_TRACES_ENDED:
    case KF_EVENT_UNKNOWN_COMMAND:
        break;
    }
    free(event);
}

/* ---- what events consist of ---- */

/* Return `rows` with room for one more of this size. */
static void *grown(void *rows, int count, int *capacity, size_t size) {
    if (count < *capacity) {
        return rows;
    }
    *capacity = *capacity == 0 ? 4 : *capacity * 2;
    return kf_must(realloc(rows, (size_t)*capacity * size));
}

kf_batch_row *kf_append_batch(kf_batch_rows *batches) {
    batches->rows = grown(batches->rows, batches->count, &batches->capacity, sizeof *batches->rows);
    kf_batch_row *row = &batches->rows[batches->count++];
    *row = (kf_batch_row){0};
    return row;
}

kf_stream_row *kf_append_stream(kf_stream_rows *streams) {
    streams->rows = grown(streams->rows, streams->count, &streams->capacity, sizeof *streams->rows);
    kf_stream_row *row = &streams->rows[streams->count++];
    *row = (kf_stream_row){0};
    return row;
}

void kf_append_queue_id(kf_queue_ids *queues, int64_t queue_id) {
    queues->ids = grown(queues->ids, queues->count, &queues->capacity, sizeof *queues->ids);
    queues->ids[queues->count++] = queue_id;
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
