"""Frames that are sent again and again: heartbeats.

The control plane programs a frame, how often, and the answer that needs nobody. The data plane
sends it whether Python gets to run or not, so a member of a group survives a call that holds the
GIL for minutes; but only until the time that each `poll` of the user moves on: who is stuck is to
leave the group. Any other answer goes up, and the repetition goes on: a rebalance that begins while
Python cannot run must not cost the membership.

    frame ──► … frame ──► aside ──► frame …     one in flight at a time
      │         │           │
      nobody    goes up     goes up, under a token of its own

A heartbeat goes by the epoch, or generation, that the coordinator told last, so the data plane puts
it there: a member of KIP-848 is told one, and its pace, in any answer; a classic member in the
answer to JoinGroup, which may come long after that was sent. As long as none was told nothing is
repeated: the member joins.

What a member has to say goes *aside*, between two repeated frames. It was said by what the control
plane knew: if an answer is on its way up that it had not heard, that is dropped, to be said anew
after it. So neither overtakes the other, and there is no moment without a repetition.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane._lists cimport find_link
from kafka_fast.dataplane.fetch cimport *
from kafka_fast.dataplane.link cimport *
from kafka_fast.dataplane.state cimport *

cdef enum:
    API_KEY_POS = 4  # in every request: after its length
    CORRELATION_POS = 8  # after API key and version
    CORRELATION_SIZE = 4  # at the front of every answer
    EPOCH_SIZE = 4
    PACE_SIZE = 4  # heartbeat_interval_ms, behind the epoch in KIP-848's answers
    JOIN_GROUP = 11
    JOIN_GROUP_FIRST_THROTTLED = 2
    JOIN_GROUP_FIRST_FLEXIBLE = 6
    CONSUMER_GROUP_HEARTBEAT = 68

cdef double MIN_PERIOD = 0.01  # seconds; whatever a broker asks for
cdef int UNHEARD_MAX = 100  # answers that go up as fast as the coordinator asks for them
cdef double SLOW_PERIOD = 5.0  # then; Kafka's own, and few enough until max.poll.interval.ms
cdef double AT_ONCE = 1e-9  # as a deadline, where 0 is never


cdef kf_repeat** find_repeat(kf_fetcher* fetcher, int64_t token) noexcept nogil:
    """Return where the repetition is linked, or where NULL is."""
    cdef kf_repeat** at = &fetcher.repeats
    while at[0] != NULL and at[0].token != token:
        at = &at[0].next
    return at


cdef void add_repeat(kf_fetcher* fetcher, kf_repeat* repeat, double now) noexcept nogil:
    cdef kf_reader epoch
    stop_repeat(fetcher, repeat.token)
    repeat.due += now
    if repeat.epoch_pos != 0:
        epoch = kf_reader_of(repeat.frame + repeat.epoch_pos, EPOCH_SIZE)
        repeat.silent = kf_read_i32(&epoch) <= 0
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
    repeat.unheard = 0
    repeat.aside = command.bytes
    repeat.aside_size = command.size
    repeat.aside_token = command.serial
    repeat.aside_timeout = command.at
    command.bytes = NULL


cdef double due_at(const kf_repeat* repeat) noexcept nogil:
    """When there is something to send."""
    if repeat.in_flight:
        return INFINITY
    if repeat.aside != NULL:
        return 0.0
    return INFINITY if repeat.silent else repeat.due


cdef bint send_frame(kf_link* link, const kf_repeat* repeat, const uint8_t* frame, size_t size,
                     double timeout, double now) noexcept nogil:
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
    request.timeout = timeout
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
        repeat.in_flight = send_frame(link, repeat, repeat.aside, repeat.aside_size,
                                      repeat.aside_timeout, now)
    else:
        repeat.in_flight = send_frame(link, repeat, repeat.frame, repeat.frame_size,
                                      repeat.timeout, now)
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


cdef void skip_text(kf_reader* answer) noexcept nogil:
    """Skip a compact string, which may be null."""
    cdef uint32_t size = kf_read_uvarint(answer)
    if size > 1:
        kf_read_span(answer, <int64_t>size - 1)


cdef const uint8_t* find_epoch(int api_key, int version, kf_reader* answer) noexcept nogil:
    """Return where an answer tells epoch and pace, or generation; NULL: an error, or it does not.

    The reader stands behind the correlation id. ConsumerGroupHeartbeat 0 and 1: header tags,
    throttle_time_ms, error_code, error_message, member_id, member_epoch, heartbeat_interval_ms.
    JoinGroup: header tags (6+), throttle_time_ms (2+), error_code, generation_id.
    """
    cdef bint is_beat = api_key == CONSUMER_GROUP_HEARTBEAT
    if not is_beat and api_key != JOIN_GROUP:
        return NULL
    if is_beat or version >= JOIN_GROUP_FIRST_FLEXIBLE:
        kf_skip_tags(answer)
    if is_beat or version >= JOIN_GROUP_FIRST_THROTTLED:
        kf_read_i32(answer)
    if kf_read_i16(answer) != 0:
        return NULL
    if not is_beat:
        return kf_read_span(answer, EPOCH_SIZE)
    skip_text(answer)
    skip_text(answer)
    return kf_read_span(answer, EPOCH_SIZE + PACE_SIZE)


cdef void keep_pace(kf_repeat* repeat, const uint8_t* told, int32_t interval) noexcept nogil:
    """Expect the epoch and the interval that were told, and repeat as often."""
    cdef kf_reader expected = kf_reader_of(repeat.expected, repeat.expected_size)
    cdef const uint8_t* place = find_epoch(CONSUMER_GROUP_HEARTBEAT, 0, &expected)
    cdef double period = max(interval / 1000.0, MIN_PERIOD)
    if place != NULL:
        memcpy(repeat.expected + (place - repeat.expected), told, EPOCH_SIZE + PACE_SIZE)
    repeat.due += period - repeat.period
    repeat.period = period


cdef void learn_epoch(kf_repeat* repeat, const uint8_t* request, kf_reader answer) noexcept nogil:
    """Go on under the epoch that the answer to a request tells."""
    cdef kf_reader header = kf_reader_of(request + API_KEY_POS, CORRELATION_POS - API_KEY_POS)
    cdef int api_key = kf_read_i16(&header)
    cdef int version = kf_read_i16(&header)
    cdef bint joins = api_key == JOIN_GROUP
    cdef const uint8_t* told = find_epoch(api_key, version, &answer)
    cdef kf_reader numbers
    cdef int32_t epoch, interval
    if told == NULL:
        return
    numbers = kf_reader_of(told, EPOCH_SIZE if joins else EPOCH_SIZE + PACE_SIZE)
    epoch = kf_read_i32(&numbers)
    interval = kf_read_i32(&numbers)
    if epoch < 0 if joins else (epoch <= 0 or interval <= 0):
        return
    if not joins:
        keep_pace(repeat, told, interval)
    memcpy(repeat.frame + repeat.epoch_pos, told, EPOCH_SIZE)
    repeat.silent = False


cdef int64_t handle_repeat(kf_fetcher* fetcher, const kf_request* request, const uint8_t* frame,
                           int64_t size, double now) noexcept nogil:
    cdef kf_repeat* repeat = find_repeat(fetcher, request.token)[0]
    if repeat == NULL:
        return 0
    repeat.in_flight = False
    if (not repeat.aside_in_flight
            and <size_t>size - CORRELATION_SIZE == repeat.expected_size
            and memcmp(frame + CORRELATION_SIZE, repeat.expected, repeat.expected_size) == 0):
        repeat.unheard = 0
        return 0
    if repeat.epoch_pos != 0:
        learn_epoch(repeat, request.framing,
                    kf_reader_of(frame + CORRELATION_SIZE, size - CORRELATION_SIZE))
    if repeat.aside_in_flight:
        repeat.due = now + repeat.period
    repeat.told += 1
    repeat.unheard += 1
    if repeat.unheard > UNHEARD_MAX:
        repeat.due = max(repeat.due, now + SLOW_PERIOD)
    drop_aside(repeat)
    return repeat.aside_token if repeat.aside_in_flight else repeat.token
