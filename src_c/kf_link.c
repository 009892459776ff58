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
    link->read_wants = KF_WANT_READ;
    return link;
}

void kf_request_free(kf_request *request) {
    free(request->framing);
    free(request->pieces);
    free(request->batches);
    free(request->topics);
    free(request);
}

void kf_link_free(kf_link *link) {
    link->io.dispose(link->io.context);
    if (link->session != NULL) {
        kf_session_free(link->session);
    }
    free(link->prefix);
    free(link->buffer);
    free(link);
}

static kf_trace *next_trace(kf_link *link, double at, int kind) {
    kf_trace *line = &link->trace[link->trace_count++ % KF_TRACE_LINES];
    line->at = at;
    line->kind = (uint8_t)kind;
    return line;
}

void kf_link_trace(kf_link *link, double at, int kind) {
    kf_trace *line = next_trace(link, at, kind);
    line->api_key = -1;
    line->version = -1;
    line->correlation_id = -1;
    line->serial = -1;
    line->size = 0;
}

void kf_link_trace_request(kf_link *link, double at, int kind, const kf_request *request,
                           size_t size) {
    kf_trace *line = next_trace(link, at, kind);
    kf_reader header =
        kf_reader_of(request->framing + KF_API_KEY_POS, KF_CORRELATION_POS - KF_API_KEY_POS);
    line->api_key = kf_read_i16(&header);
    line->version = (int8_t)kf_read_i16(&header);
    line->correlation_id = request->correlation_id;
    line->serial = request->batch_count > 0 ? request->batches[0]->serial : -1;
    line->size = (int64_t)size;
}

void kf_link_number(kf_link *link, kf_request *request) {
    request->correlation_id = link->next_correlation_id;
    link->next_correlation_id = (link->next_correlation_id + 1) & INT32_MAX;
    kf_put_i32(request->framing + KF_CORRELATION_POS, request->correlation_id);
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
    kf_link_trace_request(link, now, KF_TRACE_QUEUED, request, request->size);
}

void kf_link_hold(kf_link *link, kf_request *request) {
    request->next = NULL;
    if (link->waiting_last != NULL) {
        link->waiting_last->next = request;
    } else {
        link->waiting = request;
    }
    link->waiting_last = request;
}

void kf_link_open_gate(kf_link *link, double now) {
    if (link->gate == KF_GATE_OPEN) {
        return;
    }
    link->gate = KF_GATE_OPEN;
    link->last_used = link->used_before;
    kf_link_trace(link, now, KF_TRACE_GATE_OPEN);
    while (link->waiting != NULL) {
        kf_request *request = link->waiting;
        link->waiting = request->next;
        kf_link_number(link, request);
        kf_link_queue(link, request, now);
    }
    link->waiting_last = NULL;
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
        kf_link_trace_request(link, now, KF_TRACE_SENT, request, request->size);
        link->unwritten = request->next;
    }
}

/* Move the written requests that expect no answer to `*ended`. They stand in the window between
 * others that do expect one. */
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
    link->write_wants = KF_WANT_NOTHING;
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
        if (written == KF_IO_ERROR) {
            return false;
        }
        if (written < 0) {
            link->write_wants = written == KF_IO_WANT_READ ? KF_WANT_READ : KF_WANT_WRITE;
            break;
        }
        wrote = true;
        link->bytes_out += written;
        advance(link, (size_t)written, now);
        if ((size_t)written < size) {
            link->write_wants = KF_WANT_WRITE;
            break;
        }
    }
    if (wrote) {
        take_unanswered(link, ended);
    }
    return true;
}

/* Whether the next answer is one to a Fetch, which is read into memory of its own. */
static bool expects_fetch(const kf_link *link) {
    const kf_request *request = link->first;
    return request != NULL && request->written && request->kind == KF_REQUEST_FETCH;
}

/* Read into `into`, which has room for `size` bytes; the result as kf_link_read's. */
static int read_some(kf_link *link, uint8_t *into, size_t size, size_t *filled, int *error) {
    int64_t got = link->io.read(link->io.context, into, size, error);
    link->read_wants = got == KF_IO_WANT_WRITE ? KF_WANT_WRITE : KF_WANT_READ;
    if (got <= 0) {
        return got == 0 ? -1 : got == KF_IO_ERROR ? -2 : 0;
    }
    *filled += (size_t)got;
    link->bytes_in += got;
    return 1;
}

