"""Draining: which batches go into the next request, and when.

A request has at most one batch of a partition. A batch gets its sequence here, after compression,
and keeps it while its fate is unknown.

After a drain of many records the link waits 100 µs before the next one, unless something is urgent.
Without that pause the drains would keep up with the caller and make small batches, for which the
caller pays (measured: 20 to 40 ns per record). The pause holds for `linger.ms=0` too: batches of
200 records cost the caller more than a wait of 100 µs costs the stream.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

from kafka_fast.dataplane.produce._lists cimport is_pressed, place, promote, unlink
from kafka_fast.dataplane.produce._produce cimport build_request, wire_size
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

cdef enum:
    PACED_RECORDS = 32  # a drain of that many means that a caller streams
    CODING_BATCHES = 5  # of one partition, in compression at a time
    REQUEST_BATCHES = 4096  # partitions in one request, at most

cdef double PACE = 100e-6  # between two drains while a caller streams
cdef double SLOW_LINK = 2e-3  # round trip from which on batches grow while the window is full
cdef double RETRY_LATER = 0.01  # after the machine had no memory for a request


cdef void assign_sequence(const kf_producer* producer, kf_queue* queue,
                          kf_batch* batch) noexcept nogil:
    """Give the batch its sequence, which it keeps while its fate is unknown.

    A broker that does not know the producer yet takes any sequence. If it refused the first batch,
    it would still take the second. So the first batch is alone in flight until it is acknowledged.
    That is not needed for the next epochs of a producer with transactions, where an epoch is as
    short as a transaction: the broker knows the id, and takes nothing but sequence 0 from them.
    """
    cdef bint is_known
    if not producer.idempotent or batch.sequenced:
        return
    if (queue.in_flight == 0 and (queue.unresolved == NULL or not queue.unresolved.sequenced)
            and (queue.producer_id != producer.producer_id or queue.epoch != producer.epoch)):
        is_known = queue.producer_id == producer.producer_id
        queue.producer_id = producer.producer_id
        queue.epoch = producer.epoch
        queue.next_sequence = 0
        queue.single = not (producer.transactional and is_known)
    batch.producer_id = queue.producer_id
    batch.epoch = queue.epoch
    batch.base_sequence = queue.next_sequence
    batch.sequenced = True
    queue.next_sequence = kf_sequence_after(queue.next_sequence, batch.record_count)


cdef kf_batch* take_coded(kf_producer* producer, kf_queue* queue, size_t limit,
                          size_t seal_size) noexcept nogil:
    """Send sealed batches to compression, and take the first that has come back, in order."""
    cdef kf_batch* batch
    while queue.coding_count < CODING_BATCHES:
        batch = kf_queue_take_sealed(queue, queue.coding == NULL, <size_t>-1, seal_size)
        if batch == NULL:
            break
        batch.next = NULL
        if queue.coding == NULL:
            queue.coding = batch
        else:
            queue.coding_tail[0] = batch
        queue.coding_tail = &batch.next
        queue.coding_count += 1
        kf_set(&batch.coding, KF_CODING_SUBMITTED)
        producer.env.submit(producer.env.context, batch)
    batch = queue.coding
    if batch == NULL or kf_get(&batch.coding) == KF_CODING_SUBMITTED or wire_size(batch) > limit:
        return NULL
    queue.coding = batch.next
    queue.coding_count -= 1
    batch.next = NULL
    return batch


cdef bint is_coded(kf_producer* producer, kf_batch* batch) noexcept nogil:
    """Return whether an unresolved batch can go out.

    Parts of a split one are compressed first, and some of those behind it with it.
    """
    cdef kf_batch* part = batch
    cdef int ahead = 0
    while producer.codec != 0 and part != NULL and ahead < CODING_BATCHES:
        if kf_get(&part.coding) == KF_CODING_NONE:
            kf_set(&part.coding, KF_CODING_SUBMITTED)
            producer.env.submit(producer.env.context, part)
        part = part.next
        ahead += 1
    return kf_get(&batch.coding) != KF_CODING_SUBMITTED


cdef bint is_to_be_split(const kf_producer* producer, const kf_batch* batch) noexcept nogil:
    """Return whether a batch is larger than its topic takes, as far as that was learnt.

    One that may be in the log stays whole: the broker would not know its parts as duplicates.
    """
    cdef size_t limit = batch.queue.topic.wire_limit
    return (limit > 0 and wire_size(batch) > limit and batch.record_count > 1
            and not (producer.idempotent and batch.maybe_written))


cdef bint split(kf_producer* producer, kf_batch* batch) noexcept nogil:
    """Split a batch that nobody holds in a list; False: there is no memory for that."""
    if not kf_queue_split(batch.queue, batch, kf_get_long(&batch.queue.topic.batch_limit)):
        return False
    kf_count(&producer.stats.splits, 1)
    return True


cdef kf_batch* next_unresolved(kf_producer* producer, kf_queue* queue,
                               size_t limit) noexcept nogil:
    """Take the first unresolved batch, if it can go out; in parts if it is too large."""
    cdef kf_batch* batch = queue.unresolved
    if not is_coded(producer, batch) or wire_size(batch) > limit:
        return NULL
    kf_queue_take_first(queue)
    if is_to_be_split(producer, batch) and split(producer, batch):
        return next_unresolved(producer, queue, limit)
    if batch.attempts > 0:
        kf_count(&producer.stats.retries, 1)
    return batch


cdef kf_batch* next_batch(sender_state* state, kf_link* link, kf_queue* queue,
                          size_t limit) noexcept nogil:
    """Take the batch of this queue that goes out next, or return NULL."""
    cdef kf_producer* producer = state.plane.producer
    cdef size_t seal_size = kf_topic_seal_size(producer, queue.topic)
    cdef kf_batch* batch
    if queue.unresolved != NULL:
        return next_unresolved(producer, queue, limit)
    if (seal_size == producer.seal_size and link.round_trip > SLOW_LINK
            and link.produce_in_flight + 1 >= producer.max_in_flight):
        seal_size = max(producer.seal_size, producer.max_request_size)
    if producer.codec != 0:
        batch = take_coded(producer, queue, limit, seal_size)
    else:
        batch = kf_queue_take_sealed(queue, True, limit, seal_size)
    if batch != NULL and is_to_be_split(producer, batch) and split(producer, batch):
        return next_unresolved(producer, queue, limit)
    return batch


cdef bint make_room(kf_producer* producer, int count) noexcept nogil:
    cdef int capacity = producer.scratch_capacity * 2 if producer.scratch_capacity > 0 else 64
    cdef kf_batch** larger
    if count < producer.scratch_capacity:
        return True
    larger = <kf_batch**>realloc(producer.scratch, capacity * sizeof(kf_batch*))
    if larger == NULL:
        return False
    producer.scratch = larger
    producer.scratch_capacity = capacity
    return True


cdef inline void begin_flight(kf_producer* producer, kf_batch* batch, double now) noexcept nogil:
    """Number a batch that goes into a request, and count it."""
    cdef kf_queue* queue = batch.queue
    assign_sequence(producer, queue, batch)
    kf_set(&batch.state, KF_BATCH_IN_FLIGHT)
    if kf_get(&queue.stalled):
        kf_set(&queue.stalled, 0)
    batch.attempts += 1
    queue.in_flight += 1
    if batch.attempts == 1:
        kf_histogram_add(&producer.stats.queue_time, now - batch.created, 1e-6)
        kf_histogram_add(&producer.stats.batch_bytes, <double>wire_size(batch), 1.0)


cdef inline void undo_flight(kf_batch* batch, double now) noexcept nogil:
    """Put a batch back for which there was no request: the machine is out of memory."""
    batch.queue.in_flight -= 1
    kf_set(&batch.state, KF_BATCH_WAITING)
    kf_queue_return(batch.queue, batch)
    batch.queue.not_before = now + RETRY_LATER


cdef int take_batches(sender_state* state, kf_link* link, double now,
                      int64_t* records) noexcept nogil:
    """Take one batch from each ready queue into `scratch`, until a request is full.

    Returns the number of batches. Their queues stand nowhere; `place` them.

    Args:
        records: becomes how many records are in them.
    """
    cdef kf_producer* producer = state.plane.producer
    cdef kf_queue* queue
    cdef kf_queue* last = link.ready_last
    cdef kf_batch* batch
    cdef size_t size = 0
    cdef size_t limit
    cdef int count = 0
    records[0] = 0
    while link.ready != NULL and size < producer.coalesce_bytes and count < REQUEST_BATCHES:
        queue = link.ready
        limit = producer.coalesce_bytes - size if count > 0 else <size_t>-1
        if not make_room(producer, count):
            break
        batch = next_batch(state, link, queue, limit)
        unlink(state, queue)
        if batch == NULL:
            place(state, queue, now)
        else:
            begin_flight(producer, batch, now)
            producer.scratch[count] = batch
            count += 1
            size += wire_size(batch)
            records[0] += batch.record_count
        if queue == last:
            break  # each ready queue was looked at once
    return count


cdef kf_request* gather(sender_state* state, kf_link* link, double now) noexcept nogil:
    """Take one batch from each ready queue until the request is full, and frame them."""
    cdef kf_producer* producer = state.plane.producer
    cdef int64_t records
    cdef int count = take_batches(state, link, now, &records)
    cdef kf_request* request
    cdef int i
    if count == 0:
        return NULL
    request = build_request(producer, link, producer.scratch, count)
    for i in range(count):
        if request == NULL:
            undo_flight(producer.scratch[i], now)
        place(state, producer.scratch[i].queue, now)
    if request != NULL and records >= PACED_RECORDS:
        link.paced_until = now + PACE
    return request


cdef bint may_drain(sender_state* state, kf_link* link, double now) noexcept nogil:
    cdef kf_producer* producer = state.plane.producer
    if (link.prefix == NULL or link.ready == NULL or link.gate != KF_GATE_OPEN
            or now < link.throttled_until
            or link.produce_in_flight >= producer.max_in_flight
            or (producer.idempotent and producer.producer_id < 0)):
        return False
    return now >= link.paced_until or link.urgent > 0 or is_pressed(producer)


cdef void mark_stalled(kf_link* link) noexcept nogil:
    """Tell the partitioner that these partitions take nothing (KIP-794)."""
    cdef kf_queue* queue = link.ready
    while queue != NULL:
        kf_set(&queue.stalled, 1)
        queue = queue.next


cdef void drain(sender_state* state, kf_link* link, double now) noexcept nogil:
    cdef const kf_producer* producer = state.plane.producer
    cdef kf_request* request
    promote(state, link, now)
    while may_drain(state, link, now):
        request = gather(state, link, now)
        if request == NULL:
            break
        kf_link_queue(link, request, now)
        link.last_drained = now
    if link.ready == NULL:
        link.last_drained = now
    elif (producer.availability_timeout > 0.0
            and now - link.last_drained >= producer.availability_timeout):
        mark_stalled(link)
