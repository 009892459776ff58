"""Where a queue stands: ready, lingering, or without a link.

*ready* is first come, first served; *lingering* is ordered by the time when a queue becomes
sendable (its linger or its retry's backoff); both belong to a link. *unrouted* belongs to the
producer. A queue that is frozen, moving, empty, or that waits for the answer to its only batch in
flight stands nowhere: the event that changes this places it again.
"""

from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *


cdef void append(kf_queue** first, kf_queue** last, kf_queue* queue) noexcept nogil:
    queue.previous = last[0]
    queue.next = NULL
    if last[0] != NULL:
        last[0].next = queue
    else:
        first[0] = queue
    last[0] = queue


cdef void remove(kf_queue** first, kf_queue** last, kf_queue* queue) noexcept nogil:
    if queue.previous != NULL:
        queue.previous.next = queue.next
    else:
        first[0] = queue.next
    if queue.next != NULL:
        queue.next.previous = queue.previous
    else:
        last[0] = queue.previous
    queue.next = queue.previous = NULL


cdef void insert_lingering(kf_queue* queue) noexcept nogil:
    """Insert by `due`. New ones are nearly always the latest, so look from the end."""
    cdef kf_link* link = queue.link
    cdef kf_queue* before = link.lingering_last
    while before != NULL and before.due > queue.due:
        before = before.previous
    if before == link.lingering_last:
        append(&link.lingering, &link.lingering_last, queue)
    else:
        queue.previous = before
        queue.next = before.next if before != NULL else link.lingering
        queue.next.previous = queue
        if before != NULL:
            before.next = queue
        else:
            link.lingering = queue
    queue.place = KF_IN_LINGERING


cdef void append_ready(kf_queue* queue) noexcept nogil:
    append(&queue.link.ready, &queue.link.ready_last, queue)
    queue.place = KF_IN_READY
    if queue.urgency == KF_URGENT:
        queue.link.urgent += 1


cdef void place_unrouted(sender_state* state, kf_queue* queue) noexcept nogil:
    append(&queue.producer.unrouted, &queue.producer.unrouted_last, queue)
    queue.place = KF_IN_UNROUTED


cdef void unlink(sender_state* state, kf_queue* queue) noexcept nogil:
    if queue.place == KF_IN_READY:
        remove(&queue.link.ready, &queue.link.ready_last, queue)
        if queue.urgency == KF_URGENT:
            queue.link.urgent -= 1
    elif queue.place == KF_IN_LINGERING:
        remove(&queue.link.lingering, &queue.link.lingering_last, queue)
    elif queue.place == KF_IN_UNROUTED:
        remove(&queue.producer.unrouted, &queue.producer.unrouted_last, queue)
    queue.place = KF_NOWHERE


cdef bint is_pressed(kf_producer* producer) noexcept nogil:
    return kf_get(&producer.flushing) > 0 or kf_get(&producer.pool.waiting) > 0


cdef void place(sender_state* state, kf_queue* queue, double now) noexcept nogil:
    """Put the queue into the list where it belongs now; called after each event that may change it.

    What goes out next decides: a batch that is to be sent again, before one that has come back from
    compression, before the open ones.
    """
    cdef kf_producer* producer = state.plane.producer
    cdef int urgency
    cdef double opened
    cdef double due = 0.0
    cdef bint data
    unlink(state, queue)
    if queue.frozen or queue.moving or (queue.single and queue.in_flight > 0):
        return
    data = kf_queue_look(queue, &urgency, &opened)
    if data and urgency == KF_LINGERS:
        if is_pressed(producer):
            urgency = KF_URGENT
        else:
            due = opened + producer.linger
    if queue.coding != NULL and kf_get(&queue.coding.coding) > KF_CODING_SUBMITTED:
        data, urgency, due = True, KF_URGENT, 0.0
    elif queue.coding != NULL and urgency < KF_URGENT:
        data = queue.unresolved != NULL  # batches in compression go first, and notify us when done
    if queue.unresolved != NULL:
        data, due = True, 0.0
        urgency = urgency if urgency > KF_SENDABLE else KF_SENDABLE
    if not data:
        return
    if queue.link == NULL:
        place_unrouted(state, queue)
        return
    if queue.not_before > now and queue.not_before > due:
        due = queue.not_before
    if due > now:
        queue.due = due
        insert_lingering(queue)
    else:
        queue.urgency = urgency
        append_ready(queue)


cdef void ask_for_routes(sender_state* state) noexcept nogil:
    cdef kf_event* event = NULL
    cdef kf_queue* queue = state.plane.producer.unrouted
    while queue != NULL:
        if not queue.route_asked:
            if event == NULL:
                event = kf_event_new(KF_EVENT_ROUTE_WANTED)
            kf_append_number(&event.route_wanted.queue_ids, queue.id)
            queue.route_asked = True
        queue = queue.next
    if event != NULL:
        kf_plane_event(state.plane, event)


cdef void promote(sender_state* state, kf_link* link, double now) noexcept nogil:
    """Place the lingering queues anew that are due; all of them if nothing is to linger now.

    A queue whose backoff is not over stays, whatever the pressure.
    """
    cdef kf_queue* queue = link.lingering
    cdef kf_queue* following
    cdef bint pressed = is_pressed(state.plane.producer)
    while queue != NULL and (pressed or queue.due <= now):
        following = queue.next
        if queue.due <= now or queue.not_before <= now:
            place(state, queue, now)
        queue = following