int kf_link_read(kf_link *link, int *error) {
    kf_frame *frame = link->session != NULL ? link->session->frame : NULL;
    if (frame != NULL) {
        if (frame->filled == frame->capacity && !kf_frame_grow(frame)) {
            return -2;
        }
        size_t room = frame->capacity < frame->size ? frame->capacity : frame->size;
        return read_some(link, frame->data + frame->filled, room - frame->filled, &frame->filled,
                         error);
    }
    if (link->filled == link->capacity) {
        /* Grown as bytes arrive, never by what a length field says. */
        uint8_t *larger = realloc(link->buffer, link->capacity * 2);
        if (larger == NULL) {
            return -2;
        }
        link->buffer = larger;
        link->capacity *= 2;
    }
    size_t room = link->capacity - link->filled;
    if (room > KF_LINK_PEEK && expects_fetch(link)) {
        room = KF_LINK_PEEK; /* what is read here has to be copied */
    }
    return read_some(link, link->buffer + link->filled, room, &link->filled, error);
}

/* Drop the first `size` bytes of the receive buffer. */
static void drop(kf_link *link, size_t size) {
    memmove(link->buffer, link->buffer + size, link->filled - size);
    link->filled -= size;
    if (link->filled == 0 && link->capacity > 16 * KF_LINK_RECEIVE_MIN) {
        uint8_t *smaller = realloc(link->buffer, KF_LINK_RECEIVE_MIN);
        if (smaller != NULL) {
            link->buffer = smaller;
            link->capacity = KF_LINK_RECEIVE_MIN;
        }
    }
}

/* Begin to read a Fetch answer of `size` bytes into a frame. The bytes that were asked for get
 * memory at once; if the answer is larger, its memory grows as bytes arrive. */
static bool begin_frame(kf_link *link, size_t size) {
    kf_session *session = link->session;
    size_t held = link->filled - 4 < size ? link->filled - 4 : size;
    session->frame = kf_frame_new(session->budget, size, session->reserved + KF_LINK_RECEIVE_MIN);
    if (session->frame == NULL) {
        return false;
    }
    while (session->frame->capacity < held) {
        if (!kf_frame_grow(session->frame)) {
            return false;
        }
    }
    memcpy(session->frame->data, link->buffer + 4, held);
    session->frame->filled = held;
    drop(link, held + 4);
    return true;
}

int kf_link_frame(kf_link *link, size_t max_frame, const uint8_t **frame, int64_t *size) {
    kf_frame *fetched = link->session != NULL ? link->session->frame : NULL;
    if (fetched == NULL) {
        if (link->filled < 4) {
            return 0;
        }
        int32_t len = (int32_t)kf_load_u32(link->buffer);
        *size = len;
        if (len < 4 || (size_t)len > max_frame) {
            return -1;
        }
        if (!expects_fetch(link)) {
            *frame = link->buffer + 4;
            return link->filled - 4 >= (size_t)len;
        }
        if (!begin_frame(link, (size_t)len)) {
            return -1;
        }
        fetched = link->session->frame;
    }
    *frame = fetched->data;
    *size = (int64_t)fetched->size;
    return fetched->filled == fetched->size;
}

void kf_link_consume(kf_link *link, int64_t size) {
    if (link->session != NULL && link->session->frame != NULL) {
        kf_frame_unref(link->session->frame);
        link->session->frame = NULL;
        return;
    }
    drop(link, (size_t)size + 4);
}

kf_request *kf_link_answered(kf_link *link, int32_t correlation_id, double now) {
    kf_request *request = link->first;
    if (request == NULL || !request->written || request->correlation_id != correlation_id) {
        return NULL;
    }
    pop(link);
    double elapsed = now - request->written_at;
    link->round_trip = link->round_trip == 0.0 ? elapsed : link->round_trip * 0.8 + elapsed * 0.2;
    link->last_used = link->answered_at = now;
    return request;
}

kf_request *kf_link_abandon(kf_link *link) {
    kf_request *all = link->first;
    if (all == NULL) {
        all = link->waiting;
    } else {
        link->last->next = link->waiting;
    }
    link->waiting = link->waiting_last = NULL;
    link->first = link->last = link->unwritten = NULL;
    link->produce_in_flight = 0;
    return all;
}

double kf_link_deadline(const kf_link *link) {
    const kf_request *request = link->first;
    if (request == NULL) {
        return 0.0;
    }
    double since = request->written ? request->written_at : request->queued_at;
    /* A broker answers one request of a connection after the other: while it worked on the one
     * before, it could not answer this one. Nor does it read any while it throttles (KIP-219). */
    if (since < link->answered_at) {
        since = link->answered_at;
    }
    if (since < link->throttled_until) {
        since = link->throttled_until;
    }
    return since + request->timeout;
}
