"""Commands: the control plane's decisions, carried out between two turns of the data plane.

Each command is small and mechanical. A verdict on a frozen queue carries the generation of the
freeze that it answers. An older generation means that the queue has failed again since. Then the
command is dropped: the newer failure is on its way up, and gets a verdict of its own.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.fetch._fetch_commands cimport carry_out_fetch
from kafka_fast.dataplane.core._heartbeats cimport send_between, start_heartbeats, stop_heartbeats
from kafka_fast.dataplane.core._links cimport close_link
from kafka_fast.dataplane.produce._lists cimport place, unlink
from kafka_fast.dataplane.core._sender_state cimport find_link, pause_until
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *


cdef double ALL_TIMES = 1e300  # a batch may have been opened after this turn's `now`


cdef void add_link(sender_state* state, kf_link* link, double now) noexcept nogil:
    link.next = state.links
    link.readable = True
    link.last_used = link.last_drained = now
    link.node = kf_plane_node(state.plane, link.node_id)
    kf_count(&link.node.links, 1)
    state.links = link
    kf_link_trace(link, now, KF_TRACE_OPEN)


cdef void refuse_raw(sender_state* state, kf_command* command) noexcept nogil:
    """Report that the link is gone, as if it had been closed with the request in flight."""
    cdef kf_event* event = kf_event_new(KF_EVENT_RESPONSE, command.link_id)
    event.token = command.token
    event.code = KF_CLOSE_BY_US
    kf_plane_event(state.plane, event)


cdef void send_raw(sender_state* state, kf_command* command, double now) noexcept nogil:
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
    request.framing = command.bytes
    request.size = command.size
    request.piece_count = 1
    request.pieces[0].iov_base = command.bytes
    request.pieces[0].iov_len = command.size
    command.bytes = NULL
    if link.gate != KF_GATE_OPEN and not command.of_login:
        kf_link_hold(link, request)
        return
    kf_link_number(link, request)
    kf_link_queue(link, request, now)


cdef void open_gate(sender_state* state, const kf_command* command, double now) noexcept nogil:
    cdef kf_link* link = find_link(state, command.link_id)
    if link != NULL:
        kf_link_open_gate(link, now)
        link.gate_until = command.at


cdef void pause_link(sender_state* state, const kf_command* command, double now) noexcept nogil:
    cdef kf_link* link = find_link(state, command.link_id)
    if link != NULL:
        pause_until(link, now + command.timeout)
        kf_count(&state.plane.stats.throttle_ms, <int64_t>(command.timeout * 1000.0))


cdef void program(sender_state* state, kf_command* command, double now) noexcept nogil:
    """Set the form of the link's requests from now on; those in flight keep theirs."""
    cdef kf_link* link = find_link(state, command.link_id)
    if link == NULL:
        return
    free(link.prefix)
    link.prefix = command.bytes
    link.prefix_size = command.size
    link.form.version = command.version
    link.form.topic_format = command.topic_format
    link.form.flexible = command.topic_format != KF_TOPIC_NAME
    command.bytes = NULL


cdef void name_topic(kf_command* command) noexcept nogil:
    """Set one form of the topic's field; the control plane does this before it routes."""
    free(command.topic.field[command.topic_format])
    command.topic.field[command.topic_format] = command.bytes
    command.topic.field_size[command.topic_format] = command.size
    command.bytes = NULL


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


cdef void restart_topic(sender_state* state, const kf_topic* topic, double now) noexcept nogil:
    cdef kf_queue* queue = kf_producer_queues(state.plane.producer)
    while queue != NULL:
        if queue.topic == topic:
            restart_queue(state, queue, now)
        queue = queue.registered


cdef void route(sender_state* state, kf_command* command, double now) noexcept nogil:
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


cdef void give_up(kf_batch* batch, const kf_command* command) noexcept nogil:
    """Fail a batch with the command's error, and with what is known of it here."""
    kf_batch_end(batch, KF_BATCH_FAILED, command.error_code, kf_batch_outcome(batch), -1, -1)


