"""`send` in an event loop: a coroutine that usually needs no wait.

    await producer.send(…) ─► SendCall ─┬─► append ─► the record's handle, at once
                                        └─► `_send_waiting`: a coroutine that waits for metadata
                                            or room, or lets the loop's other tasks run first

Thread: that of an event loop.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT, Py_XDECREF

from kafka_fast.dataplane.core._loop_share cimport share_is_over
from kafka_fast.dataplane.core._ready_call cimport ReadyCall, send_in_steps
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.sending._accumulator cimport (
    Accumulator,
    send_at_once,
    send_plain_at_once,
    send_prepared,
)
from kafka_fast.sending.entry cimport (
    call_as_it_stands,
    entry,
    is_plain_bytes,
    is_plain_str,
    names_third,
    or_null,
    replace_entry,
    result_of,
)

from kafka_fast.errors import UsageError, WouldWaitError
from kafka_fast.peer_names import PRODUCER_ARGUMENTS

cdef extern from *:
    """
    static inline int kf_has_weakrefs(PyObject *item) {
        return *(PyObject **)((char *)item + Py_TYPE(item)->tp_weaklistoffset) != NULL;
    }
    """
    bint kf_has_weakrefs(PyObject* item)

cdef int SENDS_PER_CLOCK_READ = 8  # to read the clock costs a third of a send


cdef class AsyncSender:
    """The part of an asynchronous producer that takes single records.

    Args:
        accumulator: where they go; it never waits.
        runs_users_code: serializers, a partitioner or a callback are set: sends are coroutines.
    """

    def __cinit__(self):
        # Here the caller's frame is the innermost one; see `Accumulator`.
        self._origin = object()

    def _set_accumulator(self, Accumulator accumulator not None, bint runs_users_code):
        """Set where records go, once, before the first of them."""
        self.accumulator = accumulator
        self.runs_users_code = runs_users_code

    cdef bint is_share_over(self) noexcept:
        """Return whether the loop is to run other tasks first; the clock is read now and then."""
        cdef kf_producer* producer = self.accumulator._queues.producer
        self.left -= 1
        if self.left > 0:
            return False
        self.left = SENDS_PER_CLOCK_READ
        return share_is_over(producer.env.now(producer.env.context))

    cdef bint has_room_for_all(self) noexcept:
        """Return whether nobody waits for room, or there is room for all who do.

        Else a send that need not wait would take the room from those that do. Half of the memory is
        enough for them: it is more than what the head of their line waits for.
        """
        cdef Accumulator accumulator = self.accumulator
        return self.in_line == 0 or accumulator._waits.has_room(
            min(self.wanted, accumulator._queues.producer.pool.limit // 2))

    cdef bint may_send(self) noexcept:
        """Return whether a record may be taken in the first step of its `send`."""
        return (not self.runs_users_code and self.has_room_for_all()
                and not self.is_share_over() and not self.accumulator._queues.refuses)

    def _may_go_on(self):
        """Return whether a send may try without waiting in a line."""
        return self.has_room_for_all()

    def _send_waiting(self, topic, value, key, partition, timestamp_ms, headers, on_delivery):
        """Return a coroutine that sends a record, and waits before that if it has to."""
        raise NotImplementedError

    def _send_prepared(self, topic, value, key, partition, timestamp_ms, headers, on_delivery):
        """Send a record whose key, value and partition are chosen; return its handle."""
        return send_prepared(self.accumulator, topic, value, key, partition, timestamp_ms, headers,
                             on_delivery)

    def send(self, topic, value=None, key=None, *, partition=None, timestamp_ms=None,
             headers=None, on_delivery=None):
        """Send a record and return an awaitable handle of its delivery.

        In an event loop, this call waits for metadata and for room in buffer.memory. A cancelled
        send has taken nothing if it waited; the record of a send that has returned goes its way.
        Other tasks run about once a millisecond.

        Args:
            topic: its name.
            value, key: bytes, str (sent as UTF-8), any bytes-like object, or None; with
                serializers, whatever those take.
            partition: number of the partition; None lets the partitioner choose.
            timestamp_ms: Unix time in ms, or a datetime with a time zone; None is now.
            headers: (key, value) pairs or a mapping.
            on_delivery: called as `(error, metadata)` in the event loop, once; may be a coroutine.

        Returns:
            DeliveryFuture of the record, when this call is awaited.

        Raises:
            DeliveryError: the record is larger than max.request.size.
            KafkaTimeoutError: no metadata, or no room in buffer.memory, within max.block.ms.
            SerializationError, TypeError: The key, value or a header is not what it must be.
            UsageError: the producer is closed, the partition does not exist, or the record is
                larger than buffer.memory.
        """
        cdef SendCall call
        if self.accumulator is None:
            raise UsageError("the constructor of this producer's class was not called")
        call = new_call(self)
        call.arguments = topic, value, key, partition, timestamp_ms, headers, on_delivery
        return call


@cython.final
cdef class SendCall(ReadyCall):
    """The coroutine of one `send`."""

    cdef AsyncSender sender
    cdef tuple arguments  # all of them; None: the call is a plain one
    # Of a plain call. Owned: a str and bytes refer to nothing, so the garbage collection need not
    # know of them.
    cdef PyObject* topic
    cdef PyObject* value
    cdef PyObject* key    # NULL: none

    cdef object begin(self):
        cdef AsyncSender sender = self.sender
        if sender is None:
            raise TypeError("SendCall is made by Producer.send")
        self.sender = None
        return self.begin_plain(sender) if self.arguments is None else self.begin_other(sender)

    cdef object begin_plain(self, AsyncSender sender):
        """Send topic, value and key at once and return the handle; None: `rest` sends them."""
        cdef PyObject* topic = self.topic
        cdef PyObject* value = self.value
        cdef PyObject* key = self.key
        self.topic = self.value = self.key = NULL
        try:
            if sender.may_send():
                try:
                    handle = send_plain_at_once(sender.accumulator, topic, value, key)
                    sender.spare_call = self
                    return handle
                except WouldWaitError:
                    pass
            self.rest = sender._send_waiting(
                <object>topic, <object>value, None if key == NULL else <object>key,
                None, None, None, None)
            return None
        finally:
            Py_DECREF(<object>topic)
            Py_DECREF(<object>value)
            Py_XDECREF(key)

    cdef object begin_other(self, AsyncSender sender):
        """Send the record of `arguments` at once and return the handle; None: `rest` sends it."""
        topic, value, key, partition, timestamp_ms, headers, on_delivery = self.arguments
        self.arguments = None
        if on_delivery is None and sender.may_send():
            try:
                return send_at_once(sender.accumulator, topic, value, key, partition, timestamp_ms,
                                    headers)
            except WouldWaitError:
                pass
        self.rest = sender._send_waiting(topic, value, key, partition, timestamp_ms, headers,
                                         on_delivery)
        return None

    cdef int drop(self) except -1:
        self.sender = self.arguments = None
        self.drop_record()
        return 0

    cdef void drop_record(self) noexcept:
        cdef PyObject* topic = self.topic
        cdef PyObject* value = self.value
        cdef PyObject* key = self.key
        self.topic = self.value = self.key = NULL
        Py_XDECREF(topic)
        Py_XDECREF(value)
        Py_XDECREF(key)

    def __dealloc__(self):
        self.drop_record()

    cdef str name(self):
        return "Producer.send"


send_in_steps(SendCall)


cdef SendCall new_call(AsyncSender sender):
    """Return a call to fill: the last one that has ended, if nobody has kept it, or watches it."""
    cdef SendCall call = sender.spare_call
    sender.spare_call = None
    if call is None or Py_REFCNT(call) > 1 or kf_has_weakrefs(<PyObject*>call):
        call = SendCall.__new__(SendCall)
    call.is_begun = False
    call.sender = sender
    return call


# ---- the short way in: see `entry.pxd` ----

cdef dict HINTS = dict(PRODUCER_ARGUMENTS["send"])
cdef entry send_as_it_stands


cdef object enter_send(AsyncSender self, PyObject** args, Py_ssize_t count, PyObject* names):
    cdef SendCall call
    cdef PyObject* key = NULL
    if names != NULL and names_third(names, count):
        names = NULL
        count = 3
    if count == 3:
        key = or_null(args[2])
    if (names != NULL or count < 2 or count > 3 or not is_plain_str(args[0])
            or not is_plain_bytes(args[1]) or (key != NULL and not is_plain_bytes(key))
            or self.accumulator is None):
        return result_of(call_as_it_stands(send_as_it_stands, <PyObject*>self, args, count, names,
                                           "send", HINTS))
    call = new_call(self)
    call.topic, call.value, call.key = args[0], args[1], key
    Py_INCREF(<object>call.topic)
    Py_INCREF(<object>call.value)
    if key != NULL:
        Py_INCREF(<object>key)
    return call


send_as_it_stands = replace_entry(AsyncSender.__dict__["send"], <void*>enter_send)
