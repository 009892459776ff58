"""The append path: `send` and what stands behind it.

`Producer` inherits from `Accumulator`, so that no Python frame stands around the hot call. A record
is encoded in place into its partition's open batch, under that partition's lock. Nothing but its
handle is allocated, if the caller asked for one.

What only Python knows (asking for metadata, serializers) is left to methods that `Producer`
implements: `_need_topic` and `_serialize`.

Thread: any caller's, with the GIL.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._produce_waits cimport ProduceWaits, room_wait
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues
from kafka_fast.sending._awaiting cimport running_loop
from kafka_fast.sending._delivery cimport DeliveryFuture, new_delivery, observe_beside
from kafka_fast.sending._fields cimport (
    borrow,
    borrowed,
    check_callback,
    check_partition,
    check_timestamp,
    encode_headers,
    give_back,
)
from kafka_fast.sending._observers cimport observe_alone
from kafka_fast.sending._partitioner cimport (
    PARTITIONER_BUILT_IN,
    PARTITIONER_CUSTOM,
    PARTITIONER_ROUND_ROBIN,
    choose_partition,
    draw_partition,
    is_sticky,
)
from kafka_fast.sending.entry cimport (
    call_as_it_stands,
    entry,
    is_only_name,
    is_plain_bytes,
    is_plain_str,
    names_third,
    or_null,
    replace_entry,
    result_of,
)

import warnings

from kafka_fast.errors import DeliveryError, Outcome, UsageError, WouldWaitError, broker_error
from kafka_fast.peer_names import PRODUCER_ARGUMENTS

cdef extern from "Python.h":
    char* bytes_of "PyBytes_AS_STRING"(PyObject* item)
    Py_ssize_t size_of "PyBytes_GET_SIZE"(PyObject* item)
    bint is_callable "PyCallable_Check"(PyObject* item)

cdef int MESSAGE_TOO_LARGE = 10


cdef str name_of_topic(object topic):
    """Return a topic's name as exactly a str: some have an Enum for their topics."""
    if is_plain_str(<PyObject*>topic):
        return topic
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {type(topic).__name__}")
    return str.__str__(topic)


