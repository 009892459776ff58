"""Frames that are sent again and again: heartbeats.

The control plane programs a frame, how often, and the answer that needs nobody. The data plane
sends it whether Python gets to run or not, so a member of a group survives a call that holds the
GIL for minutes; but only until the time that each `poll` of the user moves on: who is stuck is to
leave the group. Any other answer goes up, and the repetition goes on: a rebalance that begins while
Python cannot run must not cost the membership.

    frame ──► … frame ──► aside ──► frame …     one in flight at a time
      │         │           │
      nobody    goes up     goes up, under a token of its own

A member of KIP-848 names in each heartbeat the epoch that the last answer told, so the data plane
takes it, and the pace, out of each answer without an error. What such a member has to say goes
*aside*, between two repeated frames. It was said under the epoch that the control plane knew: if an
answer is on its way up that the control plane had not heard, it is dropped, and said anew after
that. So neither overtakes the other, and there is no moment without a repetition. As long as no
epoch was told, nothing is repeated: the member joins.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane._lists cimport find_link
from kafka_fast.dataplane.fetch cimport *
from kafka_fast.dataplane.link cimport *
from kafka_fast.dataplane.state cimport *

cdef enum:
    CORRELATION_POS = 8  # in every request: after length, API key and version
    CORRELATION_SIZE = 4  # at the front of every answer
    EPOCH_SIZE = 4
    PACE_SIZE = 4  # heartbeat_interval_ms, behind the epoch in an answer

cdef double MIN_PERIOD = 0.01  # seconds; whatever a broker asks for
cdef double AT_ONCE = 1e-9  # as a deadline, where 0 is never


cdef kf_repeat** find_repeat(kf_fetcher* fetcher, int64_t token) noexcept nogil:
    """Return where the repetition is linked, or where NULL is."""
    cdef kf_repeat** at = &fetcher.repeats
    while at[0] != NULL and at[0].token != token:
        at = &at[0].next
    return at


cdef void add_repeat(kf_fetcher* fetcher, kf_repeat* repeat, double now) noexcept nogil:
    stop_repeat(fetcher, repeat.token)
    repeat.due += now
    repeat.next = fetcher.repeats
    fetcher.repeats = repeat


cdef void stop_repeat(kf_fetcher* fetcher, int64_t token) noexcept nogil:
    cdef kf_repeat** at = find_repeat(fetcher, token)
    cdef kf_repeat* stopped = at[0]
    if stopped != NULL:
        at[0] = stopped.next
        kf_repeat_free(stopped)


cdef void drop_aside(kf_repeat* repeat) noexcept nogil:
    free(repeat.aside)
    repeat.aside = NULL


cdef void interject(kf_fetcher* fetcher, kf_command* command) noexcept nogil:
    cdef kf_repeat* repeat = find_repeat(fetcher, command.token)[0]
    if repeat == NULL or repeat.told != command.generation:
        return
    drop_aside(repeat)
    repeat.aside = command.bytes
    repeat.aside_size = command.size
    repeat.aside_token = command.serial
    command.bytes = NULL


cdef bint is_silent(const kf_repeat* repeat) noexcept nogil:
    """Whether nothing is repeated yet: no answer has told an epoch."""
    cdef kf_reader reader
    if repeat.epoch_pos == 0:
        return False
    reader = kf_reader_of(repeat.frame + repeat.epoch_pos, EPOCH_SIZE)
    return kf_read_i32(&reader) <= 0


cdef double due_at(const kf_repeat* repeat) noexcept nogil:
    """When there is something to send."""
    if repeat.in_flight:
        return INFINITY
    if repeat.aside != NULL:
        return 0.0
    return INFINITY if is_silent(repeat) else repeat.due


cdef bint send_frame(kf_link* link, const kf_repeat* repeat, const uint8_t* frame, size_t size,
                     double now) noexcept nogil:
    """Queue a copy of a frame. False: out of memory."""
    cdef kf_request* request = <kf_request*>calloc(1, sizeof(kf_request))
    if request == NULL:
        return False
    request.framing = <uint8_t*>malloc(size)
    request.pieces = <iovec*>malloc(sizeof(iovec))
    if request.framing == NULL or request.pieces == NULL:
        kf_request_free(request)
        return False
    memcpy(request.framing, frame, size)
    request.kind = KF_REQUEST_REPEAT
    request.correlation_id = link.next_correlation_id
    link.next_correlation_id = (link.next_correlation_id + 1) & 0x7FFFFFFF
    request.answered = True
    request.timeout = repeat.timeout
    request.token = repeat.token
    request.size = size
    request.piece_count = 1
    request.pieces[0].iov_base = request.framing
    request.pieces[0].iov_len = size
    kf_put_i32(request.framing + CORRELATION_POS, request.correlation_id)
    kf_link_queue(link, request, now)
    return True


cdef void send_next(kf_link* link, kf_repeat* repeat, double now) noexcept nogil:
    """Send what goes aside, or else the frame once more."""
    repeat.aside_in_flight = repeat.aside != NULL
    if repeat.aside_in_flight:
        repeat.in_flight = send_frame(link, repeat, repeat.aside, repeat.aside_size, now)
    else:
        repeat.in_flight = send_frame(link, repeat, repeat.frame, repeat.frame_size, now)
    if repeat.in_flight:
        drop_aside(repeat)
        repeat.due = now + repeat.period


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
        if due_at(at[0]) <= now:
            link = find_link(state, at[0].link_id)
            if link == NULL:
                end_repeat(state, at, KF_EVENT_RESPONSE, KF_CLOSE_BY_US)
                continue
            send_next(link, at[0], now)
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
        until = min(until, max(due_at(repeat), AT_ONCE))
        repeat = repeat.next
    return until


cdef const uint8_t* find_epoch(kf_reader* answer) noexcept nogil:
    """Return where a ConsumerGroupHeartbeat answer tells epoch and pace; NULL: an error, or none.

    The reader stands behind the correlation id. (header tags, throttle_time_ms, error_code,
    error_message, member_id, member_epoch, heartbeat_interval_ms, ...; versions 0 and 1.)
    """
    cdef int field
    cdef uint32_t size
    kf_skip_tags(answer)
    kf_read_i32(answer)
    if kf_read_i16(answer) != 0:
        return NULL
    for field in range(2):
        size = kf_read_uvarint(answer)
        if size > 1:
            kf_read_span(answer, <int64_t>size - 1)
    return kf_read_span(answer, EPOCH_SIZE + PACE_SIZE)


cdef void learn_epoch(kf_repeat* repeat, kf_reader answer) noexcept nogil:
    """Go on under the epoch and at the pace that an answer tells."""
    cdef kf_reader expected = kf_reader_of(repeat.expected, repeat.expected_size)
    cdef const uint8_t* told = find_epoch(&answer)
    cdef const uint8_t* place = find_epoch(&expected)
    cdef kf_reader numbers
    cdef int32_t epoch, interval
    cdef double period
    if told == NULL or place == NULL:
        return
    numbers = kf_reader_of(told, EPOCH_SIZE + PACE_SIZE)
    epoch = kf_read_i32(&numbers)
    interval = kf_read_i32(&numbers)
    if epoch <= 0 or interval <= 0:
        return
    memcpy(repeat.frame + repeat.epoch_pos, told, EPOCH_SIZE)
    memcpy(repeat.expected + (place - repeat.expected), told, EPOCH_SIZE + PACE_SIZE)
    period = max(interval / 1000.0, MIN_PERIOD)
    repeat.due += period - repeat.period
    repeat.period = period


cdef void handle_repeat(sender_state* state, const kf_link* link, const kf_request* request,
                        const uint8_t* frame, int64_t size) noexcept nogil:
    cdef kf_repeat* repeat = find_repeat(state.plane.fetcher, request.token)[0]
    cdef kf_event* event
    if repeat == NULL:
        return
    repeat.in_flight = False
    if (not repeat.aside_in_flight
            and <size_t>size - CORRELATION_SIZE == repeat.expected_size
            and memcmp(frame + CORRELATION_SIZE, repeat.expected, repeat.expected_size) == 0):
        return
    if repeat.epoch_pos != 0:
        learn_epoch(repeat, kf_reader_of(frame + CORRELATION_SIZE, size - CORRELATION_SIZE))
    event = kf_event_new(KF_EVENT_RESPONSE, link.id)
    event.token = repeat.aside_token if repeat.aside_in_flight else repeat.token
    event.bytes = <uint8_t*>malloc(size)
    if event.bytes != NULL:
        memcpy(event.bytes, frame, size)
        event.size = size
    repeat.told += 1
    drop_aside(repeat)
    kf_plane_event(state.plane, event)
