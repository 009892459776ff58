"""How a batch leaves a request, and what happens when its time is over.

Success completes here. Everything else freezes the partition's queue in the same turn and becomes
a row of an event, on which the control plane decides. Its verdict carries the generation of the
freeze: a verdict that another failure has overtaken names an older one, and does nothing.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kafka_fast.dataplane.produce._lists cimport place, unlink
from kafka_fast.dataplane.produce._produce cimport produce_answer, scan_answer, wire_size
from kafka_fast.dataplane.core._sender_state cimport throttle
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    OVERDUE_QUEUES = 64  # looked at in one go

cdef double LOOK_AGAIN = 0.01  # seconds; for batches that a compression thread still holds


cdef void fill_row(kf_batch_row* row, const kf_queue* queue, const kf_batch* batch) noexcept nogil:
    row.queue_id = queue.id
    row.generation = queue.generation
    row.serial = batch.serial
    row.slice = batch.slice
    row.base_sequence = batch.base_sequence
    row.base_offset = batch.last_offset
    row.record_count = batch.record_count
    row.size = batch.size
    row.wire_size = wire_size(batch)
    row.failures = batch.failures
    row.error_code = batch.last_error
    row.maybe_written = batch.maybe_written


cdef void report(sender_state* state, kf_queue* queue) noexcept nogil:
    """Ask the control plane to judge the queue, if it is frozen and nothing of it is in flight."""
    cdef kf_event* event
    cdef kf_queue_row* row
    cdef kf_batch* batch = queue.unresolved
    if not queue.frozen or queue.in_flight > 0 or queue.reported == queue.generation:
        return
    while batch != NULL:
        if kf_get(&batch.coding) == KF_CODING_SUBMITTED:
            return  # a verdict might free it; `read_inbox` reports once the thread is done
        batch = batch.next
    batch = queue.unresolved
    queue.reported = queue.generation
    event = kf_event_new(KF_EVENT_QUEUE_REPORT)
    row = &event.queue_report.queue
    row.queue_id = queue.id
    row.generation = queue.generation
    row.next_sequence = queue.next_sequence
    row.may_have_gap = queue.may_have_gap
    while batch != NULL:
        fill_row(kf_append_batch_row(&event.queue_report.batches), queue, batch)
        batch = batch.next
    kf_plane_event(state.plane, event)


cdef void freeze(sender_state* state, kf_queue* queue) noexcept nogil:
    unlink(state, queue)
    queue.frozen = True
    queue.generation = queue.producer.next_generation
    queue.producer.next_generation += 1


cdef void end_flight(kf_queue* queue) noexcept nogil:
    """One batch of this queue is in no request any more; after the last one it may move."""
    queue.in_flight -= 1
    if queue.in_flight == 0 and queue.moving:
        queue.link = queue.next_link
        queue.next_link = NULL
        queue.moving = False


cdef void drop_expired(kf_batch* batch) noexcept nogil:
    """Free a batch whose futures have failed before: now its request has ended too."""
    kf_batch_release_memory(batch)
    kf_batch_unref(batch)


cdef void freeze_failed(sender_state* state, kf_batch* batch,
                        const produce_answer* answer) noexcept nogil:
    """Freeze the queue of a batch that failed. `answer` is NULL if there was none.

    Post the event that tells of the failure next, then call `report`.
    """
    cdef kf_queue* queue = batch.queue
    end_flight(queue)
    freeze(state, queue)
    batch.failures += 1
    batch.last_error = answer.error_code if answer != NULL else 0
    batch.last_offset = answer.base_offset if answer != NULL else -1
    batch.maybe_written = (batch.maybe_written or answer == NULL
                           or kf_maybe_written(answer.error_code))
    if batch.expired:
        queue.may_have_gap = queue.may_have_gap or batch.maybe_written
        drop_expired(batch)
    else:
        kf_set(&batch.state, KF_BATCH_WAITING)
        kf_queue_return(queue, batch)


cdef bint has_maybe_written(const kf_queue* queue) noexcept nogil:
    """Return whether a batch that waits for another try may be in the log.

    New batches must not overtake it, as they would in a window of several requests if it alone were
    refused: a broker recognises the last five batches of a producer, and no older one.
    """
    cdef const kf_batch* batch = queue.unresolved
    while batch != NULL:
        if batch.maybe_written:
            return True
        batch = batch.next
    return False


cdef void complete(sender_state* state, kf_batch* batch, const produce_answer* answer,
                   double now) noexcept nogil:
    """The batch is in the log."""
    cdef kf_queue* queue = batch.queue
    cdef bint moved = queue.moving
    cdef bint single = queue.single
    end_flight(queue)
    # A log that the queue leaves behind says nothing of the log that it moves to.
    queue.single = single and (moved or has_maybe_written(queue))
    if batch.expired:
        drop_expired(batch)
    else:
        kf_set(&batch.state, KF_BATCH_WAITING)
        kf_batch_end(batch, KF_BATCH_ACKED, 0, KF_OUTCOME_NONE, answer.base_offset,
                     answer.append_time_ms)
    if queue.frozen:
        report(state, queue)
    elif moved or single or queue.place == KF_NOWHERE:
        place(state, queue, now)


cdef bint answer_produce(sender_state* state, kf_link* link, kf_request* request,
                         const uint8_t* frame, int64_t size, double now) noexcept nogil:
    cdef kf_event* event = NULL
    cdef kf_batch_row* row
    cdef produce_answer* answers
    cdef kf_misfit misfit
    cdef int32_t throttle_ms = 0
    cdef int i
    answers = <produce_answer*>malloc(request.batch_count * sizeof(produce_answer))
    if answers == NULL:
        return False
    if not scan_answer(request, frame, size, answers, &throttle_ms, &misfit):
        free(answers)
        kf_plane_event(state.plane, kf_event_bad_answer(link.id, KF_REQUEST_PRODUCE,
                                                        request.form.version, frame, size,
                                                        &misfit))
        return False
    for i in range(request.batch_count):
        if answers[i].error_code != 0:
            if event == NULL:
                event = kf_event_new(KF_EVENT_PRODUCE_PUNT)
                event.produce_punt.link_id = link.id
                event.produce_punt.version = request.form.version
                kf_bytes_copy(&event.produce_punt.frame, frame, size)
                kf_count(&state.plane.producer.stats.punts, 1)
                kf_link_trace_request(link, now, KF_TRACE_PUNT, request, size)
            row = kf_append_batch_row(&event.produce_punt.batches)
            fill_row(row, answers[i].queue, request.batches[i])
            row.error_code = answers[i].error_code
            freeze_failed(state, request.batches[i], &answers[i])
    for i in range(request.batch_count):
        if answers[i].error_code == 0:
            complete(state, request.batches[i], &answers[i], now)
    if event != NULL:
        kf_plane_event(state.plane, event)
        for i in range(request.batch_count):
            report(state, answers[i].queue)
    free(answers)
    throttle(state, link, throttle_ms, now)
    return True


cdef void complete_unanswered(sender_state* state, const kf_request* request,
                              double now) noexcept nogil:
    cdef produce_answer unanswered
    cdef int i
    memset(&unanswered, 0, sizeof(unanswered))
    unanswered.base_offset = -1
    unanswered.append_time_ms = -1
    for i in range(request.batch_count):
        complete(state, request.batches[i], &unanswered, now)


cdef void end_produce(sender_state* state, const kf_request* request) noexcept nogil:
    cdef int i
    for i in range(request.batch_count):
        freeze_failed(state, request.batches[i], NULL)


cdef void unroute(sender_state* state, const kf_link* link, double now) noexcept nogil:
    cdef kf_queue* queue = kf_producer_queues(state.plane.producer)
    while queue != NULL:
        if queue.next_link == link:
            queue.next_link = NULL
        if queue.link == link:
            unlink(state, queue)
            queue.link = NULL
            queue.route_asked = False
            place(state, queue, now)
        report(state, queue)  # also a queue that was moving from here to another link
        queue = queue.registered


cdef void fail_overdue(kf_batch* batch) noexcept nogil:
    kf_count(&batch.queue.producer.stats.expired_batches, 1)
    kf_batch_end(batch, KF_BATCH_FAILED, KF_ERROR_EXPIRED, kf_batch_outcome(batch), -1, -1)


cdef void expire_unsent(kf_queue* queue, double cutoff) noexcept nogil:
    """Fail batches that were never sent: they leave no gap in the sequences."""
    cdef kf_batch* batch = kf_queue_take_overdue(queue, cutoff)
    cdef kf_batch* following
    cdef kf_batch** at = &queue.coding
    while batch != NULL:
        following = batch.next
        fail_overdue(batch)
        batch = following
    while at[0] != NULL:
        batch = at[0]
        if batch.created <= cutoff and kf_get(&batch.coding) != KF_CODING_SUBMITTED:
            at[0] = batch.next
            queue.coding_count -= 1
            fail_overdue(batch)
        else:
            at = &batch.next
    queue.coding_tail = at


cdef void expire_unresolved(sender_state* state, kf_queue* queue, double cutoff) noexcept nogil:
    """Fail batches that came back, or are parts of others that were too large.

    The control plane must deal with the gap that those leave which have a sequence.
    """
    cdef kf_batch** at = &queue.unresolved
    cdef kf_batch* batch
    cdef bint any = False
    while at[0] != NULL:
        batch = at[0]
        if batch.created > cutoff or kf_get(&batch.coding) == KF_CODING_SUBMITTED:
            at = &batch.next
            continue
        at[0] = batch.next
        if batch.attempts > 0:
            any = True
        if batch.sequenced:
            queue.may_have_gap = True  # its sequences are missing, even if it was never written
        fail_overdue(batch)
    if any:
        freeze(state, queue)
        report(state, queue)


cdef void expire_in_flight(sender_state* state, double cutoff) noexcept nogil:
    """Fail the futures of overdue batches in flight. Their requests keep the memory to the end."""
    cdef kf_link* link = state.links
    cdef kf_request* request
    cdef int i
    while link != NULL:
        request = link.first
        while request != NULL:
            for i in range(request.batch_count):
                if not request.batches[i].expired and request.batches[i].created <= cutoff:
                    fail_overdue(request.batches[i])
            request = request.next
        link = link.next


cdef void expire(sender_state* state, double now) noexcept nogil:
    cdef kf_producer* producer = state.plane.producer
    cdef kf_queue* queues[OVERDUE_QUEUES]
    cdef double cutoff = now - producer.delivery_timeout
    cdef double following = 0.0
    cdef int count, i
    if now < producer.next_overdue:
        return
    count = kf_producer_overdue(producer, cutoff, queues, OVERDUE_QUEUES, &following)
    for i in range(count):
        expire_unsent(queues[i], cutoff)
        expire_unresolved(state, queues[i], cutoff)
    if count > 0:
        expire_in_flight(state, cutoff)
        for i in range(count):
            place(state, queues[i], now)
        producer.next_overdue = now + LOOK_AGAIN
    elif following > 0.0:
        producer.next_overdue = following + producer.delivery_timeout
    else:
        producer.next_overdue = now + producer.delivery_timeout


cdef void read_inbox(sender_state* state, double now) noexcept nogil:
    cdef kf_queue* queue = kf_producer_take_inbox(state.plane.producer)
    cdef kf_queue* following
    while queue != NULL:
        following = queue.taken_next
        if queue.frozen:
            report(state, queue)
        else:
            place(state, queue, now)
        queue = following