cdef class Accumulator:
    """The part of a producer that takes records.

    Args:
        queues: where they go.
        max_block: seconds that a call may wait for metadata or memory (`max.block.ms`).
        partitioner: None for the built-in one, "round_robin", or a callable
            `(topic, key, value, partition_count) -> partition`.
        ignore_keys, adaptive: partitioner.ignore.keys, partitioner.adaptive.partitioning.enable.
        on_delivery: called as `(error, metadata)` for every record, or None.
        transforms: keys and values go through `_serialize` first.
        never_waits: calls raise WouldWaitError instead of waiting: they run in an event loop.
    """

    def __cinit__(self):
        # Here the caller's frame is the innermost one. The producer itself would not do: CPython
        # 3.11's tracemalloc finds no object that has a managed __dict__.
        self._origin = object()
        self.last_name = self._origin  # nobody's: None may be a caller's mistake

    def __init__(self, Queues queues, *, double max_block, object partitioner=None,
                 bint ignore_keys=False, bint adaptive=True, object on_delivery=None,
                 bint transforms=False, bint never_waits=False):
        self._queues = queues
        self._waits = ProduceWaits(queues)
        self.max_block = max_block
        self.how.ignore_keys = ignore_keys
        self.how.adaptive = adaptive
        self.how.kind = PARTITIONER_BUILT_IN
        if partitioner == "round_robin":
            self.how.kind = PARTITIONER_ROUND_ROBIN
        elif partitioner is not None:
            self.how.kind = PARTITIONER_CUSTOM
            self.custom_partitioner = partitioner
        self.on_delivery = on_delivery
        self.transforms = transforms
        self.never_waits = never_waits
        self.plain = not transforms and self.how.kind != PARTITIONER_CUSTOM

    # ---- what Python knows ----

    def _need_topic(self, name):
        """Wait until the topic's partitions are known; raises if that fails or takes too long."""
        raise UsageError(f"nothing is known of topic {name!r}")

    def _serialize(self, topic, key, value, headers):
        """Return (key, value) as bytes-like objects, str or None."""
        return key, value

    # ---- the way of a record ----

    cdef TopicQueues topic_of(self, object name):
        """Return the topic, with at least one partition."""
        cdef TopicQueues topic
        if name is self.last_name:
            return self.last_topic
        name = name_of_topic(name)
        topic = self._queues.find_topic(name)
        if topic is None or topic.topic.partition_count == 0:
            self.mind_event_loop(
                f"the metadata of topic {name!r}: fetch them first, with `await "
                f"asyncio.to_thread(producer.partitions_for, {name!r})`, or call send")
            self._need_topic(name)
            if self._queues.refuses:  # the producer was closed while this waited
                self._queues.raise_refusal()
            topic = self._queues.find_topic(name)
        self.last_topic = topic
        self.last_name = name
        return topic

    cdef int mind_event_loop(self, str what) except -1:
        """Warn once if the call is about to wait in a thread whose event loop would stand still.

        Cython's functions have no frames: stack level 1 is the caller's line.
        """
        if (self.has_warned or self.never_waits or self.max_block <= 0.0
                or running_loop() is None):
            return 0
        self.has_warned = True
        warnings.warn(
            f"send holds up the event loop that runs in this thread while it waits for {what} in "
            "another thread: `await asyncio.to_thread(producer.send, ...)`; or use the Producer "
            "of kafka_fast.aio",
            RuntimeWarning, stacklevel=1)
        return 0

    cdef int refuse_size(self, TopicQueues topic, const kf_record* record) except -1:
        cdef size_t size = max(0, record.key_len) + max(0, record.value_len)
        cause = broker_error(MESSAGE_TOO_LARGE,
                             f"a record of {size} bytes for topic {topic.name!r} is larger than "
                             f"max.request.size ({self._queues.producer.max_request_size}) allows")
        raise DeliveryError(str(cause), outcome=Outcome.NOT_SENT, first=cause,
                            topic=topic.name) from cause

    cdef int wait_for_memory(self, TopicQueues topic, size_t need, room_wait* wait) except -1:
        """Wait a moment for `need` bytes of buffer.memory; raises after max.block.ms in all."""
        cdef kf_producer* producer = self._queues.producer
        cdef double now = self._waits.now()
        cdef double left
        if self._queues.refuses and kf_get(&producer.held):
            self._queues.raise_refusal()  # its transaction has ended since the call has begun
        if self.never_waits:
            self.refuse_to_wait(topic, need)
        if wait.began == 0.0:
            self._queues.check_may_wait()
            self.mind_event_loop("room in buffer.memory: call it")
            self._waits.begin_room(wait, self.max_block, now)
        self.refuse_too_large(topic, need)
        left = self._waits.next_look(wait, topic.name, now) - now
        self._waits.begin_wait_for_room()
        with nogil:
            kf_pool_wait(&producer.pool, need, min(KF_WAIT_SLICE, left))
        self._waits.end_wait_for_room()
        PyErr_CheckSignals()
        if self._queues.plane.dead:
            self._queues.check_may_wait()
        return 0

    cdef int refuse_too_large(self, TopicQueues topic, size_t need) except -1:
        cdef size_t limit = self._queues.producer.pool.limit
        if need > limit:
            raise UsageError(f"a record of {need} bytes for topic {topic.name!r} is larger than "
                             f"buffer.memory ({limit})")
        return 0

    cdef int refuse_to_wait(self, TopicQueues topic, size_t need) except -1:
        self._queues.check_may_wait()
        self.refuse_too_large(topic, need)
        raise WouldWaitError(self._waits.no_room(topic.name), topic=topic.name, size=need)

    # ---- the way of a record, for each kind of call ----

    cdef int add(self, object topic_name, object value, object key, object partition,
                 object timestamp_ms, object headers, int hold, appended* place) except -1:
        """Bring one record from Python's objects into the open batch."""
        cdef TopicQueues topic
        if self._queues.refuses:
            self._queues.raise_refusal()
        topic = self.topic_of(topic_name)
        if self.transforms:
            key, value = self._serialize(topic_name, key, value, headers)
        if self.how.kind == PARTITIONER_CUSTOM and partition is None:
            partition = self.custom_partitioner(topic_name, key, value,
                                                topic.topic.partition_count)
        return self.add_prepared(topic, value, key, partition, timestamp_ms, headers, hold, place)

    cdef int add_prepared(self, TopicQueues topic, object value, object key, object partition,
                          object timestamp_ms, object headers, int hold,
                          appended* place) except -1:
        """Bring a record in whose key, value and partition are chosen."""
        cdef borrowed key_bytes, value_bytes
        cdef kf_record record
        cdef bytes encoded = None
        cdef str topic_name = topic.name
        cdef kf_producer* producer = self._queues.producer
        if timestamp_ms is None:
            place.timestamp = producer.env.wall_ms(producer.env.context)
        else:
            place.timestamp = check_timestamp(self._queues, topic, timestamp_ms)
        record.headers = NULL
        record.headers_size = 0
        if headers is not None:
            encoded = encode_headers(headers, topic_name)
            if encoded is not None:
                record.headers = <const uint8_t*>PyBytes_AS_STRING(encoded)
                record.headers_size = PyBytes_GET_SIZE(encoded)
        record.key = NULL
        record.key_len = -1
        if PyBytes_CheckExact(value) and (key is None or PyBytes_CheckExact(key)):
            # The common case, in a straight line: nothing has to be given back.
            record.value = <const uint8_t*>PyBytes_AS_STRING(value)
            record.value_len = PyBytes_GET_SIZE(value)
            if key is not None:
                record.key = <const uint8_t*>PyBytes_AS_STRING(key)
                record.key_len = PyBytes_GET_SIZE(key)
            return append(self, topic, &record, partition, hold, place)
        borrow(&value_bytes, value, topic_name, "the value")
        key_bytes.has_view = False
        record.value = value_bytes.data
        record.value_len = value_bytes.len
        try:
            if key is not None:
                borrow(&key_bytes, key, topic_name, "the key")
                record.key = key_bytes.data
                record.key_len = key_bytes.len
            append(self, topic, &record, partition, hold, place)
        finally:
            give_back(&value_bytes)
            give_back(&key_bytes)
        return 0

    # ---- single records ----

    def send(self, topic, value=None, key=None, *, partition=None, timestamp_ms=None,
             headers=None, on_delivery=None):
        """Send a record and return a handle of its delivery.

        Args:
            topic: its name.
            value, key: bytes, str (sent as UTF-8), any bytes-like object, or None; with
                serializers, whatever those take.
            partition: number of the partition; None lets the partitioner choose.
            timestamp_ms: Unix time in ms, or a datetime with a time zone; None is now.
            headers: (key, value) pairs or a mapping.
            on_delivery: called as `(error, metadata)` on the callback thread, once.

        Returns:
            DeliveryFuture of the record.

        Raises:
            DeliveryError: the record is larger than max.request.size.
            KafkaTimeoutError: no metadata, or no room in buffer.memory, within max.block.ms.
            SerializationError, TypeError: The key, value or a header is not what it must be.
            UsageError: the producer is closed, the partition does not exist, or the record is
                larger than buffer.memory.
        """
        cdef appended place
        on_delivery = callback_for(self, on_delivery)
        self.add(topic, value, key, partition, timestamp_ms, headers, KF_HOLD_HANDLE, &place)
        return deliver(self, &place, or_null(<PyObject*>on_delivery), True)

    def send_nowait(self, topic, value=None, key=None, *, partition=None, timestamp_ms=None,
                    headers=None, on_delivery=None):
        """Send a record without a handle: the fastest way for one record at a time.

        A failed delivery is raised by the next `flush` or `close`, unless `on_delivery` is given.
        Arguments and errors are those of `send`.
        """
        cdef appended place
        on_delivery = callback_for(self, on_delivery)
        self.add(topic, value, key, partition, timestamp_ms, headers,
                 KF_HOLD_NOTHING if on_delivery is None else KF_HOLD_HANDLE, &place)
        return deliver(self, &place, or_null(<PyObject*>on_delivery), False)


