"""Heartbeats: requests that the data plane sends every period, whether Python runs or not.

The control plane gives the frame, the period and the answer that needs nobody. So a member of a
group survives a call that holds the GIL for minutes. But heartbeats end at `alive_until`, which
each `poll` of the user moves on: a member whose user is stuck is to leave the group. Any other
answer goes up, and the heartbeats go on: a rebalance that begins while Python cannot run must not
cost the membership.

    heartbeat ──► … heartbeat ──► request between ──► heartbeat …     one in flight at a time
      │               │             │
      nobody          goes up       goes up, under a token of its own

A heartbeat carries the epoch, or generation, that the coordinator told last. The data plane reads
that number out of the answers and writes it into the frame. A member of KIP-848 is told its epoch
and its period in any answer; a classic member is told its generation in the answer to JoinGroup,
which may come long after the request. Before a number is known no heartbeat is sent: the member
joins.

Whatever else a member sends goes between two heartbeats, so that neither overtakes the other. Such
a request may have been built before the control plane saw the latest answer. The data plane then
drops it, and the control plane builds it again from the new state.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.core._sender_state cimport find_link
from kafka_fast.dataplane.fetch.fetch cimport *
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    CORRELATION_SIZE = 4  # at the front of every answer
    EPOCH_SIZE = 4
    PACE_SIZE = 4  # heartbeat_interval_ms, behind the epoch in KIP-848's answers
    JOIN_GROUP = 11
    JOIN_GROUP_FIRST_THROTTLED = 2
    JOIN_GROUP_FIRST_FLEXIBLE = 6
    CONSUMER_GROUP_HEARTBEAT = 68

cdef double MIN_PERIOD = 0.01  # seconds; whatever a broker asks for
cdef int UNHEARD_MAX = 100  # answers that go up unheard before heartbeats become slower
cdef double SLOW_PERIOD = 5.0  # seconds between heartbeats then, as by Kafka's default
cdef double AT_ONCE = 1e-9  # as a deadline, where 0 is never


cdef kf_heartbeat** find_heartbeat(sender_state* state, int64_t token) noexcept nogil:
    """Return the pointer to the heartbeat in the list, or the NULL at its end."""
    cdef kf_heartbeat** at = &state.heartbeats
    while at[0] != NULL and at[0].token != token:
        at = &at[0].next
    return at


cdef void start_heartbeats(sender_state* state, kf_heartbeat* heartbeat,
                           double now) noexcept nogil:
    cdef kf_reader epoch
    stop_heartbeats(state, heartbeat.token)
    heartbeat.due += now
    if heartbeat.epoch_pos != 0:
        epoch = kf_reader_of(heartbeat.frame + heartbeat.epoch_pos, EPOCH_SIZE)
        heartbeat.silent = kf_read_i32(&epoch) <= 0
    heartbeat.next = state.heartbeats
    state.heartbeats = heartbeat


cdef void stop_heartbeats(sender_state* state, int64_t token) noexcept nogil:
    cdef kf_heartbeat** at = find_heartbeat(state, token)
    cdef kf_heartbeat* stopped = at[0]
    if stopped != NULL:
        at[0] = stopped.next
        kf_heartbeat_free(stopped)


cdef void stop_all_heartbeats(sender_state* state) noexcept nogil:
    while state.heartbeats != NULL:
        stop_heartbeats(state, state.heartbeats.token)


cdef void drop_between(kf_heartbeat* heartbeat) noexcept nogil:
    free(heartbeat.between)
    heartbeat.between = NULL


cdef void send_between(sender_state* state, kf_send_between* command) noexcept nogil:
    cdef kf_heartbeat* heartbeat = find_heartbeat(state, command.token)[0]
    if heartbeat == NULL or heartbeat.told != command.heard:
        return
    drop_between(heartbeat)
    heartbeat.unheard = 0
    heartbeat.between = command.frame
    heartbeat.between_size = command.frame_size
    heartbeat.between_token = command.own_token
    heartbeat.between_timeout = command.timeout
    command.frame = NULL


cdef double due_at(const kf_heartbeat* heartbeat) noexcept nogil:
    """Return when there is something to send."""
    if heartbeat.in_flight:
        return INFINITY
    if heartbeat.between != NULL:
        return 0.0
    return INFINITY if heartbeat.silent else heartbeat.due


cdef bint waits_at_gate(sender_state* state, const kf_heartbeat* heartbeat) noexcept nogil:
    """Return whether the link's login is being renewed."""
    cdef const kf_link* link = find_link(state, heartbeat.link_id)
    return link != NULL and link.gate != KF_GATE_OPEN


