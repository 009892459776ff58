"""What the produce side and the fetch side both do with a link: find it, and wait for its broker.

The two sides import this and not each other.
"""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    THROTTLE_CAP_MS = 60_000  # a broker cannot silence the client for longer at a time


cdef kf_link* find_link(sender_state* state, int32_t link_id) noexcept nogil:
    cdef kf_link* link = state.links
    while link != NULL and link.id != link_id:
        link = link.next
    return link


cdef void pause_until(kf_link* link, double until) noexcept nogil:
    link.throttled_until = max(link.throttled_until, until)


cdef void throttle(sender_state* state, kf_link* link, int32_t throttle_ms,
                   double now) noexcept nogil:
    cdef kf_event* event
    if throttle_ms <= 0:
        return
    throttle_ms = min(throttle_ms, <int32_t>THROTTLE_CAP_MS)
    pause_until(link, now + throttle_ms / 1000.0)
    kf_count(&state.plane.stats.throttle_ms, throttle_ms)
    event = kf_event_new(KF_EVENT_THROTTLED)
    event.throttled.link_id = link.id
    event.throttled.throttle_ms = throttle_ms
    kf_plane_event(state.plane, event)