cdef inline int append(Accumulator self, TopicQueues topic, const kf_record* record,
                       object partition, int flags, appended* place) except -1:
    """Put the record into its partition's open batch, waiting for memory if there is none.

    Args:
        place: has the record's timestamp, and gets the rest.
    """
    cdef kf_topic* shared = topic.topic
    cdef int32_t number
    cdef room_wait wait
    cdef int result
    if partition is not None:
        number = check_partition(topic, partition)
    else:
        number = choose_partition(&self.how, self._queues.producer, shared, record)
        if shared.sticky_left <= 0 and is_sticky(&self.how, record):
            flags |= KF_LEAVE_FULL
    kf_set(&shared.used, 1)
    wait.began = 0.0
    while True:
        result = kf_queue_append(shared.queues[number], record, place.timestamp, flags,
                                 &place.batch, &place.index)
        if result == KF_APPEND_OK:
            return 0
        if result == KF_APPEND_NEXT:
            number = draw_partition(&self.how, self._queues.producer, shared)
            flags &= ~KF_LEAVE_FULL
        elif result == KF_APPEND_TOO_LARGE:
            return self.refuse_size(topic, record)
        else:
            self.wait_for_memory(topic, record.key_len + record.value_len + record.headers_size
                                 + 256, &wait)


cdef inline object callback_for(Accumulator self, object on_delivery):
    """Return the callback of a record that was sent with this one, or None."""
    if on_delivery is None:
        return self.on_delivery
    check_callback(on_delivery, "on_delivery", "error and metadata")
    return on_delivery


cdef inline object deliver(Accumulator self, const appended* place, PyObject* callback,
                           bint has_handle):
    """Return the handle of a record; or None, without a handle.

    Args:
        callback: is told of the delivery; NULL: none is. If there is any, or a handle, the record
            was appended with KF_HOLD_HANDLE.
    """
    cdef DeliveryFuture future
    if not has_handle:
        if callback != NULL:
            observe_alone(self._queues, place.batch, place.index, place.timestamp,
                          <object>callback)
        return None
    future = new_delivery(self._queues, place.batch, place.index, place.timestamp)
    if callback != NULL:
        observe_beside(future, <object>callback)
    return future


