"""Commands of the transport: the control plane's decisions, carried out between two turns.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from kafka_fast.dataplane.core._heartbeats cimport send_between, start_heartbeats, stop_heartbeats
from kafka_fast.dataplane.core._links cimport close_link
from kafka_fast.dataplane.core._sender_state cimport find_link, pause_until
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *


cdef void on_add_link(sender_state* state, kf_add_link* command, double now) noexcept nogil:
    cdef kf_link* link = command.link
    link.next = state.links
    link.readable = True
    link.last_used = link.last_drained = now
    link.node = kf_plane_node(state.plane, link.node_id)
    kf_count(&link.node.links, 1)
    state.links = link
    kf_link_trace(link, now, KF_TRACE_OPEN)


cdef void on_close_link(sender_state* state, kf_close_link* command, double now) noexcept nogil:
    cdef kf_link* link = find_link(state, command.link_id)
    if link != NULL:
        close_link(state, link, KF_CLOSE_BY_US, 0, now)


cdef void refuse_raw(sender_state* state, const kf_send_raw* command) noexcept nogil:
    """Report that the link is gone, as if it had been closed with the request in flight."""
    kf_plane_event(state.plane,
                   kf_event_unanswered(command.link_id, command.token, KF_CLOSE_BY_US))


cdef void on_send_raw(sender_state* state, kf_send_raw* command, double now) noexcept nogil:
    cdef kf_link* link = find_link(state, command.link_id)
    cdef kf_request* request
    if link == NULL:
        refuse_raw(state, command)
        return
    request = <kf_request*>calloc(1, sizeof(kf_request))
    if request != NULL:
        request.pieces = <iovec*>malloc(sizeof(iovec))
    if request == NULL or request.pieces == NULL:
        free(request)
        refuse_raw(state, command)
        return
    request.kind = KF_REQUEST_RAW
    request.answered = True
    request.timeout = command.timeout
    request.token = command.token
    request.framing = command.frame
    request.size = command.frame_size
    request.piece_count = 1
    request.pieces[0].iov_base = command.frame
    request.pieces[0].iov_len = command.frame_size
    command.frame = NULL
    if link.gate != KF_GATE_OPEN and not command.is_of_login:
        kf_link_hold(link, request)
        return
    kf_link_number(link, request)
    kf_link_queue(link, request, now)


cdef void on_open_gate(sender_state* state, kf_open_gate* command, double now) noexcept nogil:
    cdef kf_link* link = find_link(state, command.link_id)
    if link != NULL:
        kf_link_open_gate(link, now)
        link.gate_until = 0.0 if command.until == INFINITY else command.until


cdef void on_pause_link(sender_state* state, kf_pause_link* command, double now) noexcept nogil:
    cdef kf_link* link = find_link(state, command.link_id)
    if link != NULL:
        pause_until(link, now + command.seconds)
        kf_count(&state.plane.stats.throttle_ms, <int64_t>(command.seconds * 1000.0))


cdef void on_start_heartbeats(sender_state* state, kf_start_heartbeats* command,
                              double now) noexcept nogil:
    start_heartbeats(state, command.heartbeat, now)
    command.heartbeat = NULL


cdef void on_stop_heartbeats(sender_state* state, kf_stop_heartbeats* command,
                             double now) noexcept nogil:
    stop_heartbeats(state, command.token)


cdef void on_send_between(sender_state* state, kf_send_between* command,
                          double now) noexcept nogil:
    send_between(state, command)


cdef int in_flight(const kf_link* link) noexcept nogil:
    """Return how many requests have no answer yet."""
    cdef const kf_request* request = link.first
    cdef int count = 0
    while request != NULL:
        count += 1
        request = request.next
    return count


cdef void on_dump_links(sender_state* state, kf_dump_links* command, double now) noexcept nogil:
    """Report what the links' debug rings hold, oldest line first."""
    cdef kf_link* link = state.links
    cdef kf_event* event
    cdef kf_trace* lines
    cdef uint32_t count, i
    while link != NULL:
        count = min(link.trace_count, <uint32_t>KF_TRACE_LINES)
        event = kf_event_new(KF_EVENT_LINK_TRACES)
        event.link_traces.link_id = link.id
        event.link_traces.node_id = link.node_id
        event.link_traces.in_flight = in_flight(link)
        lines = <kf_trace*>malloc(count * sizeof(kf_trace))
        if lines != NULL:
            for i in range(count):
                lines[i] = link.trace[(link.trace_count - count + i) % <uint32_t>KF_TRACE_LINES]
            event.link_traces.ring.data = <uint8_t*>lines
            event.link_traces.ring.size = count * sizeof(kf_trace)
        kf_plane_event(state.plane, event)
        link = link.next
    event = kf_event_new(KF_EVENT_TRACES_ENDED)
    event.traces_ended.token = command.token
    kf_plane_event(state.plane, event)
