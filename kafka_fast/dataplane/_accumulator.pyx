"""The append path: `send` and what stands behind it.

`Producer` inherits from `Accumulator`, so that no Python frame stands round the hot call. A record
is encoded in place into its partition's open batch, under that partition's lock; nothing is
allocated for it but the handle, if the caller asked for one.

What only Python knows (asking for metadata, serializers) is left to methods that `Producer`
implements: `_need_topic` and `_serialize`.

Thread: any caller's, with the GIL.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.long cimport PyLong_CheckExact
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane._delivery cimport (
    DeliveryFuture,
    new_delivery,
    observe,
    observe_beside,
)
from kafka_fast.dataplane._partitioner cimport (
    PARTITIONER_BUILT_IN,
    PARTITIONER_CUSTOM,
    PARTITIONER_ROUND_ROBIN,
    choose_partition,
)
from kafka_fast.dataplane._plane cimport DataPlane, Topic
from kafka_fast.dataplane.state cimport *
from kafka_fast.dataplane.wire cimport *

from kafka_fast.errors import (
    DeliveryError,
    KafkaTimeoutError,
    Outcome,
    SerializationError,
    UsageError,
    broker_error,
)

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef double WAIT_SLICE = 0.025  # seconds between two looks for signals
cdef int MESSAGE_TOO_LARGE = 10

# Names of record header keys repeat from record to record: their UTF-8 is cached by str itself.


# ---- bytes of keys, values and headers ----

cdef int borrow(borrowed* field, object value, str topic, str what) except -1:
    cdef Py_ssize_t size
    field.has_view = False
    if PyBytes_CheckExact(value):
        field.data = <const uint8_t*>PyBytes_AS_STRING(value)
        field.len = PyBytes_GET_SIZE(value)
    elif value is None:
        field.data = NULL
        field.len = -1
    elif PyUnicode_Check(value):
        try:
            field.data = <const uint8_t*>PyUnicode_AsUTF8AndSize(value, &size)
        except UnicodeEncodeError as error:
            raise SerializationError(f"{what} for topic {topic!r}: {error}") from error
        field.len = size
    elif PyObject_CheckBuffer(value):
        borrow_buffer(field, value, topic, what)
    else:
        raise TypeError(f"{what} for topic {topic!r} must be bytes-like, str or None, "
                        f"not {type(value).__name__}")
    return 0


cdef int borrow_buffer(borrowed* field, object value, str topic, str what) except -1:
    try:
        PyObject_GetBuffer(value, &field.view, PyBUF_SIMPLE)
    except BufferError as error:
        raise TypeError(f"{what} for topic {topic!r} is not contiguous in memory: pass "
                        f"bytes({what})") from error
    field.data = <const uint8_t*>field.view.buf
    field.len = field.view.len
    field.has_view = True
    if field.data == NULL:  # an empty buffer may have no address; NULL means null here
        field.data = <const uint8_t*>b""
    return 0


cdef void give_back(borrowed* field) noexcept:
    if field.has_view:
        field.has_view = False
        PyBuffer_Release(&field.view)


cdef bytes encode_headers(object headers, str topic):
    """Return the headers as they stand in a record, count included; None if there are none.

    Args:
        headers: A sequence of (key, value) pairs or a mapping; keys are str, values bytes-like,
            str or None. A key may occur more than once in a sequence.
    """
    cdef list pairs = list(headers.items() if isinstance(headers, dict) else headers)
    cdef list parts = []
    cdef borrowed field
    cdef uint8_t scratch[16]
    cdef uint8_t* end
    if not pairs:
        return None
    end = kf_put_varint(scratch, len(pairs))
    parts.append(PyBytes_FromStringAndSize(<char*>scratch, end - scratch))
    for pair in pairs:
        try:
            name, value = pair
        except (TypeError, ValueError) as error:
            raise TypeError(f"headers for topic {topic!r} must be (key, value) pairs") from error
        if not PyUnicode_Check(name):
            raise TypeError(f"a header's key for topic {topic!r} must be str, "
                            f"not {type(name).__name__}")
        for part, what in ((name, "a header's key"), (value, f"header {name!r}")):
            borrow(&field, part, topic, what)
            end = kf_put_varint(scratch, field.len)
            parts.append(PyBytes_FromStringAndSize(<char*>scratch, end - scratch))
            if field.len > 0:
                parts.append(PyBytes_FromStringAndSize(<char*>field.data, field.len))
            give_back(&field)
    return b"".join(parts)


cdef class Accumulator:
    """The part of a producer that takes records.

    Args:
        plane: Where they go.
        max_block: Seconds that a call may wait for metadata or memory (`max.block.ms`).
        partitioner: None for the built-in one, "round_robin", or a callable
            `(topic, key, value, partition_count) -> partition`.
        ignore_keys, adaptive: partitioner.ignore.keys, partitioner.adaptive.partitioning.enable.
        on_delivery: Called as `(error, metadata)` for every record, or None.
        transforms: Keys and values go through `_serialize` first.
    """

    def __init__(self, DataPlane plane, *, double max_block, object partitioner=None,
                 bint ignore_keys=False, bint adaptive=True, object on_delivery=None,
                 bint transforms=False):
        self.plane = plane
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

    # ---- what Python knows ----

    def _need_topic(self, name):
        """Wait until the topic's partitions are known; raises if that fails or takes too long."""
        raise UsageError(f"nothing is known of topic {name!r}")

    def _serialize(self, topic, key, value, headers):
        """Return (key, value) as bytes-like objects, str or None."""
        return key, value

    # ---- the way of a record ----

    cdef Topic topic_of(self, object name):
        """Return the topic, with at least one partition."""
        cdef Topic topic
        if name is self.last_name:
            return self.last_topic
        if not isinstance(name, str):
            raise TypeError(f"topic must be str, not {type(name).__name__}")
        topic = self.plane.find_topic(name)
        if topic is None or topic.topic.partition_count == 0:
            self._need_topic(name)
            if self.plane.refuses:  # it became so while this waited
                self.plane.raise_refusal()
            topic = self.plane.find_topic(name)
        self.last_topic = topic
        self.last_name = name
        return topic

    cdef int refuse_size(self, Topic topic, const kf_record* record) except -1:
        cdef size_t size = max(0, record.key_len) + max(0, record.value_len)
        cause = broker_error(MESSAGE_TOO_LARGE,
                             f"a record of {size} bytes for topic {topic.name!r} is larger than "
                             f"max.request.size ({self.plane.plane.max_request_size}) allows")
        raise DeliveryError(str(cause), outcome=Outcome.NOT_SENT, first=cause,
                            topic=topic.name) from cause

    cdef int wait_for_memory(self, Topic topic, size_t need, double* deadline) except -1:
        """Wait a moment for `need` bytes of buffer.memory; raises once `*deadline` has passed."""
        cdef kf_plane* plane = self.plane.plane
        cdef double now = plane.env.now(plane.env.context)
        if deadline[0] == 0.0:
            self.plane.check_may_wait()
            deadline[0] = now + self.max_block
            plane.stats.blocked += 1
        if need > plane.pool.limit:
            raise UsageError(f"a record of {need} bytes for topic {topic.name!r} is larger than "
                             f"buffer.memory ({plane.pool.limit})")
        if now >= deadline[0]:
            raise KafkaTimeoutError(
                f"no room in buffer.memory ({plane.pool.limit} bytes) for a record of topic "
                f"{topic.name!r} after max.block.ms ({self.max_block * 1000:.0f})")
        with nogil:
            kf_add(&plane.pool.waiting, 1)
            kf_plane_urge(plane)
            kf_pool_wait(&plane.pool, need, min(WAIT_SLICE, deadline[0] - now))
            kf_add(&plane.pool.waiting, -1)
        PyErr_CheckSignals()
        if self.plane.dead:
            self.plane.check_may_wait()
        return 0

    cdef int append(self, Topic topic, const kf_record* record, object partition,
                    int64_t timestamp_ms, int hold, kf_batch** batch, int32_t* index) except -1:
        """Put the record into its partition's open batch, waiting for memory if there is none."""
        cdef kf_topic* shared = topic.topic
        cdef kf_queue* queue
        cdef int32_t number
        cdef double deadline = 0.0
        cdef int result
        if partition is None:
            number = choose_partition(&self.how, self.plane.plane, shared, record)
        else:
            number = check_partition(topic, partition)
        queue = shared.queues[number]
        kf_set(&shared.used, 1)
        while True:
            result = kf_queue_append(queue, record, timestamp_ms, hold, batch, index)
            if result == KF_APPEND_OK:
                return 0
            if result == KF_APPEND_TOO_LARGE:
                return self.refuse_size(topic, record)
            self.wait_for_memory(topic, record.key_len + record.value_len + record.headers_size
                                 + 256, &deadline)

    cdef int add(self, object topic_name, object value, object key, object partition,
                 object timestamp_ms, object headers, int hold, kf_batch** batch, int32_t* index,
                 int64_t* timestamp) except -1:
        """One record from Python's objects to the open batch."""
        cdef Topic topic
        cdef borrowed key_bytes, value_bytes
        cdef kf_record record
        cdef bytes encoded = None
        cdef kf_plane* plane = self.plane.plane
        if self.plane.refuses:
            self.plane.raise_refusal()
        topic = self.topic_of(topic_name)
        if self.transforms:
            key, value = self._serialize(topic_name, key, value, headers)
        if self.how.kind == PARTITIONER_CUSTOM and partition is None:
            partition = self.custom_partitioner(topic_name, key, value,
                                                topic.topic.partition_count)
        if timestamp_ms is None:
            timestamp[0] = plane.env.wall_ms(plane.env.context)
        else:
            timestamp[0] = check_timestamp(topic, timestamp_ms)
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
            return self.append(topic, &record, partition, timestamp[0], hold, batch, index)
        borrow(&value_bytes, value, topic_name, "the value")
        key_bytes.has_view = False
        record.value = value_bytes.data
        record.value_len = value_bytes.len
        try:
            if key is not None:
                borrow(&key_bytes, key, topic_name, "the key")
                record.key = key_bytes.data
                record.key_len = key_bytes.len
            self.append(topic, &record, partition, timestamp[0], hold, batch, index)
        finally:
            give_back(&value_bytes)
            give_back(&key_bytes)
        return 0

    # ---- single records ----

    def send(self, topic, value=None, key=None, *, partition=None, timestamp_ms=None,
             headers=None, on_delivery=None):
        """Send a record and return a handle of its delivery.

        Args:
            topic: Its name.
            value, key: bytes, str (sent as UTF-8), any bytes-like object, or None; with
                serializers, whatever those take.
            partition: Number of the partition; None lets the partitioner choose.
            timestamp_ms: Unix time in ms; None is now.
            headers: (key, value) pairs or a mapping.
            on_delivery: Called as `(error, metadata)` on the callback thread, once.

        Returns:
            DeliveryFuture of the record.

        Raises:
            DeliveryError: The record is larger than max.request.size.
            KafkaTimeoutError: No metadata, or no room in buffer.memory, within max.block.ms.
            SerializationError, TypeError: The key, value or a header is not what it must be.
            UsageError: The producer is closed, or the partition does not exist.
        """
        cdef kf_batch* batch = NULL
        cdef int32_t index = 0
        cdef int64_t timestamp = 0
        self.add(topic, value, key, partition, timestamp_ms, headers, KF_HOLD_HANDLE, &batch,
                 &index, &timestamp)
        cdef DeliveryFuture future
        future = new_delivery(self.plane, batch, index, timestamp)
        if on_delivery is None:
            on_delivery = self.on_delivery
        if on_delivery is not None:
            observe_beside(future, on_delivery)
        return future

    def send_nowait(self, topic, value=None, key=None, *, partition=None, timestamp_ms=None,
                    headers=None, on_delivery=None):
        """Send a record without a handle: the fastest way for one record at a time.

        A failed delivery is raised by the next `flush` or `close`, unless `on_delivery` is given.
        Arguments and errors are those of `send`.
        """
        cdef kf_batch* batch = NULL
        cdef int32_t index = 0
        cdef int64_t timestamp = 0
        if on_delivery is None:
            on_delivery = self.on_delivery
        if on_delivery is None:
            self.add(topic, value, key, partition, timestamp_ms, headers, KF_HOLD_NOTHING, &batch,
                     &index, &timestamp)
            return
        self.add(topic, value, key, partition, timestamp_ms, headers, KF_HOLD_HANDLE, &batch,
                 &index, &timestamp)
        observe(self.plane, batch, index, timestamp, on_delivery, True)


cdef int32_t check_partition(Topic topic, object partition) except -1:
    """Return the partition's number, which must exist."""
    cdef int64_t number
    if not PyLong_CheckExact(partition):
        partition = partition.__index__()
    try:
        number = partition
    except OverflowError:
        number = -1
    if number < 0 or number >= topic.topic.partition_count:
        raise UsageError(f"topic {topic.name!r} has partitions 0 to "
                         f"{topic.topic.partition_count - 1}, not {partition}")
    return <int32_t>number


cdef int64_t check_timestamp(Topic topic, object timestamp_ms) except? -1:
    """Return the timestamp, which must be a Unix time in ms."""
    cdef int64_t timestamp
    try:
        timestamp = timestamp_ms
    except OverflowError:
        timestamp = -1
    if timestamp < 0:
        raise UsageError(f"a timestamp for topic {topic.name!r} must be Unix ms in int64, not "
                         f"{timestamp_ms}")
    return timestamp