cdef void fail_unsplit(kf_queue* queue, kf_batch* batch, const kf_command* command) noexcept nogil:
    """Fail a batch that was to be split and cannot be.

    The control plane expected its pieces to keep its sequences. Now these are free, and the batches
    behind take them over, as after any batch that is given up.
    """
    cdef bint leaves_gap = batch.sequenced and not batch.maybe_written and not queue.may_have_gap
    cdef int32_t base_sequence = batch.base_sequence
    give_up(batch, command)
    if leaves_gap:
        kf_queue_renumber(queue, command.serial, command.slice, -1, -1, base_sequence)


cdef void forgive(kf_queue* queue, const kf_command* command) noexcept nogil:
    """Do not count a batch's last failure, which only followed from another batch's."""
    cdef kf_batch* batch = kf_queue_find_unresolved(queue, command.serial, command.slice)
    if batch != NULL:
        batch.failures -= 1


cdef void fail(kf_batch* batch, kf_command* command) noexcept nogil:
    kf_batch_explain(batch, command.bytes, command.size)
    command.bytes = NULL
    kf_batch_end(batch, KF_BATCH_FAILED, command.error_code, command.outcome, -1, -1)


cdef void judge(sender_state* state, kf_command* command) noexcept nogil:
    """Carry out a verdict on one unresolved batch of a frozen queue, or on all of them."""
    cdef kf_queue* queue = command.queue
    cdef kf_batch* batch
    if not queue.frozen or queue.generation != command.generation:
        return
    if command.verdict == KF_VERDICT_RENUMBER:
        kf_queue_renumber(queue, command.serial, command.slice, command.producer_id,
                          command.epoch, command.base_sequence)
        return
    if command.verdict == KF_VERDICT_FORGIVE:
        forgive(queue, command)
        return
    batch = kf_queue_take_unresolved(queue, command.serial, command.slice)
    if batch == NULL:
        return  # it expired since
    if command.verdict == KF_VERDICT_SUCCEED:
        kf_batch_end(batch, KF_BATCH_ACKED, 0, KF_OUTCOME_NONE, command.base_offset,
                     command.timestamp_ms)
    elif command.verdict == KF_VERDICT_SPLIT:
        if kf_queue_split(queue, batch, command.split_size):
            kf_count(&state.plane.producer.stats.splits, 1)
        else:
            fail_unsplit(queue, batch, command)
    else:
        fail(batch, command)


cdef void thaw(sender_state* state, kf_command* command, double now) noexcept nogil:
    cdef kf_queue* queue = command.queue
    if not queue.frozen or queue.generation != command.generation:
        return
    queue.frozen = False
    queue.may_have_gap = False
    queue.not_before = command.at
    queue.single = command.single
    place(state, queue, now)


cdef void fail_queue(sender_state* state, kf_command* command, double now) noexcept nogil:
    """Fail all batches of the queue that are in no request and with no compression thread."""
    cdef kf_queue* queue = command.queue
    cdef kf_batch* batch = kf_queue_take_overdue(queue, ALL_TIMES)
    cdef kf_batch* following
    while batch != NULL:
        following = batch.next
        give_up(batch, command)
        batch = following
    while queue.coding != NULL and kf_get(&queue.coding.coding) != KF_CODING_SUBMITTED:
        batch = queue.coding
        queue.coding = batch.next
        queue.coding_count -= 1
        give_up(batch, command)
    while (queue.unresolved != NULL
           and kf_get(&queue.unresolved.coding) != KF_CODING_SUBMITTED):
        give_up(kf_queue_take_first(queue), command)
    place(state, queue, now)


cdef int in_flight(const kf_link* link) noexcept nogil:
    """Return how many requests have no answer yet."""
    cdef const kf_request* request = link.first
    cdef int count = 0
    while request != NULL:
        count += 1
        request = request.next
    return count


