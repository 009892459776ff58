"""Delivery: the handle of a record.

A handle is (batch, index): all records of a batch share one result, which the data plane writes
once. A thread that waits for an open batch has it sent at once. The records of a batch that was too
large, and was split, get their results with its parts.

    send ─► DeliveryFuture ─► result()        waits on the queues, without the GIL
                           ─► await           one event-loop wake-up per batch
         ─► on_delivery, add_done_callback    see _observers

Thread: any, with the GIL; it guards the counts of handles.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uintptr_t

from kafka_fast.dataplane.core._ready_call cimport set_send
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.sending._awaiting cimport (
    BatchWaits,
    LoopWaits,
    last_waits,
    loop_for,
    running_loop,
    running_waits,
    waits_in,
)
from kafka_fast.sending._causes cimport say_waiting, timeout_error
from kafka_fast.sending._fields cimport check_callback
from kafka_fast.sending._observers cimport (
    add_late,
    drop_holds,
    has_failed_untold,
    metadata_of,
    observe,
    outcome_of,
    tell,
    waiter_for,
    waits_of,
)

from kafka_fast._hints import hint_at_names, name_type
from kafka_fast.peer_names import FUTURE
from kafka_fast.times import seconds

cdef extern from "Python.h":
    ctypedef void (*destructor)(PyObject*)
    object PyObject_Init(PyObject* memory, PyTypeObject* kind)
    void* PyObject_Malloc(size_t size)
    void PyObject_Free(void* memory)
    void PyErr_Fetch(PyObject** kind, PyObject** value, PyObject** traceback)
    void PyErr_Restore(PyObject* kind, PyObject* value, PyObject* traceback)
    int PYGEN_RETURN
    int PYGEN_NEXT

cdef enum:
    FAR = -0x80000000    # more than 24 days away: the timestamp is in `far_timestamps`
    SPARE_HANDLES = 1024  # kept for the next records: most handles are dropped at once

cdef dict far_timestamps = {}  # address of a handle -> timestamp
cdef PyObject* spare_handles[SPARE_HANDLES]
cdef int spare_count = 0


cdef bint wait_for(Queues queues, kf_batch* batch, int32_t index, int32_t count,
                   double deadline) except -1:
    cdef kf_producer* shared = queues.producer
    cdef double now
    cdef object wait = None
    if kf_records_are_done(batch, index, count):
        return True
    queues.check_lives()
    kf_queue_urge(batch.queue, batch)
    while not kf_records_are_done(batch, index, count):
        if queues.plane.dead:
            queues.check_lives()
        now = shared.env.now(shared.env.context)
        if deadline != 0.0 and now >= deadline:
            return False
        with nogil:
            kf_producer_wait_records(shared, batch, index, count,
                                     KF_WAIT_SLICE if deadline == 0.0
                                     else min(KF_WAIT_SLICE, deadline - now))
        PyErr_CheckSignals()
        if not kf_records_are_done(batch, index, count):
            wait = say_waiting(queues, wait, "result() waits", batch)
    return True


# ---- the handle ----

cdef inline Queues queues_of(const kf_batch* batch):
    return <Queues>batch.queue.producer.owner


cdef inline int32_t index_of(DeliveryFuture future) noexcept:
    return future.place >> 1


cdef inline bint is_known(DeliveryFuture future) noexcept:
    """Return whether the record's fate is known. A batch that was split ends in parts."""
    return kf_records_are_done(future.batch, index_of(future), 1)


cdef int64_t timestamp_of(DeliveryFuture future) except? -1:
    """Return the timestamp that the record was sent with."""
    if future.delay == FAR:
        return far_timestamps[<uintptr_t><void*>future]
    return future.batch.base_timestamp + future.delay


