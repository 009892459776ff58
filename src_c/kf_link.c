#include "kf_link.h"

#include <stdlib.h>
#include <string.h>

kf_link *kf_link_new(int32_t id, int32_t node_id, const kf_link_io *io, int fd) {
    kf_link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    link->buffer = malloc(KF_LINK_RECEIVE_MIN);
    if (link->buffer == NULL) {
        free(link);
        return NULL;
    }
    link->capacity = KF_LINK_RECEIVE_MIN;
    link->id = id;
    link->node_id = node_id;
    link->io = *io;
    link->fd = fd;
    return link;
}

void kf_request_free(kf_request *request) {
    free(request->framing);
    free(request->pieces);
    free(request->batches);
    free(request);
}

void kf_link_free(kf_link *link) {
    link->io.dispose(link->io.context);
    free(link->prefix);
    free(link->buffer);
    free(link);
}

void kf_link_trace(kf_link *link, double at, int kind, int32_t correlation_id, int64_t serial,
                   int64_t size) {
    kf_trace *line = &link->trace[link->trace_count++ % KF_LINK_EVENTS];
    line->at = at;
    line->kind = kind;
    line->correlation_id = correlation_id;
    line->serial = serial;
    line->size = size;
}

void kf_link_queue(kf_link *link, kf_request *request, double now) {
    request->next = NULL;
    request->queued_at = now;
    link->last_used = now;
    if (link->last != NULL) {
        link->last->next = request;
    } else {
        link->first = request;
    }
    link->last = request;
    if (link->unwritten == NULL) {
        link->unwritten = request;
    }
    if (request->kind == KF_REQUEST_PRODUCE) {
        link->produce_in_flight++;
    }
    kf_link_trace(link, now, KF_TRACE_QUEUED, request->correlation_id,
                  request->batch_count > 0 ? request->batches[0]->serial : -1,
                  (int64_t)request->size);
}

/* Take the first request out of the window. */
static kf_request *pop(kf_link *link) {
    kf_request *request = link->first;
    link->first = request->next;
    if (link->first == NULL) {
        link->last = NULL;
    }
    if (link->unwritten == request) {
        link->unwritten = link->first;
    }
    if (request->kind == KF_REQUEST_PRODUCE) {
        link->produce_in_flight--;
    }
    request->next = NULL;
    return request;
}

/* Mark `len` bytes of the unwritten requests as written. */
static void advance(kf_link *link, size_t len, double now) {
    while (link->unwritten != NULL) {
        kf_request *request = link->unwritten;
        while (request->piece_pos < request->piece_count) {
            struct iovec *piece = &request->pieces[request->piece_pos];
            if (len < piece->iov_len) {
                piece->iov_base = (uint8_t *)piece->iov_base + len;
                piece->iov_len -= len;
                return;
            }
            len -= piece->iov_len;
            request->piece_pos++;
        }
        request->written = true;
        request->written_at = now;
        link->requests++;
        kf_link_trace(link, now, KF_TRACE_SENT, request->correlation_id,
                      request->batch_count > 0 ? request->batches[0]->serial : -1,
                      (int64_t)request->size);
        link->unwritten = request->next;
    }
}

/* Requests without an answer end when they are written; they stand in the window between those
 * that have one. */
static void take_unanswered(kf_link *link, kf_request **ended) {
    kf_request *last = NULL;
    kf_request **at = &link->first;
    while (*ended != NULL) {
        ended = &(*ended)->next;
    }
    while (*at != NULL && (*at)->written) {
        kf_request *request = *at;
        if (request->answered) {
            last = request;
            at = &request->next;
            continue;
        }
        *at = request->next;
        if (link->last == request) {
            link->last = last;
        }
        if (request->kind == KF_REQUEST_PRODUCE) {
            link->produce_in_flight--;
        }
        request->next = NULL;
        *ended = request;
        ended = &request->next;
    }
}

bool kf_link_write(kf_link *link, double now, kf_request **ended, int *error) {
    struct iovec pieces[KF_LINK_WRITE_PIECES];
    bool wrote = false;
    link->want_write = false;
    while (link->unwritten != NULL) {
        int count = 0;
        size_t size = 0;
        for (kf_request *request = link->unwritten; request != NULL && count < KF_LINK_WRITE_PIECES;
             request = request->next) {
            for (int i = request->piece_pos;
                 i < request->piece_count && count < KF_LINK_WRITE_PIECES; i++) {
                pieces[count++] = request->pieces[i];
                size += request->pieces[i].iov_len;
            }
        }
        int64_t written = link->io.write(link->io.context, pieces, count, error);
        if (written == KF_IO_AGAIN) {
            link->want_write = true;
            break;
        }
        if (written < 0) {
            return false;
        }
        wrote = true;
        link->bytes_out += written;
        advance(link, (size_t)written, now);
        if ((size_t)written < size) {
            link->want_write = true;
            break;
        }
    }
    if (wrote) {
        take_unanswered(link, ended);
    }
    return true;
}

int kf_link_read(kf_link *link, int *error) {
    if (link->filled == link->capacity) {
        /* Grown as bytes arrive, never by what a length field says. */
        uint8_t *larger = realloc(link->buffer, link->capacity * 2);
        if (larger == NULL) {
            return -2;
        }
        link->buffer = larger;
        link->capacity *= 2;
    }
    int64_t got = link->io.read(link->io.context, link->buffer + link->filled,
                                link->capacity - link->filled, error);
    if (got == KF_IO_AGAIN) {
        return 0;
    }
    if (got <= 0) {
        return got == 0 ? -1 : -2;
    }
    link->filled += (size_t)got;
    link->bytes_in += got;
    return 1;
}

int kf_link_frame(kf_link *link, size_t max_frame, const uint8_t **frame, int64_t *size) {
    if (link->filled < 4) {
        return 0;
    }
    int32_t len = (int32_t)kf_load_u32(link->buffer);
    *size = len;
    if (len < 4 || (size_t)len > max_frame) {
        return -1;
    }
    if (link->filled - 4 < (size_t)len) {
        return 0;
    }
    *frame = link->buffer + 4;
    return 1;
}

void kf_link_consume(kf_link *link, int64_t size) {
    size_t used = (size_t)size + 4;
    memmove(link->buffer, link->buffer + used, link->filled - used);
    link->filled -= used;
    if (link->filled == 0 && link->capacity > 16 * KF_LINK_RECEIVE_MIN) {
        uint8_t *smaller = realloc(link->buffer, KF_LINK_RECEIVE_MIN);
        if (smaller != NULL) {
            link->buffer = smaller;
            link->capacity = KF_LINK_RECEIVE_MIN;
        }
    }
}

kf_request *kf_link_answered(kf_link *link, int32_t correlation_id, double now) {
    kf_request *request = link->first;
    if (request == NULL || !request->written || request->correlation_id != correlation_id) {
        return NULL;
    }
    pop(link);
    double elapsed = now - request->written_at;
    link->round_trip = link->round_trip == 0.0 ? elapsed : link->round_trip * 0.8 + elapsed * 0.2;
    link->last_used = now;
    return request;
}

kf_request *kf_link_abandon(kf_link *link) {
    kf_request *all = link->first;
    link->first = link->last = link->unwritten = NULL;
    link->produce_in_flight = 0;
    return all;
}

double kf_link_deadline(const kf_link *link) {
    const kf_request *request = link->first;
    if (request == NULL) {
        return 0.0;
    }
    return (request->written ? request->written_at : request->queued_at) + request->timeout;
}
