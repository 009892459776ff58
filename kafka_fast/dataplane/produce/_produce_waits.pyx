"""What a producer's callers wait for: the fate of their records, and room in buffer.memory.

    Accumulator, ProducerCore ─► flush, kf_pool_wait: sleep in C, without the GIL for each wake
    ProducerSteps ─────────────► the same in parts, for callers that must not sleep here

Both kinds of callers use the same conditions, messages and log lines, which are here.

Thread: any, with the GIL.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._queues cimport Queues

from kafka_fast.errors import KafkaTimeoutError


cdef class ProduceWaits:
    """The waits for what is in some queues.

    Args:
        queues: of the producer.
    """

    def __cinit__(self, Queues queues not None):
        self.queues = queues
        self.producer = queues.producer

    cdef tuple oldest(self):
        """Return queue and opening time of the oldest batch that has not ended, and the time now.
        """
        cdef int64_t queue_id = -1
        cdef double created = 0.0
        kf_producer_oldest(self.producer, &queue_id, &created)
        return queue_id, created, self.producer.env.now(self.producer.env.context)

    # ---- the fate of records ----

    def flush(self, double deadline):
        """Send everything that was accepted so far and wait until its fate is known.

        Args:
            deadline: monotonic seconds; 0 waits without one.

        Returns:
            How many records are still pending.
        """
        cdef kf_producer* producer = self.producer
        cdef int64_t serial = kf_producer_serial(producer)
        cdef double now
        cdef object wait = None
        if kf_producer_flushed(producer, serial):
            return 0
        self.queues.check_may_wait()
        self.begin_flush()
        try:
            while not kf_producer_flushed(producer, serial) and not self.queues.plane.dead:
                now = producer.env.now(producer.env.context)
                if deadline != 0.0 and now >= deadline:
                    break
                with nogil:
                    kf_producer_wait_flushed(producer, serial, KF_WAIT_SLICE if deadline == 0.0
                                             else min(KF_WAIT_SLICE, deadline - now))
                PyErr_CheckSignals()
                wait = self.look_at_flush(wait)
        finally:
            self.end_flush()
        return kf_producer_pending_before(producer, serial)

    def begin_flush(self):
        """Let every batch leave at once, until `end_flush`; return what `is_flushed` takes."""
        cdef int64_t serial = kf_producer_serial(self.producer)
        kf_add(&self.producer.flushing, 1)
        kf_producer_urge(self.producer)
        return serial

    def is_flushed(self, int64_t serial):
        """Return whether the fate of all that was accepted before is known. Any thread."""
        return kf_producer_flushed(self.producer, serial)

    def end_flush(self):
        """Undo `begin_flush`."""
        kf_add(&self.producer.flushing, -1)

    def pending_before(self, int64_t serial):
        """Return how many records, of those that were accepted before, are still pending."""
        return kf_producer_pending_before(self.producer, serial)

    def look_at_flush(self, wait):
        """Log the reason of a flush that takes long.

        Args:
            wait: what the last call for this flush returned; None at first.

        Returns:
            What the next call takes.
        """
        if self.queues.explainer is None:
            return None
        return self.queues.explainer.log_if_long(wait, self.queues, "flush() waits", *self.oldest())

    # ---- room in buffer.memory ----

    cpdef bint has_room(self, size_t size) noexcept:
        """Return whether a caller that waits for so many bytes may try again. Any thread."""
        return kf_pool_has_room(&self.producer.pool, size)

    def count_blocked(self):
        """Count a call that has to wait for memory."""
        kf_count(&self.producer.stats.blocked, 1)

    def begin_wait_for_room(self):
        """Let every batch leave at once, as long as a caller waits for memory."""
        kf_add(&self.producer.pool.waiting, 1)
        kf_producer_urge(self.producer)

    def end_wait_for_room(self):
        """Undo `begin_wait_for_room`."""
        kf_add(&self.producer.pool.waiting, -1)

    cpdef str no_room(self, str topic):
        """Return what is said of a caller that found no memory for a record."""
        limit = self.producer.pool.limit
        return f"no room in buffer.memory ({limit} bytes) for a record of topic {topic!r}"

    cpdef say_no_room(self, str topic, double max_block):
        """Log that a call has waited long for memory, which comes back with deliveries.

        Args:
            max_block: seconds that it waits in all.
        """
        if self.queues.explainer is not None:
            self.queues.explainer.say(
                self.queues,
                f"{self.no_room(topic)}; waiting up to max.block.ms ({max_block:g} s)",
                *self.oldest())

    cpdef no_room_error(self, str topic, double max_block, double since):
        """Return the error of a wait for memory that was too long.

        Args:
            max_block: seconds that it has waited.
            since: when it began.
        """
        what = f"{self.no_room(topic)} after max.block.ms ({max_block * 1000:.0f})"
        queue_id, created, now = self.oldest()
        if self.queues.explainer is None:
            return KafkaTimeoutError(what)
        return self.queues.explainer.timeout_error(self.queues, what, queue_id, min(since, created),
                                                   now)
