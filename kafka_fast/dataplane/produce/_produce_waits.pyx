"""What a producer's callers wait for: the fate of their records, and room in buffer.memory.

    Accumulator, ProduceWaits.flush ─┬─► sleep in C, without the GIL for each wake
    ProducerSteps ───────────────────┤   yields, for callers that must not sleep here
                                     ▼
                 FlushWait, RoomWait: whether it is over, until when, what the log and the error say

Only the sleep is written twice. Steps resume in Python at each wake that may end them, and cost a
generator for each call; a thread that sleeps in C takes the GIL once, when its wait is over.

Thread: any, with the GIL.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._queues cimport Queues

from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.instants import NEVER as NEVER_AT
from kafka_fast.logs import LONG as LONG_WAIT

cdef double NEVER = NEVER_AT
cdef double LONG = LONG_WAIT


cdef class ProduceWaits:
    """The waits for what is in some queues.

    Args:
        queues: of the producer.
    """

    def __cinit__(self, Queues queues not None):
        self.queues = queues
        self.producer = queues.producer

    cdef double now(self) noexcept:
        return self.producer.env.now(self.producer.env.context)

    cdef tuple oldest(self):
        """Return queue and opening time of the oldest batch that has not ended, and the time now.
        """
        cdef int64_t queue_id = -1
        cdef double created = 0.0
        kf_producer_oldest(self.producer, &queue_id, &created)
        return queue_id, created, self.now()

    # ---- the fate of records ----

    def flush(self, double deadline):
        """Send everything that was accepted so far and wait until its fate is known.

        Args:
            deadline: monotonic seconds.

        Returns:
            How many records are still pending.
        """
        cdef kf_producer* producer = self.producer
        cdef double left
        cdef FlushWait wait
        if kf_producer_flushed(producer, kf_producer_serial(producer)):
            return 0
        self.queues.check_may_wait()
        wait = self.begin_flush(deadline)
        pending = 0
        try:
            while not wait.is_over():
                left = deadline - self.now()
                if left <= 0.0:
                    break
                with nogil:
                    kf_producer_wait_flushed(producer, wait.serial, min(KF_WAIT_SLICE, left))
                PyErr_CheckSignals()
                if not wait.is_over():
                    wait.next_look()
        finally:
            pending = wait.end_flush()
        return pending

    cpdef FlushWait begin_flush(self, double deadline):
        """Let every batch leave at once, until the flush ends; return its wait."""
        cdef FlushWait wait = FlushWait.__new__(FlushWait)
        wait.waits = self
        wait.serial = kf_producer_serial(self.producer)
        wait.deadline = deadline
        kf_add(&self.producer.flushing, 1)
        kf_producer_urge(self.producer)
        return wait

    # ---- room in buffer.memory ----

    cpdef bint has_room(self, size_t size) noexcept:
        """Return whether a caller that waits for so many bytes may try again. Any thread."""
        return kf_pool_has_room(&self.producer.pool, size)

    cpdef void begin_wait_for_room(self) noexcept:
        """Let every batch leave at once, as long as a caller waits for memory."""
        kf_add(&self.producer.pool.waiting, 1)
        kf_producer_urge(self.producer)

    cpdef void end_wait_for_room(self) noexcept:
        """Undo `begin_wait_for_room`."""
        kf_add(&self.producer.pool.waiting, -1)

    cdef void begin_room(self, room_wait* wait, double max_block, double now) noexcept:
        """Count a call that has to wait for memory, for `max_block` seconds at most."""
        kf_count(&self.producer.stats.blocked, 1)
        wait.began = now
        wait.deadline = wait.began + max_block
        wait.tell_at = wait.began + LONG

    cdef double next_look(self, room_wait* wait, str topic, double now) except -1.0:
        """Log a wait that has become long; return until when its caller sleeps at most.

        Raises:
            KafkaTimeoutError: there was no room within max.block.ms.
        """
        if now >= wait.deadline:
            raise self.no_room_error(wait, topic)
        if now >= wait.tell_at:
            wait.tell_at = NEVER
            if self.queues.explainer is not None:
                limit = wait.deadline - wait.began
                self.queues.explainer.say(
                    self.queues,
                    f"{self.no_room(topic)}; waiting up to max.block.ms ({limit:g} s)",
                    *self.oldest())
        return min(wait.deadline, wait.tell_at)

    cdef str no_room(self, str topic):
        """Return what is said of a caller that found no memory for a record."""
        limit = self.producer.pool.limit
        return f"no room in buffer.memory ({limit} bytes) for a record of topic {topic!r}"

    cdef object no_room_error(self, const room_wait* wait, str topic):
        """Return the error of a wait for memory that was too long."""
        limit = (wait.deadline - wait.began) * 1000
        what = f"{self.no_room(topic)} after max.block.ms ({limit:.0f})"
        queue_id, created, now = self.oldest()
        if self.queues.explainer is None:
            return KafkaTimeoutError(what)
        return self.queues.explainer.timeout_error(self.queues, what, queue_id,
                                                   min(wait.began, created), now)


cdef class FlushWait:
    """One flush: every batch leaves at once until `end_flush`. `ProduceWaits.begin_flush` makes it.
    """

    cpdef bint is_over(self) noexcept:
        """Return whether to wait no more: all is delivered or has failed, or nothing runs any more.
        """
        return (kf_producer_flushed(self.waits.producer, self.serial)
                or self.waits.queues.plane.dead)

    cpdef double next_look(self) except -1.0:
        """Log the reason of a flush that takes long; return until when its caller sleeps at most.
        """
        explainer = self.waits.queues.explainer
        if explainer is None:
            return self.deadline
        self.log = explainer.log_if_long(self.log, self.waits.queues, "flush() waits",
                                         *self.waits.oldest())
        return min(self.deadline, <double>self.log.deadline)

    def end_flush(self):
        """End the flush; return how many records, of those before it, are still pending."""
        kf_add(&self.waits.producer.flushing, -1)
        return kf_producer_pending_before(self.waits.producer, self.serial)


cdef class RoomWait:
    """One caller's wait for room in buffer.memory. It may find room twice, and too late.

    Args:
        waits: of the producer.
        topic: where the record goes.
        max_block: seconds that the caller waits, from now on.
    """

    def __cinit__(self, ProduceWaits waits not None, str topic not None, double max_block):
        self.waits = waits
        self.topic = topic
        waits.begin_room(&self.wait, max_block, waits.now())

    @property
    def deadline(self):
        """When max.block.ms ends."""
        return self.wait.deadline

    def next_look(self):
        """Log a wait that has become long; return until when its caller sleeps at most.

        Raises:
            KafkaTimeoutError: there was no room within max.block.ms.
        """
        return self.waits.next_look(&self.wait, self.topic, self.waits.now())

    def no_room_error(self):
        """Return the error of a wait that was too long."""
        return self.waits.no_room_error(&self.wait, self.topic)