cdef bint send_frame(kf_link* link, int64_t token, const uint8_t* frame, size_t size,
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
    request.kind = KF_REQUEST_HEARTBEAT
    request.answered = True
    request.timeout = timeout
    request.token = token
    request.size = size
    request.piece_count = 1
    request.pieces[0].iov_base = request.framing
    request.pieces[0].iov_len = size
    kf_link_number(link, request)
    kf_link_queue(link, request, now)
    return True


cdef void send_next(kf_link* link, kf_heartbeat* heartbeat, double now) noexcept nogil:
    """Send the request between, if there is one, else the heartbeat."""
    heartbeat.between_in_flight = heartbeat.between != NULL
    if heartbeat.between_in_flight:
        heartbeat.in_flight = send_frame(link, heartbeat.token, heartbeat.between,
                                         heartbeat.between_size, heartbeat.between_timeout, now)
    else:
        heartbeat.in_flight = send_frame(link, heartbeat.token, heartbeat.frame,
                                         heartbeat.frame_size, heartbeat.timeout, now)
    if heartbeat.in_flight:
        drop_between(heartbeat)
        heartbeat.due = now + heartbeat.period


cdef void end_heartbeats(sender_state* state, kf_heartbeat** at, kf_event* event) noexcept nogil:
    """Report the end of the heartbeats as this event, and free what they were made of."""
    cdef kf_heartbeat* ended = at[0]
    at[0] = ended.next
    kf_heartbeat_free(ended)
    kf_plane_event(state.plane, event)


cdef void end_lost(sender_state* state, kf_heartbeat** at, int reason) noexcept nogil:
    """End heartbeats whose link is gone."""
    end_heartbeats(state, at, kf_event_unanswered(at[0].link_id, at[0].token, reason))


cdef void end_stuck(sender_state* state, kf_heartbeat** at) noexcept nogil:
    """End heartbeats of a user who is stuck."""
    cdef kf_event* event = kf_event_new(KF_EVENT_HEARTBEATS_ENDED)
    event.heartbeats_ended.link_id = at[0].link_id
    event.heartbeats_ended.token = at[0].token
    end_heartbeats(state, at, event)


cdef void send_heartbeats(sender_state* state, double now) noexcept nogil:
    cdef kf_heartbeat** at = &state.heartbeats
    cdef kf_link* link
    cdef bint is_over = at[0] != NULL and kf_plane_alive(state.plane) <= now
    while at[0] != NULL:
        if is_over:
            end_stuck(state, at)
            continue
        if due_at(at[0]) <= now:
            link = find_link(state, at[0].link_id)
            if link == NULL:
                end_lost(state, at, KF_CLOSE_BY_US)
                continue
            if link.gate == KF_GATE_OPEN:
                send_next(link, at[0], now)
                kf_count(&state.plane.stats.heartbeats, 1)
        at = &at[0].next


cdef void lose_heartbeats(sender_state* state, const kf_link* link, int reason) noexcept nogil:
    cdef kf_heartbeat** at = &state.heartbeats
    while at[0] != NULL:
        if at[0].link_id == link.id:
            end_lost(state, at, reason)
        else:
            at = &at[0].next


cdef bint has_heartbeats(const sender_state* state, int32_t link_id) noexcept nogil:
    cdef const kf_heartbeat* heartbeat = state.heartbeats
    while heartbeat != NULL and heartbeat.link_id != link_id:
        heartbeat = heartbeat.next
    return heartbeat != NULL


cdef double heartbeat_deadline(sender_state* state) noexcept nogil:
    cdef const kf_heartbeat* heartbeat = state.heartbeats
    cdef double until
    if heartbeat == NULL:
        return 0.0
    until = kf_plane_alive(state.plane)
    while heartbeat != NULL:
        if not waits_at_gate(state, heartbeat):
            until = min(until, max(due_at(heartbeat), AT_ONCE))
        heartbeat = heartbeat.next
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
    cdef bint is_heartbeat = api_key == CONSUMER_GROUP_HEARTBEAT
    if not is_heartbeat and api_key != JOIN_GROUP:
        return NULL
    if is_heartbeat or version >= JOIN_GROUP_FIRST_FLEXIBLE:
        kf_skip_tags(answer)
    if is_heartbeat or version >= JOIN_GROUP_FIRST_THROTTLED:
        kf_read_i32(answer)
    if kf_read_i16(answer) != 0:
        return NULL
    if not is_heartbeat:
        return kf_read_span(answer, EPOCH_SIZE)
    skip_text(answer)
    skip_text(answer)
    return kf_read_span(answer, EPOCH_SIZE + PACE_SIZE)


cdef void keep_pace(kf_heartbeat* heartbeat, const uint8_t* told, int32_t interval) noexcept nogil:
    """Expect the epoch and the interval that were told, and keep that interval."""
    cdef kf_reader expected = kf_reader_of(heartbeat.expected, heartbeat.expected_size)
    cdef const uint8_t* place = find_epoch(CONSUMER_GROUP_HEARTBEAT, 0, &expected)
    cdef double period = max(interval / 1000.0, MIN_PERIOD)
    if place != NULL:
        memcpy(heartbeat.expected + (place - heartbeat.expected), told, EPOCH_SIZE + PACE_SIZE)
    heartbeat.due += period - heartbeat.period
    heartbeat.period = period


cdef void learn_epoch(kf_heartbeat* heartbeat, const uint8_t* request,
                      kf_reader answer) noexcept nogil:
    """Go on under the epoch that the answer to a request tells."""
    cdef kf_reader header = kf_reader_of(request + KF_API_KEY_POS,
                                         KF_CORRELATION_POS - KF_API_KEY_POS)
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
        keep_pace(heartbeat, told, interval)
    memcpy(heartbeat.frame + heartbeat.epoch_pos, told, EPOCH_SIZE)
    heartbeat.silent = False


cdef int64_t handle_heartbeat(sender_state* state, const kf_request* request, const uint8_t* frame,
                              int64_t size, double now) noexcept nogil:
    cdef kf_heartbeat* heartbeat = find_heartbeat(state, request.token)[0]
    if heartbeat == NULL:
        return 0
    heartbeat.in_flight = False
    if (not heartbeat.between_in_flight
            and <size_t>size - CORRELATION_SIZE == heartbeat.expected_size
            and memcmp(frame + CORRELATION_SIZE, heartbeat.expected, heartbeat.expected_size) == 0):
        heartbeat.unheard = 0
        return 0
    if heartbeat.epoch_pos != 0:
        learn_epoch(heartbeat, request.framing,
                    kf_reader_of(frame + CORRELATION_SIZE, size - CORRELATION_SIZE))
    if heartbeat.between_in_flight:
        heartbeat.due = now + heartbeat.period
    heartbeat.told += 1
    heartbeat.unheard += 1
    if heartbeat.unheard > UNHEARD_MAX:
        heartbeat.due = max(heartbeat.due, now + SLOW_PERIOD)
    drop_between(heartbeat)
    return heartbeat.between_token if heartbeat.between_in_flight else heartbeat.token
