"""The produce side of the data plane as an object: topics and their queues.

Commands arrive packed: `producer._produce_carrier` translates them from the control plane's
records, so that the two planes never import each other.

Thread: any, with the GIL.
"""

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int32_t, int64_t, uint64_t

from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.core._events cimport produce_stats_dict
from kafka_fast.dataplane.produce._losses cimport LossCounts
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.errors import Outcome, UsageError, fresh_copy

cdef extern from "<unistd.h>" nogil:
    int getpid()

cdef enum:
    BATCH_GROWTH = 262_144  # a batch is full at max(batch.size, this)


cdef dict OUTCOMES = {
    Outcome.NOT_SENT: KF_OUTCOME_NOT_SENT,
    Outcome.REJECTED: KF_OUTCOME_REJECTED,
    Outcome.MAYBE_WRITTEN: KF_OUTCOME_MAYBE_WRITTEN,
}


cdef int outcome_code(object outcome) except -1:
    return OUTCOMES[outcome]


cdef class TopicQueues:
    def __cinit__(self, str name):
        self.name = name

    @property
    def partition_count(self):
        """Partitions known so far; 0 until metadata is there."""
        return self.topic.partition_count


@cython.no_gc_clear  # __dealloc__ gives up batches, which needs the plane
cdef class Queues:
    """What a client produces. One for each data plane, made before that takes its first turn.

    Args:
        plane: the data plane.
        buffer_memory: bytes for batches (`buffer.memory`).
        batch_size, max_request_size, coalesce_bytes: Bytes; see the configuration keys
            batch.size, max.request.size, request.coalesce.bytes.
        linger, delivery_timeout: Seconds.
        max_in_flight: produce requests in flight per link.
        availability_timeout: seconds after which the partitioner avoids partitions whose link
            takes nothing; 0 never does.
        codec: compression code of the record batch attributes; 0 for none.
        idempotent: number batches; nothing is sent before a producer id is there.
        transactional: batches belong to transactions; no record is accepted before `admit`.
        acks_zero: requests end when they are written.
        client_id: names the client in the log.
        exit_status: of a process in which failures were lost (exit.status.on.loss).
    """

    def __cinit__(self, DataPlane plane not None, *, size_t buffer_memory, size_t batch_size,
                  size_t max_request_size, size_t coalesce_bytes, double linger,
                  double delivery_timeout, int max_in_flight, double availability_timeout=0.0,
                  int codec=0, bint idempotent=True, bint transactional=False,
                  bint acks_zero=False, str client_id="", int exit_status=0):
        cdef kf_producer* producer
        if plane.plane.producer != NULL:
            raise UsageError("this data plane has its queues already")
        self.owner_pid = getpid()
        self.client_id = client_id
        self.exit_status = exit_status
        self.topics = {}
        self.places = []
        self.observers = {}
        self.ended = []
        self.lost = LossCounts.__new__(LossCounts)
        self.unlogged = LossCounts.__new__(LossCounts)
        self.unread = LossCounts.__new__(LossCounts)
        producer = kf_producer_new(plane.plane, buffer_memory)
        if producer == NULL:
            raise MemoryError
        self.plane = plane
        self.producer = producer
        producer.owner = <void*>self
        producer.batch_size = batch_size
        producer.max_request_size = max_request_size
        # A batch never needs more than a record that is just allowed.
        producer.seal_size = min(max(batch_size, <size_t>BATCH_GROWTH),
                                 max(max_request_size, batch_size))
        producer.coalesce_bytes = coalesce_bytes
        producer.linger = linger
        producer.delivery_timeout = delivery_timeout
        producer.max_in_flight = max_in_flight
        producer.availability_timeout = availability_timeout
        producer.codec = codec
        producer.idempotent = idempotent
        producer.transactional = transactional
        producer.acks_zero = acks_zero
        plane.plane.producer = producer

    # ---- topics ----

    def topic(self, str name, uint64_t seed):
        """Return the topic of this name, made on first use.

        Args:
            seed: random bits for the sticky partitioner's choices.
        """
        cdef TopicQueues topic = self.topics.get(name)
        if topic is None:
            topic = TopicQueues(name)
            topic.topic = kf_topic_new(self.producer, seed)
            if topic.topic == NULL:
                raise MemoryError
            self.topics[name] = topic
        return topic

    cdef TopicQueues find_topic(self, str name):
        return self.topics.get(name)

    def set_partitions(self, str name, int32_t first, queue_ids not None):
        """Make queues for the topic's partitions from `first` on. Records may go to all of them.

        Args:
            first: the number of queues that the topic has so far.
            queue_ids: a range: the ids of the new queues, which go on from the last one.

        Raises:
            UsageError: `first` or the ids do not follow from what there is already.
        """
        cdef TopicQueues topic = self.topics[name]
        cdef int64_t first_id = len(self.places)
        cdef int32_t count = first + len(queue_ids)
        if first != topic.topic.queue_count or queue_ids != range(first_id,
                                                                  first_id + len(queue_ids)):
            raise UsageError(
                f"topic {name!r} has {topic.topic.queue_count} of {first_id} queues: queues "
                f"{queue_ids} cannot be those of the partitions from {first} on"
            )
        self.places += [(topic, partition) for partition in range(first, count)]
        if not kf_topic_grow(self.producer, topic.topic, count, first_id):
            del self.places[first_id:]
            raise MemoryError

    def set_partition_count(self, str name, int32_t count):
        """Let records go to the first `count` partitions only: a topic that was made anew may have
        fewer than before. The queues of the others stay.

        Raises:
            UsageError: there are not so many queues, or it is none.
        """
        cdef TopicQueues topic = self.topics[name]
        if count < 1 or count > topic.topic.queue_count:
            raise UsageError(f"topic {name!r} has {topic.topic.queue_count} queues: {count} "
                             "partitions cannot be used")
        kf_topic_resize(topic.topic, count)

    def partition_count(self, str name):
        """Return how many partitions the topic has; 0 until metadata is there."""
        cdef TopicQueues topic = self.topics.get(name)
        return 0 if topic is None else topic.topic.partition_count

    def set_available(self, int64_t queue_id, bint available):
        """Say whether the partition has a leader: the partitioner prefers such partitions."""
        kf_set(&self.queue(queue_id).available, available)

    def queue_of(self, int64_t queue_id):
        """Return (topic name, partition) of a queue."""
        topic, partition = self.places[queue_id]
        return (<TopicQueues>topic).name, partition

    cdef kf_queue* queue(self, int64_t queue_id) except NULL:
        cdef TopicQueues topic
        topic, partition = self.places[queue_id]
        return topic.topic.queues[<int32_t>partition]

    # ---- who is told of failures ----

    @property
    def has_unlogged(self):
        """Whether there are failures that nobody can observe, and that were not logged."""
        return bool(self.unlogged.records)

    # ---- who may wait ----

    @property
    def dead(self):
        """Whether nothing will be delivered any more."""
        return self.plane.dead

    @property
    def is_inherited(self):
        """Whether this process is a child of the one that made this."""
        return getpid() != self.owner_pid

    def check_owner(self):
        """Raise UsageError in a forked child, where nothing of the parent's plane may be locked."""
        if self.plane.inherited:
            raise UsageError("this producer belongs to the parent of this process: make one in "
                             "each process")

    def check_lives(self):
        """Raise UsageError if nothing will be delivered any more."""
        self.check_owner()
        if self.plane.dead:
            self.prepare_refusal()
            raise UsageError("this producer does not run any more: nothing will be delivered")

    def check_may_wait(self):
        """Raise UsageError if this thread would wait forever."""
        self.check_lives()
        if PyThread_get_thread_ident() == self.callback_thread:
            raise UsageError("a delivery callback must not wait for deliveries: it would wait "
                             "for itself")

    def refuse(self, error=None):
        """Accept no record from now on; what was accepted goes on.

        Args:
            error: what sends raise; None: that the producer is closed.
        """
        self.refusal = error
        self.refuses = True
        self.is_held = False

    def hold(self, error not None):
        """Accept no record until `admit`: sends raise this error. What was accepted goes on.

        A call of another thread that is at work, without the GIL or in a serializer, accepts no
        record either from now on.
        """
        if self.refuses and not self.is_held:
            return  # for good
        self.refusal = error
        if not self.is_held:
            self.refuses = self.is_held = True
            kf_producer_hold(self.producer)

    def admit(self):
        """Accept records again, unless they are refused for good."""
        if self.is_held:
            self.is_held = self.refuses = False
            self.refusal = None
            kf_set(&self.producer.held, 0)

    def raise_refusal(self):
        """Raise why no record is accepted."""
        self.check_owner()
        if self.refusal is not None:
            raise fresh_copy(self.refusal)
        self.prepare_refusal()
        raise UsageError("the producer is closed")

    cdef int prepare_refusal(self) except -1:
        if (self.before_refusal is not None
                and PyThread_get_thread_ident() != self.callback_thread):
            self.before_refusal()
        return 0

    def mark_inherited(self):
        """Note that this process is a child of the plane's: everything here refuses."""
        self.refuses = True
        self.plane.mark_inherited()

    def shut_down(self):
        """Accept no more records, and shut the data plane down. Its thread must have ended."""
        self.refuses = True
        self.plane.shut_down()

    # ---- numbers ----

    def stats(self):
        """Return counters and histograms; times in microseconds, sizes in bytes."""
        self.check_owner()
        return produce_stats_dict(&self.producer.stats, kf_pool_reserved(&self.producer.pool))

    @property
    def failed_records(self):
        """How many records have failed so far, or were refused with others of a bulk call."""
        return kf_counted(&self.producer.stats.records_failed) + self.refused_rows

    @property
    def sent_batches(self):
        """How many batches were handed to a link so far."""
        return kf_counted(&self.producer.stats.queue_time.count)

    def topic_stats(self):
        """Return counters for each topic, by name."""
        cdef dict found = {}
        cdef kf_topic* topic
        cdef int32_t i
        cdef int64_t acked, acked_bytes, failed
        for name, held in self.topics.copy().items():  # the control thread may add one meanwhile
            topic = (<TopicQueues>held).topic
            acked = acked_bytes = failed = 0
            for i in range(topic.queue_count):
                acked += kf_counted(&topic.queues[i].records_acked)
                acked_bytes += kf_counted(&topic.queues[i].bytes_acked)
                failed += kf_counted(&topic.queues[i].records_failed)
            found[name] = {"partitions": topic.partition_count, "records_acked": acked,
                           "bytes_acked": acked_bytes, "records_failed": failed}
        return found

    def take_used_topics(self):
        """Return the topics that records were sent to since the last call."""
        return [name for name, topic in self.topics.items()
                if kf_swap(&(<TopicQueues>topic).topic.used, 0)]

    def pending(self):
        """Return how many accepted records have not ended yet."""
        self.check_owner()
        return kf_producer_pending_before(self.producer, kf_producer_serial(self.producer))

    def __dealloc__(self):
        if self.producer == NULL or getpid() != self.owner_pid:
            return  # after a fork the locks may be held by threads that the fork did not copy
        # These give up their batches. A batch needs its queue, which the plane frees later.
        self.observers = self.ended = self.last_observations = None
        self.lost = self.unlogged = self.unread = None
