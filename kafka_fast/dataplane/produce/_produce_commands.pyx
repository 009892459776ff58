"""Commands of the produce side: the control plane's decisions, carried out between two turns.

Each command is small and mechanical. A verdict on a frozen queue carries the generation of the
freeze that it answers. An older generation means that the queue has failed again since. Then the
command is dropped: the newer failure is on its way up, and gets a verdict of its own.

Thread: data plane; takes no GIL, calls no clock.
"""

from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport free

from kafka_fast.dataplane.core._sender_state cimport find_link
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._lists cimport place, unlink

cdef enum:
    FIRST_FLEXIBLE_VERSION = 9  # of Produce
    FIRST_VERSION_WITH_IDS = 13

cdef double ALL_TIMES = 1e300  # a batch may have been opened after this turn's `now`


cdef int format_of(int16_t version) noexcept nogil:
    """Return how Produce requests of this version name a topic, enum kf_topic_format."""
    if version >= FIRST_VERSION_WITH_IDS:
        return KF_TOPIC_ID
    return KF_TOPIC_COMPACT_NAME if version >= FIRST_FLEXIBLE_VERSION else KF_TOPIC_NAME


cdef void on_program_produce(sender_state* state, kf_program_produce* command,
                             double now) noexcept nogil:
    """Set the form of the link's requests from now on; those in flight keep theirs."""
    cdef kf_link* link = find_link(state, command.link_id)
    if link == NULL:
        return
    free(link.prefix)
    link.prefix = command.prefix
    link.prefix_size = command.prefix_size
    link.form.version = command.version
    link.form.topic_format = format_of(command.version)
    link.form.flexible = format_of(command.version) != KF_TOPIC_NAME
    command.prefix = NULL


cdef void on_name_topic(sender_state* state, kf_name_topic* command, double now) noexcept nogil:
    """Set one form of the topic's field; the control plane does this before it routes."""
    cdef int form = format_of(command.version)
    free(command.topic.field[form])
    command.topic.field[form] = command.field
    command.topic.field_size[form] = command.field_size
    command.field = NULL


cdef void restart_queue(sender_state* state, kf_queue* queue, double now) noexcept nogil:
    """Let a queue begin with an empty log, as soon as nothing is on its way to the old one.

    The leader of the new log knows no producer, and takes any sequence. So the first batch is alone
    in flight until it is acknowledged. Pauses were for the old log.
    """
    unlink(state, queue)
    queue.single = queue.producer.idempotent
    queue.not_before = 0.0
    kf_set(&queue.stalled, 0)
    if queue.in_flight > 0 and not queue.moving:
        queue.next_link = queue.link
        queue.moving = True
    place(state, queue, now)


cdef void on_restart_topic(sender_state* state, kf_restart_topic* command,
                           double now) noexcept nogil:
    cdef kf_queue* queue = kf_producer_queues(state.plane.producer)
    while queue != NULL:
        if queue.topic == command.topic:
            restart_queue(state, queue, now)
        queue = queue.registered


cdef void on_limit_topic(sender_state* state, kf_limit_topic* command, double now) noexcept nogil:
    kf_topic_limit(state.plane.producer, command.topic, command.size, command.wire_size)


cdef void on_route_queue(sender_state* state, kf_route_queue* command, double now) noexcept nogil:
    """Send the queue to another link, once nothing of it is in flight on the old one.

    If that link has closed meanwhile the queue has none, and asks for one again. The control plane
    hears of the link's end before that.
    """
    cdef kf_queue* queue = command.queue
    cdef kf_link* link = find_link(state, command.link_id)
    queue.route_asked = False
    if link == queue.link and not queue.moving:
        place(state, queue, now)
        return
    unlink(state, queue)
    if queue.in_flight > 0:
        queue.next_link = link
        queue.moving = link != queue.link
    else:
        queue.link = link
    place(state, queue, now)


cdef void on_set_producer_id(sender_state* state, kf_set_producer_id* command,
                             double now) noexcept nogil:
    state.plane.producer.producer_id = command.producer_id
    state.plane.producer.epoch = command.epoch


cdef bint is_answered(const kf_queue* queue, int64_t generation) noexcept nogil:
    """Return whether a verdict is about the queue's present freeze."""
    return queue.frozen and queue.generation == generation