cdef void dump(sender_state* state, int64_t token) noexcept nogil:
    """Report what the links' debug rings hold, oldest line first."""
    cdef kf_link* link = state.links
    cdef kf_event* event
    cdef kf_trace* lines
    cdef uint32_t count, i
    while link != NULL:
        count = min(link.trace_count, <uint32_t>KF_TRACE_LINES)
        event = kf_event_new(KF_EVENT_DUMP, link.id)
        event.token = token
        event.code = in_flight(link)
        event.detail = link.node_id
        lines = <kf_trace*>malloc(count * sizeof(kf_trace))
        if lines != NULL:
            for i in range(count):
                lines[i] = link.trace[(link.trace_count - count + i) % <uint32_t>KF_TRACE_LINES]
            event.bytes = <uint8_t*>lines
            event.size = count * sizeof(kf_trace)
        kf_plane_event(state.plane, event)
        link = link.next
    event = kf_event_new(KF_EVENT_DUMP, 0)
    event.token = token
    kf_plane_event(state.plane, event)


cdef void carry_out_produce(sender_state* state, kf_command* command, double now) noexcept nogil:
    cdef int kind = command.kind
    if kind == KF_COMMAND_PROGRAM:
        program(state, command, now)
    elif kind == KF_COMMAND_TOPIC:
        name_topic(command)
    elif kind == KF_COMMAND_ROUTE:
        route(state, command, now)
    elif kind == KF_COMMAND_VERDICT:
        judge(state, command)
    elif kind == KF_COMMAND_THAW:
        thaw(state, command, now)
    elif kind == KF_COMMAND_FAIL_QUEUE:
        fail_queue(state, command, now)
    elif kind == KF_COMMAND_LIMIT_TOPIC:
        kf_topic_limit(state.plane.producer, command.topic, command.split_size, command.size)
    elif kind == KF_COMMAND_RESTART_TOPIC:
        restart_topic(state, command.topic, now)
    elif kind == KF_COMMAND_PRODUCER_ID:
        state.plane.producer.producer_id = command.producer_id
        state.plane.producer.epoch = command.epoch


cdef void carry_out(sender_state* state, kf_command* command, double now) noexcept nogil:
    cdef kf_link* link
    cdef int kind = command.kind
    if kind == KF_COMMAND_ADD_LINK:
        add_link(state, command.link, now)
    elif kind == KF_COMMAND_SEND_RAW:
        send_raw(state, command, now)
    elif kind == KF_COMMAND_OPEN_GATE:
        open_gate(state, command, now)
    elif kind == KF_COMMAND_PAUSE_LINK:
        pause_link(state, command, now)
    elif kind == KF_COMMAND_START_HEARTBEATS:
        start_heartbeats(state, command.heartbeat, now)
        command.heartbeat = NULL
    elif kind == KF_COMMAND_STOP_HEARTBEATS:
        stop_heartbeats(state, command.token)
    elif kind == KF_COMMAND_SEND_BETWEEN:
        send_between(state, command)
    elif kind == KF_COMMAND_DUMP:
        dump(state, command.token)
    elif kind >= KF_COMMAND_PROGRAM_FETCH:
        carry_out_fetch(state, command, now)
    elif kind >= KF_COMMAND_PROGRAM:
        carry_out_produce(state, command, now)
    else:
        link = find_link(state, command.link_id)
        if link != NULL and kind == KF_COMMAND_CLOSE_LINK:
            close_link(state, link, KF_CLOSE_BY_US, 0, now)


cdef void carry_out_commands(sender_state* state, double now) noexcept nogil:
    cdef kf_command* command = kf_plane_take_commands(state.plane)
    cdef kf_command* following
    while command != NULL:
        following = command.next
        carry_out(state, command, now)
        kf_command_free(command)
        command = following
