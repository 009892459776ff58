"""When to fetch: one Fetch in flight for each link, while there is room.

    room in the budget ── reserve ──► request ── answer ──► chunks ── read by the user ──► room
                             │ none: the budget wakes the data plane when there is

Each link has a share of the budget. It asks for a piece of its share, so that the next frame is
fetched while one is read, or for what its streams may bring if that is less. A small frame is still
in the processor's caches when it is read. So pieces are small, and grow only where the broker is
far away. A link waits until at least half of what it would ask for is free, because many small
fetches cost more than they bring. Streams that are paused or not read may hold the whole budget,
and the user may wait for others. So a link none of whose streams has anything unread may always ask
for `max.partition.fetch.bytes`.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.stdint cimport INT32_MAX, int32_t

from kafka_fast.dataplane.fetch._fetch_answer cimport answer_fetch, fetch_outcome
from kafka_fast.dataplane.fetch._fetch_request cimport build_fetch, gather_streams
from kafka_fast.dataplane.core._sender_state cimport throttle
from kafka_fast.dataplane.fetch.fetch cimport *
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    PIECES = 8  # of a link's share of the budget, at the least; one for each Fetch

cdef double NEAR = 0.004  # seconds; a broker that begins to answer within them is near by
cdef double AT_ONCE = 0.01  # seconds; an empty answer that takes longer has waited for records
cdef double BACK_OFF_MIN = 0.001
cdef double BACK_OFF_MAX = 0.05


# ---- streams and links ----

cdef void move_stream(kf_stream* stream, kf_link* link) noexcept nogil:
    if stream.link != NULL:
        stream.link.session.routed -= 1
    stream.link = link
    if link != NULL:
        link.session.routed += 1


cdef void add_row(kf_event* event, const kf_stream* stream) noexcept nogil:
    cdef kf_stream_row* row = kf_append_stream_row(&event.streams_stopped.rows)
    row.stream_id = stream.id
    row.generation = stream.generation
    row.fetch_position = stream.position
    row.last_epoch = stream.last_epoch


cdef void report_stopped(sender_state* state, kf_stream* stream) noexcept nogil:
    cdef kf_event* event = kf_event_new(KF_EVENT_STREAMS_STOPPED)
    add_row(event, stream)
    kf_plane_event(state.plane, event)


cdef void stop_streams(sender_state* state, kf_link* link) noexcept nogil:
    cdef kf_event* event = NULL
    cdef kf_stream* stream = state.plane.fetcher.streams
    while stream != NULL:
        if stream.link == link:
            move_stream(stream, NULL)
            if not stream.frozen:  # else it was reported by the punt
                if event == NULL:
                    event = kf_event_new(KF_EVENT_STREAMS_STOPPED)
                add_row(event, stream)
        stream = stream.next
    if event != NULL:
        kf_plane_event(state.plane, event)


cdef void end_fetch(sender_state* state, kf_link* link) noexcept nogil:
    cdef kf_session* session = link.session
    session.in_flight = False
    kf_budget_return(state.plane.fetcher.budget, session.reserved)
    session.reserved = 0


cdef void install_successor(kf_link* link) noexcept nogil:
    """Let a session that was programmed while a Fetch was in flight take over.

    It begins with a full request under the old session's id, so the broker forgets the old session.
    """
    cdef kf_session* old = link.session
    cdef kf_session* new = old.successor
    new.routed = old.routed
    new.id = old.id
    new.piece = old.piece
    old.successor = NULL
    link.session = new
    kf_session_free(old)


# ---- room ----

cdef int32_t count_fetching(const sender_state* state) noexcept nogil:
    """Return how many links share the budget."""
    cdef kf_link* link = state.links
    cdef int32_t count = 0
    while link != NULL:
        count += link.session != NULL and link.session.routed > 0
        link = link.next
    return count


cdef bint is_hungry(const kf_fetcher* fetcher, int32_t count) noexcept nogil:
    """Return whether the user has nothing left to read of the gathered streams."""
    cdef int32_t i
    for i in range(count):
        if kf_get_long(&fetcher.scratch[i].unread) > 0:
            return False
    return True


cdef size_t reserve(sender_state* state, const kf_session* session, int32_t count) noexcept nogil:
    """Reserve what the next Fetch for `count` gathered streams may bring; 0: there is no room."""
    cdef kf_fetcher* fetcher = state.plane.fetcher
    cdef size_t share = fetcher.budget.limit // <size_t>max(1, count_fetching(state))
    cdef size_t piece = max(min(session.piece, share // PIECES),
                            min(share, fetcher.partition_max_bytes))
    cdef size_t whole = <size_t>count * fetcher.partition_max_bytes
    cdef size_t most = min(min(whole, piece), min(fetcher.max_bytes, <size_t>INT32_MAX))
    cdef size_t one = min(most, fetcher.partition_max_bytes)
    cdef size_t had = kf_budget_reserve(fetcher.budget, most, max(one, most // 2), False)
    if had == 0 and is_hungry(fetcher, count):
        kf_count(&fetcher.stats.overdrafts, 1)
        had = kf_budget_reserve(fetcher.budget, 0, one, True)
    return had


# ---- a turn ----

cdef double fetch_deadline(const kf_link* link) noexcept nogil:
    cdef const kf_session* session = link.session
    if (session == NULL or session.in_flight or session.routed == 0
            or link.gate != KF_GATE_OPEN):
        return 0.0
    return max(session.not_before, link.throttled_until)


cdef void fetch(sender_state* state, kf_link* link, double now) noexcept nogil:
    cdef kf_fetcher* fetcher = state.plane.fetcher
    cdef kf_session* session = link.session
    cdef kf_request* request
    cdef int32_t count
    cdef size_t room
    if session == NULL or session.in_flight or link.gate != KF_GATE_OPEN:
        return
    if session.successor != NULL:
        install_successor(link)
        session = link.session
    if session.routed == 0 or now < session.not_before or now < link.throttled_until:
        return
    count = gather_streams(fetcher, link)
    if count <= 0:
        return
    room = reserve(state, session, count)
    if room == 0:
        return
    request = build_fetch(state, link, count, <int32_t>room)
    if request == NULL:
        kf_budget_return(fetcher.budget, room)
        session.not_before = now + BACK_OFF_MAX  # out of memory: look again
        return
    session.reserved = room
    session.in_flight = True
    session.begun_at = 0.0
    kf_count(&fetcher.stats.fetches, 1)
    kf_count(&fetcher.stats.full_fetches, session.full)
    kf_link_queue(link, request, now)


cdef void fit_piece(const kf_fetcher* fetcher, kf_session* session,
                    double asked_at) noexcept nogil:
    """Ask for larger pieces from a broker that is far away, and for smaller ones from a near one.

    Pieces grow slowly and shrink fast, because a near broker may be late now and then. An answer
    that brings little, or comes all at once, tells nothing of the distance.
    """
    cdef size_t most = max(fetcher.budget.limit // PIECES, <size_t>KF_PIECE_MIN)
    if session.begun_at == 0.0 or session.frame.size < session.reserved // 2:
        return
    if session.begun_at - asked_at <= NEAR:
        session.piece = max(session.piece // 2, <size_t>KF_PIECE_MIN)
    else:
        session.piece = min(session.piece + session.piece // 8, most)


cdef void pace(kf_session* session, const fetch_outcome* outcome, double elapsed,
               double now) noexcept nogil:
    """Wait before the next Fetch if the broker brought nothing and answered at once."""
    if outcome.brought or elapsed >= AT_ONCE:
        session.back_off = 0.0
        return
    session.back_off = min(BACK_OFF_MAX, max(BACK_OFF_MIN, 2 * session.back_off))
    session.not_before = now + session.back_off


cdef bint handle_fetch(sender_state* state, kf_link* link, const kf_request* request,
                       double now) noexcept nogil:
    cdef kf_session* session = link.session
    cdef fetch_outcome outcome
    cdef bint understood = answer_fetch(state, link, session.frame, &outcome)
    fit_piece(state.plane.fetcher, session, request.written_at)
    end_fetch(state, link)
    if not understood:
        return False
    kf_count(&state.plane.fetcher.stats.empty_answers, not outcome.brought)
    pace(session, &outcome, now - request.written_at, now)
    throttle(state, link, outcome.throttle_ms, now)
    return True