cdef kf_batch* take_judged(kf_queue* queue, int64_t generation, int64_t serial,
                           int32_t slice) noexcept nogil:
    """Take the batch that a verdict ends; NULL: it has expired, or the verdict is void."""
    if not is_answered(queue, generation):
        return NULL
    return kf_queue_take_unresolved(queue, serial, slice)


cdef void on_fail_batch(sender_state* state, kf_fail_batch* command, double now) noexcept nogil:
    cdef kf_batch* batch = take_judged(command.queue, command.generation, command.serial,
                                       command.slice)
    if batch == NULL:
        return
    kf_batch_explain(batch, command.detail, command.detail_size)
    command.detail = NULL
    kf_batch_end(batch, KF_BATCH_FAILED, command.error_code, command.outcome, -1, -1)


cdef void on_complete_batch(sender_state* state, kf_complete_batch* command,
                            double now) noexcept nogil:
    cdef kf_batch* batch = take_judged(command.queue, command.generation, command.serial,
                                       command.slice)
    if batch != NULL:
        kf_batch_end(batch, KF_BATCH_ACKED, 0, KF_OUTCOME_NONE, command.base_offset, -1)


cdef void give_up(kf_batch* batch, int32_t error_code) noexcept nogil:
    """Fail a batch with an error, and with what is known of it here."""
    kf_batch_end(batch, KF_BATCH_FAILED, error_code, kf_batch_outcome(batch), -1, -1)


cdef void fail_unsplit(kf_batch* batch, const kf_split_batch* command) noexcept nogil:
    """Fail a batch that was to be split and cannot be.

    The control plane expected its pieces to keep its sequences. Now these are free, and the batches
    behind take them over, as after any batch that is given up.
    """
    cdef kf_queue* queue = command.queue
    cdef bint leaves_gap = batch.sequenced and not batch.maybe_written and not queue.may_have_gap
    cdef int32_t base_sequence = batch.base_sequence
    give_up(batch, command.error_code)
    if leaves_gap:
        kf_queue_renumber(queue, command.serial, command.slice, -1, -1, base_sequence)


cdef void on_split_batch(sender_state* state, kf_split_batch* command, double now) noexcept nogil:
    cdef kf_batch* batch = take_judged(command.queue, command.generation, command.serial,
                                       command.slice)
    if batch == NULL:
        return
    if kf_queue_split(command.queue, batch, command.size):
        kf_count(&state.plane.producer.stats.splits, 1)
    else:
        fail_unsplit(batch, command)


cdef void on_forgive_batch(sender_state* state, kf_forgive_batch* command,
                           double now) noexcept nogil:
    cdef kf_batch* batch
    if not is_answered(command.queue, command.generation):
        return
    batch = kf_queue_find_unresolved(command.queue, command.serial, command.slice)
    if batch != NULL:
        batch.failures -= 1


cdef void on_renumber_queue(sender_state* state, kf_renumber_queue* command,
                            double now) noexcept nogil:
    if is_answered(command.queue, command.generation):
        kf_queue_renumber(command.queue, command.serial, command.slice, command.producer_id,
                          command.epoch, command.base_sequence)


cdef void on_thaw_queue(sender_state* state, kf_thaw_queue* command, double now) noexcept nogil:
    cdef kf_queue* queue = command.queue
    if not is_answered(queue, command.generation):
        return
    queue.frozen = False
    queue.may_have_gap = False
    queue.not_before = command.at
    queue.single = command.single
    place(state, queue, now)


cdef void on_fail_queue(sender_state* state, kf_fail_queue* command, double now) noexcept nogil:
    """Fail all batches of the queue that are in no request and with no compression thread.

    Without a code they fail because the producer cannot go on.
    """
    cdef kf_queue* queue = command.queue
    cdef kf_batch* batch = kf_queue_take_overdue(queue, ALL_TIMES)
    cdef kf_batch* following
    cdef int32_t code = command.error_code if command.error_code != 0 else KF_ERROR_STOPPED
    while batch != NULL:
        following = batch.next
        give_up(batch, code)
        batch = following
    while queue.coding != NULL and kf_get(&queue.coding.coding) != KF_CODING_SUBMITTED:
        batch = queue.coding
        queue.coding = batch.next
        queue.coding_count -= 1
        give_up(batch, code)
    while (queue.unresolved != NULL
           and kf_get(&queue.unresolved.coding) != KF_CODING_SUBMITTED):
        give_up(kf_queue_take_first(queue), code)
    place(state, queue, now)