@cython.final
@cython.no_gc
cdef class DeliveryFuture:
    """What becomes of one record. Any thread may wait for it; it can be awaited too."""

    def __cinit__(self):  # new_delivery does not come here
        raise TypeError("DeliveryFuture is made by Producer.send")

    def __reduce__(self):
        raise TypeError(
            "a DeliveryFuture cannot be pickled or copied, as its record is sent by this process: "
            "use its result(), a RecordMetadata"
        )

    def done(self):
        """Return whether the record's fate is known."""
        return is_known(self)

    def cancelled(self):
        """Return whether the running event loop has given up waiting. The record is sent anyway."""
        return is_given_up(self)

    def cancel(self, msg=None):
        """Have the running event loop wait no more for the record, which is sent anyway.

        `gather`, `wait` and callbacks in that loop are told that the handle was cancelled. That
        holds until the record's fate is known.

        Returns:
            False if nobody there waits for it.
        """
        cdef BatchWaits waits = found_waits(self)
        return waits is not None and waits.cancel(self)

    def result(self, timeout=None):
        """Wait until the record is delivered; an open batch leaves at once.

        Args:
            timeout: seconds to wait; None waits as long as delivery.timeout.ms allows.

        Returns:
            RecordMetadata of the record.

        Raises:
            DeliveryError: the record was not, or perhaps not, delivered; `outcome` says which.
            KafkaTimeoutError: not known yet after `timeout`. The record is still on its way.
            UsageError: called from a delivery callback, or the producer does not run any more.
        """
        wait_until_known(self, timeout)
        return known_result(self)

    def exception(self, timeout=None):
        """Wait like `result`, and return the DeliveryError, or None if the record was delivered."""
        wait_until_known(self, timeout)
        if kf_get(&self.batch.state) == KF_BATCH_ACKED:
            self.place |= 1
            return None
        return read_outcome(self)[0]

    def add_done_callback(self, callback, *, context=None):
        """Have `callback(future)` called once the record's fate is known.

        In an event loop it is called there, soon and in `context` (contextvars); elsewhere on the
        callback thread, or at once if the producer is closed.
        """
        check_callback(callback, "a callback of add_done_callback", "the handle")
        if is_known(self):
            call_back(self, callback, context)
            return
        cdef LoopWaits waits = running_waits(queues_of(self.batch))
        if waits is None:
            observe_beside(self, calling(callback, self))
            return
        mark_asked(self)
        waits_of(waits, self.batch).add(self, callback, context)

    def remove_done_callback(self, callback):
        """Forget a callback that is to run in the event loop; return how often it was there."""
        cdef BatchWaits waits = found_waits(self)
        return 0 if waits is None else waits.remove(self, callback)

    def get_loop(self):
        """Return the running event loop: it is where the handle acts as an asyncio future."""
        loop = loop_for(queues_of(self.batch))
        if loop is None:
            raise RuntimeError("no running event loop: await the handle in a coroutine")
        return loop

    # What asyncio reads of its own futures, so that it takes a handle for one.

    @property
    def _asyncio_future_blocking(self):
        return False

    @property
    def _cancel_message(self):
        return None

    def _make_cancelled_error(self):
        return cancelled_error()

    def __await__(self):
        """Wait in an event loop; ends at once if the record's fate is known."""
        return self  # there is nothing to remember between the steps, however many tasks wait

    def __iter__(self):
        """Do what `__await__` does, for a `yield from`, as asyncio's futures do."""
        cdef YieldFrom steps = YieldFrom.__new__(YieldFrom)
        steps.future = self
        return steps

    def __next__(self):
        """Take a step of an `await`: return what is waited for, or end with the result."""
        if not is_known(self):
            return waiter_for(queues_of(self.batch), self.batch, self)
        raise StopIteration(known_result(self))

    def __repr__(self):
        if not is_known(self):
            return "<DeliveryFuture pending>"
        error, metadata = outcome_for(self)
        return f"<DeliveryFuture {error or metadata}>"


# Functions, not methods: for C methods each handle would need a pointer to their table, 8 bytes.

