"""Bytes in, bytes out, and the end of a link.

An answer must belong to the first request in flight, or the link is closed: a peer that answers out
of turn is not understood. Answers to the control plane's own requests go up as they came. Closing a
link ends all its requests. Only then do their batches come back, because only then is nothing sent
from their memory any more.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.fetch._fetcher cimport end_fetch, handle_fetch, stop_streams
from kafka_fast.dataplane.produce._outcomes cimport (
    answer_produce, complete_unanswered, end_produce, unroute
)
from kafka_fast.dataplane.core._heartbeats cimport (
    handle_heartbeat, lose_heartbeats, stop_heartbeats
)
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    READS_PER_STEP = 16  # of one link, so that no link starves the others
    HEAD_BYTES = 8  # of what is no whole frame: enough to recognise another protocol


cdef void end_request(sender_state* state, kf_link* link, kf_request* request,
                      int reason) noexcept nogil:
    """End a request with its link: report a raw one, give back the batches of a Produce."""
    if request.kind == KF_REQUEST_PRODUCE:
        end_produce(state, request)
    elif request.kind == KF_REQUEST_FETCH:
        end_fetch(state, link)
    elif request.kind == KF_REQUEST_RAW and request.answered:
        kf_plane_event(state.plane, kf_event_unanswered(link.id, request.token, reason))
    kf_request_free(request)


cdef void close_link(sender_state* state, kf_link* link, int reason, int64_t detail,
                     double now) noexcept nogil:
    end_link(state, link, reason, detail, link.buffer, min(link.filled, <size_t>HEAD_BYTES), now)


cdef void close_failed(sender_state* state, kf_link* link, int error, double now) noexcept nogil:
    """Close a link whose read or write has failed: in the words of the layer that has failed, or
    with the errno.
    """
    cdef char words[KF_LINK_WORDS]
    cdef size_t size = min(kf_link_explain(link, words, KF_LINK_WORDS), <size_t>KF_LINK_WORDS - 1)
    if size > 0:
        end_link(state, link, KF_CLOSE_LAYER, error, <uint8_t*>words, size, now)
    else:
        close_link(state, link, KF_CLOSE_OS_ERROR, error, now)


cdef void end_link(sender_state* state, kf_link* link, int reason, int64_t detail,
                   const uint8_t* told, size_t size, double now) noexcept nogil:
    cdef kf_event* event = kf_event_new(KF_EVENT_LINK_CLOSED)
    cdef kf_link_closed* closed = &event.link_closed
    cdef kf_request* request = kf_link_abandon(link)
    cdef kf_request* following
    cdef kf_link** at = &state.links
    link.io.close(link.io.context)
    kf_link_trace(link, now, KF_TRACE_CLOSE)
    closed.link_id = link.id
    closed.reason = reason
    closed.detail = detail
    closed.awaited = 0 if request == NULL else request.kind
    kf_bytes_copy(&closed.head, told, size)
    while request != NULL:
        following = request.next
        end_request(state, link, request, reason)
        request = following
    kf_plane_event(state.plane, event)
    if state.plane.fetcher != NULL:
        stop_streams(state, link)
    lose_heartbeats(state, link, reason)
    if state.plane.producer != NULL:
        unroute(state, link, now)
    while at[0] != link:
        at = &at[0].next
    at[0] = link.next
    kf_link_free(link)


cdef bint send_up(sender_state* state, kf_link* link, int64_t token, const uint8_t* frame,
                  int64_t size) noexcept nogil:
    """Report the answer to a request of the control plane's own.

    False: there was no memory for it, and what is reported is that the link is gone.
    """
    cdef kf_event* event = kf_event_new(KF_EVENT_RAW_RESPONSE)
    cdef bint whole = kf_bytes_copy(&event.raw_response.frame, frame, size)
    event.raw_response.link_id = link.id
    event.raw_response.token = token
    kf_plane_event(state.plane, event)
    return whole


cdef bint handle_frame(sender_state* state, kf_link* link, const uint8_t* frame, int64_t size,
                       double now) noexcept nogil:
    """Take one whole frame. False: the link was closed."""
    cdef kf_reader reader = kf_reader_of(frame, size)
    cdef int32_t correlation_id = kf_read_i32(&reader)
    cdef kf_request* request = kf_link_answered(link, correlation_id, now)
    cdef bint understood = True
    cdef int64_t token
    if request == NULL:
        close_link(state, link, KF_CLOSE_CORRELATION, correlation_id, now)
        return False
    kf_count(&state.plane.stats.bytes_in, size + 4)
    kf_count(&link.node.bytes_in, size + 4)
    kf_histogram_add(&link.node.request_time, now - request.written_at, 1e-6)
    kf_histogram_add(&state.plane.stats.request_time, now - request.written_at, 1e-6)
    kf_link_trace_request(link, now, KF_TRACE_RECEIVED, request, size)
    if request.kind == KF_REQUEST_PRODUCE:
        understood = answer_produce(state, link, request, frame, size, now)
    elif request.kind == KF_REQUEST_FETCH:
        understood = handle_fetch(state, link, request, now)
    elif request.kind == KF_REQUEST_HEARTBEAT:
        token = handle_heartbeat(state, request, frame, size, now)
        if token != 0 and not send_up(state, link, token, frame, size):
            stop_heartbeats(state, request.token)  # the control plane starts them again
    else:
        send_up(state, link, request.token, frame, size)
    if not understood:
        # The request has left the window already. Put it back, so that its batches come back too.
        kf_link_queue(link, request, now)
        close_link(state, link, KF_CLOSE_BAD_RESPONSE, size, now)
        return False
    kf_request_free(request)
    return True


cdef void note_begun(kf_link* link, double now) noexcept nogil:
    """Remember when the first piece of a Fetch answer was there."""
    cdef kf_session* session = link.session
    if session != NULL and session.frame != NULL and session.begun_at == 0.0:
        session.begun_at = now


cdef bint receive(sender_state* state, kf_link* link, double now) noexcept nogil:
    """Read what is there and handle its whole frames; False: the link was closed.

    It stops after `READS_PER_STEP` reads, so that one fast link does not keep the others waiting.
    What is left is read in the next turn, because the link stays `readable`.
    """
    cdef const uint8_t* frame = NULL
    cdef int64_t size = 0
    cdef int error = 0
    cdef int got, whole
    cdef int _i
    for _i in range(READS_PER_STEP):
        if not link.readable:
            return True
        got = kf_link_read(link, &error)
        if got == 0:
            link.readable = False
            return True
        if got < 0:
            if got == -1:
                close_link(state, link, KF_CLOSE_EOF, 0, now)
            else:
                close_failed(state, link, error, now)
            return False
        while True:
            whole = kf_link_frame(link, state.plane.max_frame, &frame, &size)
            if whole < 0:
                close_link(state, link, KF_CLOSE_BAD_FRAME, size, now)
                return False
            if whole == 0:
                note_begun(link, now)
                break
            if not handle_frame(state, link, frame, size, now):
                return False
            kf_link_consume(link, size)
    return True


cdef bint flush_out(sender_state* state, kf_link* link, double now) noexcept nogil:
    cdef kf_request* ended = NULL
    cdef kf_request* following
    cdef kf_stats* stats = &state.plane.stats
    cdef int64_t bytes_before = link.bytes_out
    cdef int64_t requests_before = link.requests
    cdef int error = 0
    cdef bint fine = kf_link_write(link, now, &ended, &error)
    kf_count(&link.node.bytes_out, link.bytes_out - bytes_before)
    kf_count(&link.node.requests, link.requests - requests_before)
    kf_count(&stats.bytes_out, link.bytes_out - bytes_before)
    kf_count(&stats.requests, link.requests - requests_before)
    while ended != NULL:
        following = ended.next
        complete_unanswered(state, ended, now)
        kf_request_free(ended)
        ended = following
    if not fine:
        close_failed(state, link, error, now)
    return fine
