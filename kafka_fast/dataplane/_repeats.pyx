"""Frames that are sent again and again: heartbeats.

The control plane programs a frame, how often, and the answer that needs nobody. The data plane
sends it whether Python gets to run or not, so a member of a group survives a call that holds the
GIL for minutes; but only until the time that each `poll` of the user moves on: who is stuck is to
leave the group. Any other answer, and the end of the link, goes up and ends the repetition.

Some heartbeats say more than that a member lives, and must not overtake or be overtaken by those
that are repeated: a repetition that is *recalled* ends with its next answer, whatever that says.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, malloc
from libc.string cimport memcmp, memcpy

from kafka_fast._wire.layout cimport kf_put_i32
from kafka_fast.dataplane._lists cimport find_link
from kafka_fast.dataplane.fetch cimport *
from kafka_fast.dataplane.link cimport *
from kafka_fast.dataplane.state cimport *

cdef enum:
    CORRELATION_POS = 8  # in every request: after length, API key and version
    CORRELATION_SIZE = 4  # at the front of every answer


cdef kf_repeat** find_repeat(kf_fetcher* fetcher, int64_t token) noexcept nogil:
    """Return where the repetition is linked, or where NULL is."""
    cdef kf_repeat** at = &fetcher.repeats
    while at[0] != NULL and at[0].token != token:
        at = &at[0].next
    return at


cdef void add_repeat(kf_fetcher* fetcher, kf_repeat* repeat, double now) noexcept nogil:
    stop_repeat(fetcher, repeat.token)
    repeat.due = now + repeat.delay
    repeat.next = fetcher.repeats
    fetcher.repeats = repeat


cdef void stop_repeat(kf_fetcher* fetcher, int64_t token) noexcept nogil:
    cdef kf_repeat** at = find_repeat(fetcher, token)
    cdef kf_repeat* stopped = at[0]
    if stopped != NULL:
        at[0] = stopped.next
        kf_repeat_free(stopped)


cdef void recall_repeat(kf_fetcher* fetcher, int64_t token, double now) noexcept nogil:
    cdef kf_repeat* recalled = find_repeat(fetcher, token)[0]
    if recalled != NULL:
        recalled.recalled = True
        recalled.due = now


cdef bint send_repeat(kf_link* link, kf_repeat* repeat, double now) noexcept nogil:
    """Queue the frame once more. False: out of memory."""
    cdef kf_request* request = <kf_request*>calloc(1, sizeof(kf_request))
    if request == NULL:
        return False
    request.framing = <uint8_t*>malloc(repeat.frame_size)
    request.pieces = <iovec*>malloc(sizeof(iovec))
    if request.framing == NULL or request.pieces == NULL:
        kf_request_free(request)
        return False
    memcpy(request.framing, repeat.frame, repeat.frame_size)
    request.kind = KF_REQUEST_REPEAT
    request.correlation_id = link.next_correlation_id
    link.next_correlation_id = (link.next_correlation_id + 1) & 0x7FFFFFFF
    request.answered = True
    request.timeout = repeat.timeout
    request.token = repeat.token
    request.size = repeat.frame_size
    request.piece_count = 1
    request.pieces[0].iov_base = request.framing
    request.pieces[0].iov_len = request.size
    kf_put_i32(request.framing + CORRELATION_POS, request.correlation_id)
    kf_link_queue(link, request, now)
    return True


cdef void end_repeat(sender_state* state, kf_repeat** at, int kind, int code) noexcept nogil:
    """Report the end of a repetition, and free it."""
    cdef kf_repeat* ended = at[0]
    cdef kf_event* event = kf_event_new(kind, ended.link_id)
    event.token = ended.token
    event.code = code
    at[0] = ended.next
    kf_repeat_free(ended)
    kf_plane_event(state.plane, event)


cdef void send_repeats(sender_state* state, double now) noexcept nogil:
    cdef kf_fetcher* fetcher = state.plane.fetcher
    cdef kf_repeat** at = &fetcher.repeats
    cdef kf_link* link
    cdef bint is_over = at[0] != NULL and kf_fetcher_alive(fetcher) <= now
    while at[0] != NULL:
        if is_over:
            end_repeat(state, at, KF_EVENT_REPEAT_ENDED, 0)
            continue
        if not at[0].in_flight and at[0].due <= now:
            link = find_link(state, at[0].link_id)
            if link == NULL:
                end_repeat(state, at, KF_EVENT_RESPONSE, KF_CLOSE_BY_US)
                continue
            at[0].in_flight = send_repeat(link, at[0], now)
            at[0].due = now + at[0].period
            kf_count(&fetcher.stats.repeats, 1)
        at = &at[0].next


cdef void lose_repeats(sender_state* state, const kf_link* link, int reason) noexcept nogil:
    cdef kf_repeat** at = &state.plane.fetcher.repeats
    while at[0] != NULL:
        if at[0].link_id == link.id:
            end_repeat(state, at, KF_EVENT_RESPONSE, reason)
        else:
            at = &at[0].next


cdef bint has_repeat(const kf_fetcher* fetcher, int32_t link_id) noexcept nogil:
    cdef const kf_repeat* repeat = fetcher.repeats if fetcher != NULL else NULL
    while repeat != NULL and repeat.link_id != link_id:
        repeat = repeat.next
    return repeat != NULL


cdef double repeat_deadline(kf_fetcher* fetcher) noexcept nogil:
    cdef kf_repeat* repeat = fetcher.repeats
    cdef double until
    if repeat == NULL:
        return 0.0
    until = kf_fetcher_alive(fetcher)
    while repeat != NULL:
        if not repeat.in_flight:
            until = min(until, repeat.due)
        repeat = repeat.next
    return until


cdef void handle_repeat(sender_state* state, const kf_link* link, const kf_request* request,
                        const uint8_t* frame, int64_t size) noexcept nogil:
    cdef kf_repeat** at = find_repeat(state.plane.fetcher, request.token)
    cdef kf_repeat* repeat = at[0]
    cdef kf_event* event
    if repeat == NULL:
        return
    repeat.in_flight = False
    if (not repeat.recalled
            and <size_t>size - CORRELATION_SIZE == repeat.expected_size
            and memcmp(frame + CORRELATION_SIZE, repeat.expected, repeat.expected_size) == 0):
        return
    event = kf_event_new(KF_EVENT_RESPONSE, link.id)
    event.token = request.token
    event.bytes = <uint8_t*>malloc(size)
    if event.bytes != NULL:
        memcpy(event.bytes, frame, size)
        event.size = size
    at[0] = repeat.next
    kf_repeat_free(repeat)
    kf_plane_event(state.plane, event)