cdef int wait_until_known(DeliveryFuture future, timeout) except -1:
    """Wait as `result` says."""
    cdef double deadline = 0.0
    cdef kf_producer* shared = future.batch.queue.producer
    if is_known(future):
        return 0
    if is_given_up(future):
        raise cancelled_error()
    queues_of(future.batch).check_may_wait()
    if timeout is not None:
        deadline = shared.env.now(shared.env.context) + max(<double>seconds(timeout), 1e-9)
    if not wait_for(queues_of(future.batch), future.batch, index_of(future), 1, deadline):
        raise timeout_error(queues_of(future.batch),
                            f"the record's delivery is not known after {timeout} s",
                            future.batch, deadline - timeout)
    return 0


cdef tuple outcome_for(DeliveryFuture future):
    return outcome_of(future.batch, queues_of(future.batch), index_of(future), timestamp_of(future))


cdef tuple read_outcome(DeliveryFuture future):
    """Return what `outcome_for` does, and note that the record's owner knows it now."""
    cdef tuple outcome = outcome_for(future)
    if outcome[0] is not None:
        mark_asked(future)
    future.place |= 1
    return outcome


cdef int mark_asked(DeliveryFuture future) except -1:
    """Note that the record's owner is told of its outcome, or a callback will be."""
    cdef int32_t index = index_of(future)
    if future.place & 1:
        return 0
    future.place |= 1
    if (future.batch.counted
            and kf_get(&kf_batch_resolve(future.batch, &index).state) != KF_BATCH_FAILED):
        return 0
    return tell(queues_of(future.batch), future.batch, 1)


cdef int call_back(DeliveryFuture future, object callback, object context) except -1:
    """Have a callback called for a record whose fate is known; see `add_done_callback`."""
    cdef Queues queues = queues_of(future.batch)
    cdef LoopWaits waits = last_waits(queues)
    loop = running_loop() if waits is None else waits.loop
    if loop is None and not queues.plane.dead:
        return observe_beside(future, calling(callback, future))
    if waits is None and loop is not None and not (queues.plane.dead or queues.producer.inherited):
        waits = waits_in(queues, loop)
    mark_asked(future)
    if waits is not None:
        waits.call_soon(callback, future, context)
    elif loop is not None:
        loop.call_soon(callback, future, context=context)
    else:  # the callback thread has ended
        callback(future)
    return 0


cdef int observe_beside(DeliveryFuture future, object callback) except -1:
    """Register a callback for a record that has a handle, which then counts as observed."""
    mark_asked(future)
    future.batch.handles += 1
    future.batch.doubled += 1
    return observe(queues_of(future.batch), future.batch, index_of(future), timestamp_of(future),
                   callback, True)


cdef object calling(object callback, DeliveryFuture future):
    """Return a callback that passes on the handle. (A method with a closure would cost each call.)
    """
    return lambda error, metadata: callback(future)


cdef BatchWaits found_waits(DeliveryFuture future):
    """Return what the running event loop awaits of the handle's batch, or None."""
    cdef LoopWaits loop
    if queues_of(future.batch).last_waits is None or is_known(future):
        return None
    loop = running_waits(queues_of(future.batch))
    return None if loop is None else loop.find(future.batch)


cdef bint is_given_up(DeliveryFuture future) except -1:
    cdef BatchWaits waits = found_waits(future)
    return waits is not None and waits.given_up is not None and future in waits.given_up


cdef object cancelled_error():
    import asyncio

    return asyncio.CancelledError()


@cython.final
@cython.no_gc
cdef class YieldFrom:
    """What `yield from` iterates over. A list of it, or a star before it, ends with an error."""

    cdef DeliveryFuture future
    cdef bint has_waited

    def __init__(self, *arguments, **named):
        raise TypeError("YieldFrom is made when a handle is iterated over")

    def __reduce__(self):
        raise TypeError("an await cannot be pickled or copied: await the DeliveryFuture again")

    def __iter__(self):
        return self

    def __next__(self):
        if self.has_waited and not self.future.done():
            raise RuntimeError("await wasn't used with future")  # in asyncio's own words
        self.has_waited = True
        return next(self.future)