# ---- the short way in: see `entry.pxd` ----

# What a plain call brings, borrowed from it: bytes, for the topic of the call before.
cdef struct plain_call:
    PyObject* value
    PyObject* key       # NULL: none
    PyObject* callback  # NULL: none

cdef dict HINTS = dict(PRODUCER_ARGUMENTS["send"])
cdef PyObject* ON_DELIVERY = <PyObject*>"on_delivery"
cdef entry send_as_it_stands
cdef entry send_nowait_as_it_stands


cdef inline bint is_plain(Accumulator self, PyObject** args, Py_ssize_t count, PyObject* names,
                          plain_call* call) noexcept:
    """Return whether the call is such a plain one; `call` gets what it brings."""
    call.callback = <PyObject*>self.on_delivery
    if names != NULL:
        if names_third(names, count):
            count = 3
        elif is_only_name(names, ON_DELIVERY):
            if or_null(args[count]) != NULL:
                if not is_callable(args[count]):
                    return False
                call.callback = args[count]
        else:
            return False
    if (count < 2 or count > 3 or args[0] != <PyObject*>self.last_name
            or not is_plain_bytes(args[1]) or not self.plain or self._queues.refuses):
        return False
    call.callback = or_null(call.callback)
    call.value = args[1]
    call.key = or_null(args[2]) if count == 3 else NULL
    return call.key == NULL or is_plain_bytes(call.key)


cdef inline int append_plain(Accumulator self, const plain_call* call, int flags,
                             appended* place) except -1:
    cdef kf_producer* producer = self._queues.producer
    cdef kf_record record
    record.key = NULL
    record.key_len = -1
    if call.key != NULL:
        record.key = <const uint8_t*>bytes_of(call.key)
        record.key_len = size_of(call.key)
    record.value = <const uint8_t*>bytes_of(call.value)
    record.value_len = size_of(call.value)
    record.headers = NULL
    record.headers_size = 0
    place.timestamp = producer.env.wall_ms(producer.env.context)
    return append(self, self.last_topic, &record, None, flags, place)


cdef object enter_send(Accumulator self, PyObject** args, Py_ssize_t count, PyObject* names):
    cdef plain_call call
    cdef appended place
    if not is_plain(self, args, count, names, &call):
        return result_of(call_as_it_stands(send_as_it_stands, <PyObject*>self, args, count, names,
                                           "send", HINTS))
    append_plain(self, &call, KF_HOLD_HANDLE, &place)
    return deliver(self, &place, call.callback, True)


cdef object enter_send_nowait(Accumulator self, PyObject** args, Py_ssize_t count,
                              PyObject* names):
    cdef plain_call call
    cdef appended place
    if not is_plain(self, args, count, names, &call):
        return result_of(call_as_it_stands(send_nowait_as_it_stands, <PyObject*>self, args, count,
                                           names, "send_nowait", HINTS))
    append_plain(self, &call, KF_HOLD_NOTHING if call.callback == NULL else KF_HOLD_HANDLE, &place)
    return deliver(self, &place, call.callback, False)


# ---- for event loops: see `_sending` ----

cdef object send_plain_at_once(Accumulator self, PyObject* topic, PyObject* value, PyObject* key):
    cdef plain_call call
    cdef appended place
    if topic == <PyObject*>self.last_name and not self._queues.refuses:
        call.value = value
        call.key = key
        append_plain(self, &call, KF_HOLD_HANDLE, &place)
    else:
        self.add(<object>topic, <object>value, None if key == NULL else <object>key, None, None,
                 None, KF_HOLD_HANDLE, &place)
    return deliver(self, &place, NULL, True)


cdef object send_at_once(Accumulator self, object topic, object value, object key,
                         object partition, object timestamp_ms, object headers):
    cdef appended place
    self.add(topic, value, key, partition, timestamp_ms, headers, KF_HOLD_HANDLE, &place)
    return deliver(self, &place, NULL, True)


cdef object send_prepared(Accumulator self, object topic, object value, object key,
                          object partition, object timestamp_ms, object headers,
                          object on_delivery):
    cdef appended place
    if self._queues.refuses:
        self._queues.raise_refusal()
    self.add_prepared(self.topic_of(topic), value, key, partition, timestamp_ms, headers,
                      KF_HOLD_HANDLE, &place)
    return deliver(self, &place, or_null(<PyObject*>on_delivery), True)


send_as_it_stands = replace_entry(Accumulator.__dict__["send"], <void*>enter_send)
send_nowait_as_it_stands = replace_entry(Accumulator.__dict__["send_nowait"],
                                         <void*>enter_send_nowait)
