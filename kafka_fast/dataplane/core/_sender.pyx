"""The sender: one turn of the data plane.

    commands ─► read answers ─► heartbeats ─► produce side: inbox, overdue, drain ─► write
                                              fetch side: fetch for streams

Thread: data plane; in a simulation, whoever calls `turn_plane`. Takes no GIL, calls no clock.
"""

from libc.string cimport memset

from kafka_fast.dataplane.core._dispatch cimport carry_out_commands
from kafka_fast.dataplane.produce._drain cimport drain, may_drain
from kafka_fast.dataplane.fetch._fetcher cimport fetch, fetch_deadline
from kafka_fast.dataplane.core._heartbeats cimport (
    has_heartbeats,
    heartbeat_deadline,
    send_heartbeats,
    stop_all_heartbeats,
)
from kafka_fast.dataplane.core._links cimport close_link, flush_out, receive
from kafka_fast.dataplane.produce._lists cimport ask_for_routes
from kafka_fast.dataplane.produce._outcomes cimport expire, read_inbox
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *


cdef double idle_deadline(sender_state* state, const kf_link* link) noexcept nogil:
    """Return when the link will have been idle for connections.max.idle.ms; 0: never.

    A link that waits for the next heartbeat is not idle.
    """
    if (state.plane.max_idle <= 0.0 or link.first != NULL or link.ready != NULL
            or link.lingering != NULL or link.gate != KF_GATE_OPEN
            or (link.session != NULL and link.session.routed > 0)
            or has_heartbeats(state, link.id)):
        return 0.0
    return link.last_used + state.plane.max_idle


cdef double DEAF_AT_MOST = 0.05  # seconds
cdef double AT_ONCE = 1e-9  # as a time, where 0 is never


cdef double sooner(double one, double other) noexcept nogil:
    """Return the earlier of two times, where 0 is never."""
    if one == 0.0:
        return other
    return one if other == 0.0 or one < other else other


cdef int link_wake_level(const kf_producer* producer, const kf_link* link,
                         double now) noexcept nogil:
    """Return who may end the sleep on this link's behalf."""
    if link.produce_in_flight >= producer.max_in_flight:
        return KF_WAKE_NOBODY
    if now < link.throttled_until or link.gate != KF_GATE_OPEN:
        return KF_WAKE_OPENED  # both can last long, and a record may be for another link
    if link.ready != NULL and now < link.paced_until:
        return KF_WAKE_FULL
    if link.lingering != NULL and link.lingering.due <= now + producer.linger:
        return KF_WAKE_SENDABLE
    return KF_WAKE_OPENED


cdef double plan_produce(sender_state* state, double now) noexcept nogil:
    """Return when there is something to produce, and note who may end the sleep before."""
    cdef const kf_producer* producer = state.plane.producer
    cdef kf_link* link = state.links
    cdef double until = producer.next_overdue
    cdef int level
    state.wake_level = KF_WAKE_OPENED if link == NULL else KF_WAKE_NOBODY
    while link != NULL:
        level = link_wake_level(producer, link, now)
        state.wake_level = max(level, state.wake_level)
        if link.lingering != NULL and level != KF_WAKE_NOBODY:
            until = sooner(until, link.lingering.due)
        if (link.ready != NULL and link.gate == KF_GATE_OPEN
                and link.produce_in_flight < producer.max_in_flight):
            if now < link.throttled_until:
                until = sooner(until, link.throttled_until)
            elif now < link.paced_until:
                until = sooner(until, link.paced_until)
            elif producer.acks_zero and may_drain(state, link, now):
                until = AT_ONCE  # written requests have ended: the window has room again
        link = link.next
    if state.wake_level == KF_WAKE_NOBODY:
        # Nobody wakes a data plane whose windows are all full, not even the first record of a
        # partition that has no link yet: look for one now and then.
        until = sooner(until, now + DEAF_AT_MOST)
    return until


cdef double plan_sleep(sender_state* state, double now) noexcept nogil:
    """Return when to turn again, and note who may end the sleep before."""
    cdef kf_link* link = state.links
    cdef double until = heartbeat_deadline(state)
    while link != NULL:
        if kf_link_pending(link):
            link.readable = True
            until = AT_ONCE
        until = sooner(until, kf_link_deadline(link))
        until = sooner(until, idle_deadline(state, link))
        if link.gate == KF_GATE_OPEN:
            until = sooner(until, link.gate_until)
        elif link.gate == KF_GATE_SHUT and link.first == NULL:
            until = AT_ONCE  # the last request was written, and expects no answer
        if fetch_deadline(link) > now:
            until = sooner(until, fetch_deadline(link))
        link = link.next
    if state.plane.producer != NULL:
        until = sooner(until, plan_produce(state, now))
    return until


cdef void shut_gate(sender_state* state, kf_link* link, double now) noexcept nogil:
    """Let nothing new pass from now on; tell the control plane once nothing is in flight."""
    cdef kf_event* event
    if link.gate == KF_GATE_OPEN:
        link.gate = KF_GATE_SHUT
        link.used_before = link.last_used
        kf_link_trace(link, now, KF_TRACE_GATE_SHUT)
    if link.first == NULL:
        link.gate = KF_GATE_TOLD
        link.gate_until = 0.0
        event = kf_event_new(KF_EVENT_GATE_SHUT)
        event.gate_shut.link_id = link.id
        kf_plane_event(state.plane, event)


cdef void sender_init(sender_state* state, kf_plane* plane) noexcept nogil:
    memset(state, 0, sizeof(sender_state))
    state.plane = plane


cdef void sender_destroy(sender_state* state) noexcept nogil:
    if state.plane.producer != NULL:
        kf_producer_close(state.plane.producer)
    carry_out_commands(state, 0.0)  # so that a link added after the last turn is closed as well
    while state.links != NULL:
        close_link(state, state.links, KF_CLOSE_BY_US, 0, 0.0)
    stop_all_heartbeats(state)
    if state.plane.producer != NULL:
        kf_producer_fail_all(state.plane.producer)


cdef double turn_plane(sender_state* state, double now) noexcept nogil:
    cdef bint produces = state.plane.producer != NULL
    cdef bint fetches = state.plane.fetcher != NULL
    cdef kf_link* link
    cdef kf_link* following
    carry_out_commands(state, now)
    link = state.links
    while link != NULL:
        following = link.next
        if kf_link_deadline(link) != 0.0 and kf_link_deadline(link) <= now:
            close_link(state, link, KF_CLOSE_TIMEOUT, 0, now)
        elif 0.0 < idle_deadline(state, link) <= now:
            close_link(state, link, KF_CLOSE_IDLE, 0, now)
        elif receive(state, link, now) and 0.0 < link.gate_until <= now:
            shut_gate(state, link, now)
        link = following
    if produces:
        read_inbox(state, now)
        expire(state, now)
    send_heartbeats(state, now)
    link = state.links
    while link != NULL:
        following = link.next
        if produces:
            drain(state, link, now)
        if fetches:
            fetch(state, link, now)
        if link.unwritten != NULL:
            flush_out(state, link, now)
        link = following
    if produces:
        ask_for_routes(state)
    return plan_sleep(state, now)