cdef object known_result(DeliveryFuture future):
    """Return the metadata of a record whose fate is known, or raise its error."""
    if kf_get(&future.batch.state) == KF_BATCH_ACKED:
        future.place |= 1
        return metadata_of(future.batch, queues_of(future.batch), index_of(future),
                           timestamp_of(future))
    error, metadata = read_outcome(future)
    if error is not None:
        raise error
    return metadata


cdef int send_await(PyObject* steps, PyObject* value, PyObject** result) except -1:
    """Do what `DeliveryFuture.__next__` does, without a StopIteration at the end.

    The exception would cost more than everything else here. So would a `try`: an error is left as
    it is, and -1 says so.
    """
    cdef DeliveryFuture future = <DeliveryFuture>steps
    cdef bint is_done = is_known(future)
    result[0] = NULL
    if is_done:
        outcome = known_result(future)
    else:
        outcome = waiter_for(queues_of(future.batch), future.batch, future)
    Py_INCREF(outcome)
    result[0] = <PyObject*>outcome
    return PYGEN_RETURN if is_done else PYGEN_NEXT


set_send(DeliveryFuture, send_await)


# ---- making and dropping handles ----
#
# Most handles are dropped at once, so all of this runs for every record. Cython's own __dealloc__
# (which saves the exception in flight and revives the object) would cost more than the rest.

cdef DeliveryFuture new_delivery(Queues queues, kf_batch* batch, int32_t index,
                                 int64_t timestamp_ms):
    global spare_count
    cdef PyTypeObject* kind = <PyTypeObject*>DeliveryFuture
    cdef int64_t delay = timestamp_ms - batch.base_timestamp
    cdef PyObject* memory
    cdef DeliveryFuture future
    if spare_count > 0:
        spare_count -= 1
        memory = spare_handles[spare_count]
    else:
        memory = <PyObject*>PyObject_Malloc(kind.tp_basicsize)
        if memory == NULL:
            drop_holds(batch, 1, 0)
            raise MemoryError
    future = <DeliveryFuture>PyObject_Init(memory, kind)
    Py_INCREF(queues)
    future.batch = batch
    future.place = 2 * index
    future.delay = <int32_t>delay
    if delay != future.delay or future.delay == FAR:
        future.delay = FAR
        far_timestamps[<uintptr_t>memory] = timestamp_ms
    return future


cdef void drop_handle(PyObject* handle) noexcept:
    """The type's tp_dealloc."""
    global spare_count
    cdef kf_batch* batch = (<DeliveryFuture>handle).batch
    cdef PyObject* queues
    if batch != NULL:  # else __cinit__ raised
        queues = <PyObject*>batch.queue.producer.owner
        if batch.counted or (<DeliveryFuture>handle).delay == FAR:
            drop_unusual(handle)
        batch.seen += (<DeliveryFuture>handle).place & 1
        kf_queue_drop_handles(batch.queue, batch, 1)
        Py_DECREF(<object>queues)
    if spare_count < SPARE_HANDLES:
        spare_handles[spare_count] = handle
        spare_count += 1
    else:
        PyObject_Free(handle)


cdef void drop_unusual(PyObject* handle) noexcept:
    """Drop a handle whose batch has ended, or that has a far timestamp."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    cdef kf_batch* batch = (<DeliveryFuture>handle).batch
    cdef kf_batch* leaf
    cdef Queues queues = queues_of(batch)
    cdef int32_t index = (<DeliveryFuture>handle).place >> 1
    PyErr_Fetch(&kind, &value, &traceback)
    if (<DeliveryFuture>handle).delay == FAR:
        far_timestamps.pop(<uintptr_t>handle, None)
    if batch.counted and not (<DeliveryFuture>handle).place & 1:
        leaf = kf_batch_resolve(batch, &index)
        if has_failed_untold(queues, leaf):
            tell(queues, batch, 1)
            add_late(queues, leaf, None, 1)
    PyErr_Restore(kind, value, traceback)


(<PyTypeObject*>DeliveryFuture).tp_dealloc = <destructor>drop_handle
name_type(DeliveryFuture, "kafka_fast")
hint_at_names(DeliveryFuture, FUTURE)
