"""The data plane as an object: topics and queues, commands down, events up.

Events and rows leave as plain tuples and commands arrive as plain arguments: net/ translates them
to and from the control plane's records, so that the two planes never import each other.

Threads: any, with the GIL. `step` is the exception: it belongs to one thread at a time, the data
plane's own or, in a simulation, the caller's.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kafka_fast._wire._checksum cimport crc32c_join, crc32c_update
from kafka_fast.dataplane._sender cimport sender_destroy, sender_init, step
from kafka_fast.dataplane._topics cimport Topic, add_queues, free_topic
from kafka_fast.dataplane._tuples cimport event_tuple, node_dict, stats_dict
from kafka_fast.dataplane.link cimport *
from kafka_fast.dataplane.state cimport *

from kafka_fast.errors import UsageError, fresh_copy

WAIT_SLICE = KF_WAIT_SLICE

# The names of the codes that leave in tuples; net/ knows them by these.
EVENT_RESPONSE = KF_EVENT_RESPONSE
EVENT_PUNT = KF_EVENT_PUNT
EVENT_LINK_CLOSED = KF_EVENT_LINK_CLOSED
EVENT_THROTTLED = KF_EVENT_THROTTLED
EVENT_ROUTE = KF_EVENT_ROUTE
EVENT_REPORT = KF_EVENT_REPORT
EVENT_DUMP = KF_EVENT_DUMP
EVENT_BAD_ANSWER = KF_EVENT_BAD_ANSWER
EVENT_HEARTBEATS_ENDED = KF_EVENT_HEARTBEATS_ENDED

FORMAT_NAME = KF_TOPIC_NAME
FORMAT_COMPACT_NAME = KF_TOPIC_COMPACT_NAME
FORMAT_ID = KF_TOPIC_ID

VERDICT_FAIL = KF_VERDICT_FAIL
VERDICT_SUCCEED = KF_VERDICT_SUCCEED
VERDICT_SPLIT = KF_VERDICT_SPLIT

OUTCOME_NOT_SENT = KF_OUTCOME_NOT_SENT
OUTCOME_REJECTED = KF_OUTCOME_REJECTED
OUTCOME_MAYBE_WRITTEN = KF_OUTCOME_MAYBE_WRITTEN

cdef extern from "<unistd.h>" nogil:
    int getpid()

cdef double ALL_TIMES = 1e300  # later than the opening of any batch

cdef enum:
    BATCH_GROWTH = 262_144  # a batch is full at max(batch.size, this)


cdef uint8_t* copy_bytes(bytes data) except NULL:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef uint8_t* copy = <uint8_t*>malloc(size if size > 0 else 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, PyBytes_AS_STRING(data), size)
    return copy


@cython.no_gc_clear  # what it owns in C outlives its dicts
cdef class DataPlane:
    """One client's data plane.

    Args:
        environment: Clock, wake-ups and compression as C functions.
        buffer_memory: Bytes for batches (`buffer.memory`).
        batch_size, max_request_size, coalesce_bytes, max_frame: Bytes; see the configuration keys
            batch.size, max.request.size, request.coalesce.bytes, receive.message.max.bytes.
        linger, delivery_timeout, request_timeout: Seconds.
        max_in_flight: Produce requests in flight per link.
        max_idle: Seconds after which an unused link is closed; 0 keeps it.
        availability_timeout: Seconds after which the partitioner avoids partitions whose link
            takes nothing; 0 never does.
        codec: Compression code of the record batch attributes; 0 for none.
        idempotent: Number batches; nothing is sent before a producer id is there.
        acks_zero: Requests end when they are written.
        client_id: Names the client in the log.
    """

    def __cinit__(self, Environment environment, *, size_t buffer_memory, size_t batch_size,
                  size_t max_request_size, size_t coalesce_bytes, size_t max_frame,
                  double linger, double delivery_timeout, double request_timeout,
                  int max_in_flight, double max_idle=0.0, double availability_timeout=0.0,
                  int codec=0, bint idempotent=True, bint acks_zero=False, str client_id=""):
        cdef kf_env env = environment.env
        env.crc32c = crc32c_update
        env.crc32c_combine = crc32c_join
        self.environment = environment
        self.owner_pid = getpid()
        self.client_id = client_id
        self.topics = {}
        self.queues = []
        self.observers = {}
        self.ended = []
        self.plane = <kf_plane*>malloc(sizeof(kf_plane))
        if self.plane == NULL:
            raise MemoryError
        kf_plane_init(self.plane, &env, buffer_memory)
        self.plane.owner = <void*>self
        self.plane.batch_size = batch_size
        self.plane.max_request_size = max_request_size
        # A batch never needs more than a record that is just allowed.
        self.plane.seal_size = min(max(batch_size, <size_t>BATCH_GROWTH),
                                   max(max_request_size, batch_size))
        self.plane.coalesce_bytes = coalesce_bytes
        self.plane.max_frame = max_frame
        self.plane.linger = linger
        self.plane.delivery_timeout = delivery_timeout
        self.plane.request_timeout = request_timeout
        self.plane.max_in_flight = max_in_flight
        self.plane.max_idle = max_idle
        self.plane.availability_timeout = availability_timeout
        self.plane.codec = codec
        self.plane.idempotent = idempotent
        self.plane.acks_zero = acks_zero
        sender_init(&self.sender, self.plane)

    # ---- topics ----

    def topic(self, str name, uint64_t seed):
        """Return the topic of this name, made on first use.

        Args:
            seed: Random bits for the sticky partitioner's choices.
        """
        cdef Topic topic = self.topics.get(name)
        if topic is None:
            topic = Topic(name, seed, len(self.topics))
            self.topics[name] = topic
        return topic

    cdef Topic find_topic(self, str name):
        return self.topics.get(name)

    def set_partitions(self, str name, int32_t count):
        """Make queues for `count` partitions; returns the ids of the new ones."""
        cdef Py_ssize_t before = len(self.queues)
        add_queues(self.plane, self.queues, self.topics[name], count)
        return range(before, len(self.queues))

    def partition_count(self, str name):
        """Return how many partitions the topic has; 0 until metadata is there."""
        cdef Topic topic = self.topics.get(name)
        return 0 if topic is None else topic.topic.partition_count

    def set_available(self, int64_t queue_id, bint available):
        """Say whether the partition has a leader; the partitioner prefers those that have."""
        kf_set(&self.queue(queue_id).available, available)

    def queue_of(self, int64_t queue_id):
        """Return (topic name, partition) of a queue."""
        topic, partition = self.queues[queue_id]
        return (<Topic>topic).name, partition

    cdef kf_queue* queue(self, int64_t queue_id) except NULL:
        cdef Topic topic
        topic, partition = self.queues[queue_id]
        return topic.topic.queues[<int32_t>partition]

    # ---- commands ----

    def send_raw(self, int32_t link_id, int64_t token, bytes frame, double timeout):
        """Send a whole request (length included) and report its answer under `token`.

        Args:
            timeout: Seconds; without an answer by then the link is closed.
        """
        cdef uint8_t* data = copy_bytes(frame)
        cdef kf_command* command = kf_command_new(KF_COMMAND_SEND_RAW)
        command.link_id = link_id
        command.token = token
        command.at = timeout
        command.size = PyBytes_GET_SIZE(frame)
        command.bytes = data
        kf_plane_command(self.plane, command)

    def close_link(self, int32_t link_id):
        """Close a link; its batches come back, and LINK_CLOSED is reported."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_CLOSE_LINK)
        command.link_id = link_id
        kf_plane_command(self.plane, command)

    def start_heartbeats(self, int32_t link_id, int64_t token, bytes frame, double period,
                         bytes expected_body, double timeout, double delay=0.0,
                         int32_t epoch_pos=0):
        """Send a request after `delay` and every `period` seconds, until `set_alive_until`'s time.

        An answer that equals `expected_body` behind the correlation id is swallowed. Any other
        one is a RESPONSE under `token`. The end of the link is one, too, and ends the heartbeats.

        Args:
            token: Never used for other heartbeats.
            frame: The request, length included.
            timeout: Seconds; without an answer by then the link is closed.
            epoch_pos: Where the frame has the member's epoch or generation, which is then that of
                the last answer that told one: to any ConsumerGroupHeartbeat, which tells the
                period as well, or to a JoinGroup that `send_between` sent. Before there is one no
                heartbeat is sent. 0: the frame stays as it is.
        """
        cdef kf_command* command
        cdef kf_heartbeat* heartbeat
        if not 0 <= epoch_pos <= len(frame) - 4:
            raise UsageError("the epoch does not stand in the frame")
        heartbeat = <kf_heartbeat*>calloc(1, sizeof(kf_heartbeat))
        if heartbeat == NULL:
            raise MemoryError
        try:
            heartbeat.frame = copy_bytes(frame)
            heartbeat.expected = copy_bytes(expected_body)
        except BaseException:
            kf_heartbeat_free(heartbeat)
            raise
        heartbeat.token = token
        heartbeat.link_id = link_id
        heartbeat.frame_size = PyBytes_GET_SIZE(frame)
        heartbeat.expected_size = PyBytes_GET_SIZE(expected_body)
        heartbeat.due = delay
        heartbeat.epoch_pos = epoch_pos
        heartbeat.period = period
        heartbeat.timeout = timeout
        command = kf_command_new(KF_COMMAND_START_HEARTBEATS)
        command.heartbeat = heartbeat
        kf_plane_command(self.plane, command)

    def stop_heartbeats(self, int64_t token):
        """Send these heartbeats no more; an answer that is still to come is swallowed."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_STOP_HEARTBEATS)
        command.token = token
        kf_plane_command(self.plane, command)

    def send_between(self, int64_t token, int64_t own_token, int64_t heard, bytes frame,
                     double timeout):
        """Send another request once, as soon as none of these heartbeats is in flight.

        Its answer is a RESPONSE under `own_token`. The request is dropped if a RESPONSE of the
        heartbeats is still to be heard, or comes up before the request is sent.

        Args:
            token: The heartbeats'.
            own_token: Its own.
            heard: How many RESPONSEs of the heartbeats, and of requests between them, were heard.
            frame: The request, length included.
            timeout: Seconds; without an answer by then the link is closed.
        """
        cdef uint8_t* data = copy_bytes(frame)
        cdef kf_command* command = kf_command_new(KF_COMMAND_SEND_BETWEEN)
        command.token = token
        command.serial = own_token
        command.generation = heard
        command.at = timeout
        command.bytes = data
        command.size = PyBytes_GET_SIZE(frame)
        kf_plane_command(self.plane, command)

    def set_alive_until(self, double until):
        """Let heartbeats be sent until then (monotonic seconds): the user shows signs of life."""
        kf_plane_set_alive(self.plane, until)

    def program(self, int32_t link_id, int16_t version, int topic_format, bytes prefix,
                int32_t correlation_pos):
        """Let the link carry Produce requests that begin with `prefix`."""
        cdef uint8_t* data = copy_bytes(prefix)
        cdef kf_command* command = kf_command_new(KF_COMMAND_PROGRAM)
        command.link_id = link_id
        command.version = version
        command.flags = topic_format
        command.pos = correlation_pos
        command.size = PyBytes_GET_SIZE(prefix)
        command.bytes = data
        kf_plane_command(self.plane, command)

    def name_topic(self, str name, int topic_format, bytes field):
        """Set how requests of this format name the topic."""
        cdef kf_topic* topic = (<Topic>self.topics[name]).topic
        cdef uint8_t* data = copy_bytes(field)
        cdef kf_command* command = kf_command_new(KF_COMMAND_TOPIC)
        command.topic = topic
        command.flags = topic_format
        command.size = PyBytes_GET_SIZE(field)
        command.bytes = data
        kf_plane_command(self.plane, command)

    def route(self, int64_t queue_id, int32_t link_id):
        """Send the queue's batches to this link from now on; 0: to none."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_ROUTE)
        command.queue = self.queue(queue_id)
        command.link_id = link_id
        kf_plane_command(self.plane, command)

    def set_producer_id(self, int64_t producer_id, int16_t epoch):
        """Use this producer id for queues that have nothing unresolved."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_PRODUCER_ID)
        command.producer_id = producer_id
        command.epoch = epoch
        kf_plane_command(self.plane, command)

    def judge(self, int64_t queue_id, int64_t generation, int verdict, int64_t serial,
              int32_t slice, *, int32_t error_code=0, int32_t outcome=0, int64_t base_offset=-1,
              int64_t timestamp_ms=-1, size_t size=0):
        """Pass a verdict on one batch of a frozen queue; see VERDICT_*."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_VERDICT)
        command.queue = self.queue(queue_id)
        command.generation = generation
        command.verdict = verdict
        command.serial = serial
        command.slice = slice
        command.error_code = error_code
        command.outcome = outcome
        command.base_offset = base_offset
        command.timestamp_ms = timestamp_ms
        command.size = size
        kf_plane_command(self.plane, command)

    def renumber(self, int64_t queue_id, int64_t generation, int64_t producer_id, int16_t epoch,
                 int32_t base_sequence, int64_t serial, int32_t slice):
        """Number a frozen queue's unresolved batches anew; none may have an unknown fate."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_VERDICT)
        command.queue = self.queue(queue_id)
        command.generation = generation
        command.verdict = KF_VERDICT_RENUMBER
        command.producer_id = producer_id
        command.epoch = epoch
        command.base_sequence = base_sequence
        command.serial = serial
        command.slice = slice
        kf_plane_command(self.plane, command)

    def thaw(self, int64_t queue_id, int64_t generation, double at, bint single):
        """Let a frozen queue go on.

        Args:
            at: Not before this time.
            single: One batch in flight until the next success.
        """
        cdef kf_command* command = kf_command_new(KF_COMMAND_THAW)
        command.queue = self.queue(queue_id)
        command.generation = generation
        command.at = at
        command.flags = single
        kf_plane_command(self.plane, command)

    def fail_queue(self, int64_t queue_id, int32_t error_code, int32_t outcome):
        """Fail the queue's batches that are in no request."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_FAIL_QUEUE)
        command.queue = self.queue(queue_id)
        command.error_code = error_code
        command.outcome = outcome
        kf_plane_command(self.plane, command)

    # ---- who may wait ----

    def set_callback_thread(self, unsigned long ident):
        """Name the thread that runs the users' callbacks: it must never wait for itself."""
        self.callback_thread = ident

    def check_owner(self):
        """Raise UsageError in a forked child, where nothing of the parent's plane may be locked."""
        if self.inherited:
            raise UsageError("this producer belongs to the parent of this process: make one in "
                             "each process")

    def check_lives(self):
        """Raise UsageError if nothing will be delivered any more."""
        self.check_owner()
        if self.dead:
            raise UsageError("this producer does not run any more: nothing will be delivered")

    def check_may_wait(self):
        """Raise UsageError if this thread would wait for ever."""
        self.check_lives()
        if PyThread_get_thread_ident() == self.callback_thread:
            raise UsageError("a delivery callback must not wait for deliveries: it would wait "
                             "for itself")

    def set_callback_starter(self, starter):
        """Have `starter()` called once, before the first callback is registered."""
        self.callback_starter = starter

    def set_loop_bridge(self, bridge):
        """Have `bridge(loop)` find or make what an event loop awaits, a LoopWaits."""
        self.loop_bridge = bridge

    def set_guide(self, guide):
        """Have failures and long waits explained by this, see net/guide."""
        self.guide = guide

    cdef tuple oldest(self):
        """Return queue and time of the batch that was opened first of those under way, and now."""
        cdef int64_t queue_id = -1
        cdef double created = 0.0
        kf_plane_oldest(self.plane, &queue_id, &created)
        return queue_id, created, self.plane.env.now(self.plane.env.context)

    def refuse(self, error=None):
        """Accept no record from now on; what was accepted goes on.

        Args:
            error: What sends raise; None: that the producer is closed.
        """
        self.refusal = error
        self.refuses = True

    def raise_refusal(self):
        """Raise why no record is accepted."""
        self.check_owner()
        if self.refusal is not None:
            raise fresh_copy(self.refusal)
        raise UsageError("the producer is closed")

    def mark_dead(self):
        """Nothing is accepted or delivered from now on: it is closed."""
        self.refuses = True
        self.dead = True

    def mark_inherited(self):
        """This process is a child of the one that made the plane: everything here refuses."""
        self.inherited = True
        self.plane.inherited = True
        self.mark_dead()

    def flush(self, double deadline):
        """Send everything that was accepted so far and wait until its fate is known.

        Args:
            deadline: Monotonic seconds; 0 waits without one.

        Returns:
            How many records are still pending.
        """
        cdef kf_plane* plane = self.plane
        cdef int64_t serial = kf_plane_serial(plane)
        cdef double now
        cdef object wait = None
        if kf_plane_flushed(plane, serial):
            return 0
        self.check_may_wait()
        kf_add(&plane.flushing, 1)
        try:
            kf_plane_urge(plane)
            while not kf_plane_flushed(plane, serial) and not self.dead:
                now = plane.env.now(plane.env.context)
                if deadline != 0.0 and now >= deadline:
                    break
                with nogil:
                    kf_plane_wait_flushed(plane, serial, KF_WAIT_SLICE if deadline == 0.0
                                          else min(KF_WAIT_SLICE, deadline - now))
                PyErr_CheckSignals()
                if self.guide is not None:
                    wait = self.guide.look(wait, self, "flush() waits", *self.oldest())
        finally:
            kf_add(&plane.flushing, -1)
        return kf_plane_pending_before(plane, serial)

    def deliver_soon(self):
        """From now on let every batch leave at once, as during a flush; waits for nothing."""
        kf_add(&self.plane.flushing, 1)
        kf_plane_urge(self.plane)

    def shut_down(self):
        """Close all links and fail whatever has not ended. The data plane has stopped."""
        cdef kf_queue* queue = kf_plane_queues(self.plane)
        cdef kf_batch* batch
        cdef int outcome
        self.mark_dead()
        kf_set(&self.plane.closed, 1)
        while queue != NULL:  # a bulk call without the GIL may still be appending
            kf_queue_take_overdue(queue, ALL_TIMES)
            queue = queue.registered
        sender_destroy(&self.sender)
        while self.plane.oldest != NULL:
            batch = self.plane.oldest
            kf_set(&batch.state, KF_BATCH_WAITING)
            outcome = KF_OUTCOME_MAYBE_WRITTEN if batch.attempts > 0 else KF_OUTCOME_NOT_SENT
            kf_batch_end(batch, KF_BATCH_FAILED, KF_ERROR_CLOSED, outcome, -1, -1)

    def mark_told(self):
        """What `shut_down` has failed was told to the user, whoever still holds handles of it."""
        self.told = True

    def request_dump(self, int64_t token):
        """Have every link's debug ring reported as DUMP events; one with link id 0 ends them."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_DUMP)
        command.token = token
        kf_plane_command(self.plane, command)

    # ---- events and turns ----

    def take_events(self):
        """Return what happened since the last call, in order.

        Returns:
            Tuples (kind, link_id, code, detail, token, frame, rows); see kf_plane.h for the kinds.
        """
        cdef kf_event* event = kf_plane_take_events(self.plane)
        cdef kf_event* following
        cdef list events = []
        while event != NULL:
            following = event.next
            events.append(event_tuple(event))
            kf_event_free(event)
            event = following
        return events

    def step(self, double now):
        """Take one turn; returns when to call again at the latest (0: only when woken)."""
        cdef double until
        with nogil:
            until = step(&self.sender, now)
        return until

    # ---- numbers ----

    def stats(self):
        """Return counters and histograms; times in microseconds, sizes in bytes."""
        self.check_owner()
        return stats_dict(&self.plane.stats, kf_pool_reserved(&self.plane.pool))

    def node_stats(self):
        """Return counters for each node that there ever was a link to, by node id.

        All links to a node count together, whatever they are for; -1: to a bootstrap server.
        """
        self.check_owner()
        cdef dict found = {}
        cdef kf_node* node
        kf_lock(&self.plane.lock)
        node = self.plane.nodes
        kf_unlock(&self.plane.lock)
        while node != NULL:
            found[node.id] = node_dict(node)
            node = node.next
        return found

    def topic_stats(self):
        """Return counters for each topic, by name."""
        cdef dict found = {}
        cdef kf_topic* topic
        cdef int32_t i
        cdef int64_t acked, acked_bytes, failed
        for name, held in self.topics.items():
            topic = (<Topic>held).topic
            acked = acked_bytes = failed = 0
            for i in range(topic.partition_count):
                acked += kf_counted(&topic.queues[i].records_acked)
                acked_bytes += kf_counted(&topic.queues[i].bytes_acked)
                failed += kf_counted(&topic.queues[i].records_failed)
            found[name] = {"partitions": topic.partition_count, "records_acked": acked,
                           "bytes_acked": acked_bytes, "records_failed": failed}
        return found

    def take_used_topics(self):
        """Return the topics that records were sent to since the last call."""
        return [name for name, topic in self.topics.items()
                if kf_swap(&(<Topic>topic).topic.used, 0)]

    def pending(self):
        """Return how many accepted records have not ended yet."""
        self.check_owner()
        return kf_plane_pending_before(self.plane, kf_plane_serial(self.plane))

    def __dealloc__(self):
        if self.plane == NULL or getpid() != self.owner_pid:
            return  # after a fork the locks may be held for ever by threads that are not here
        self.shut_down()
        if self.unlogged is not None:  # of handles that were dropped after the client had ended
            self.unlogged.log(self.client_id)
        self.ended = self.last_observations = None  # these give up batches, as the next line does,
        kf_plane_destroy(self.plane)                # and batches know their queue
        for topic in self.topics.values():
            free_topic(<Topic>topic)
        free(self.plane)
