"""Delivery: handles, callbacks, and the failures that nobody can observe.

A handle is (batch, index): all records of a batch share one result, which the data plane writes
once. Who waits for a batch that is still open makes it leave at once.

    send ─► DeliveryFuture ─► result()        waits on the plane, without the GIL
                           ─► await           one call into the event loop per record
         ─► on_delivery, add_done_callback    run on the callback thread, batch by batch

Threads: any, with the GIL; it guards the counts of handles.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetObject
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, realloc

from kafka_fast.dataplane._awaiting cimport (
    BatchWaits,
    LoopWaits,
    Waiter,
    new_waiter,
    running_loop,
    running_waits,
)
from kafka_fast.dataplane._plane cimport DataPlane, Topic
from kafka_fast.dataplane.state cimport *

from kafka_fast.errors import (
    DeliveryError,
    KafkaTimeoutError,
    Outcome,
    UsageError,
    broker_error,
)
from kafka_fast.types import RecordMetadata

cdef extern from "Python.h":
    """
    /* Cython has no name for this slot. */
    static inline void kf_set_am_send(PyTypeObject *type, void *send) {
        type->tp_as_async->am_send = (sendfunc)send;
    }
    """
    ctypedef void (*destructor)(PyObject*)
    object PyObject_Init(PyObject* memory, PyTypeObject* kind)
    void* PyObject_Malloc(size_t size)
    void PyObject_Free(void* memory)
    void PyErr_Fetch(PyObject** kind, PyObject** value, PyObject** traceback)
    void PyErr_Restore(PyObject* kind, PyObject* value, PyObject* traceback)
    int PYGEN_RETURN
    int PYGEN_ERROR
    int PYGEN_NEXT
    void set_am_send "kf_set_am_send"(PyTypeObject* type, void* send)
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)
    PyObject* PyTuple_GET_ITEM(object items, Py_ssize_t i)
    Py_ssize_t Py_REFCNT(object item)

cdef enum:
    FAR = -0x80000000    # the timestamp stands in `far_timestamps`
    SPARE_HANDLES = 1024  # kept for the next records: most handles are dropped at once

cdef dict far_timestamps = {}  # address of a handle -> timestamp
cdef PyObject* spare_handles[SPARE_HANDLES]
cdef int spare_count = 0


cdef dict OUTCOMES = {
    KF_OUTCOME_NOT_SENT: Outcome.NOT_SENT,
    KF_OUTCOME_REJECTED: Outcome.REJECTED,
    KF_OUTCOME_MAYBE_WRITTEN: Outcome.MAYBE_WRITTEN,
}


# ---- what became of a record ----

cdef object cause_of(int32_t code, str where):
    """Return the error behind a failed delivery."""
    if code == KF_ERROR_EXPIRED:
        return KafkaTimeoutError(f"delivery.timeout.ms passed for a record of {where}")
    if code == KF_ERROR_CLOSED:
        return UsageError(f"the producer was closed before a record of {where} was delivered")
    if code == KF_ERROR_ABANDONED:
        return broker_error(45, f"a record of {where} could not keep its place in the sequence")
    return broker_error(code, f"a record of {where} was refused")


cdef object failure_of(kf_batch* batch, DataPlane plane):
    """Return the DeliveryError of a failed batch, for one record."""
    name, partition = plane.queue_of(batch.queue.id)
    where = f"{name}-{partition}"
    cause = cause_of(batch.error_code, where)
    outcome = OUTCOMES[batch.outcome]
    error = DeliveryError(f"not delivered ({outcome.value}): {cause}", outcome=outcome,
                          first=cause, topic=name, partition=partition)
    error.__cause__ = cause
    return error


cdef object new_metadata(str topic, object partition, object offset_object,
                         object timestamp_object):
    """Return RecordMetadata without the detour through its Python constructor."""
    cdef object metadata = PyType_GenericAlloc(<PyTypeObject*>RecordMetadata, 4)
    Py_INCREF(topic)
    Py_INCREF(partition)
    Py_INCREF(offset_object)
    Py_INCREF(timestamp_object)
    PyTuple_SET_ITEM(metadata, 0, topic)
    PyTuple_SET_ITEM(metadata, 1, partition)
    PyTuple_SET_ITEM(metadata, 2, offset_object)
    PyTuple_SET_ITEM(metadata, 3, timestamp_object)
    return metadata


cdef int change_item(object metadata, Py_ssize_t i, object item) except -1:
    """Put another item into a tuple that nobody else has."""
    cdef PyObject* before = PyTuple_GET_ITEM(metadata, i)
    Py_INCREF(item)
    PyTuple_SET_ITEM(metadata, i, item)
    Py_DECREF(<object>before)
    return 0


cdef tuple outcome_of(kf_batch* batch, DataPlane plane, int32_t index, int64_t timestamp_ms):
    cdef int64_t offset
    batch = kf_batch_resolve(batch, &index)
    topic, partition = <tuple>(<list>plane.queues)[batch.queue.id]
    offset = batch.base_offset + index if batch.base_offset >= 0 else -1
    if batch.append_time_ms >= 0:
        timestamp_ms = batch.append_time_ms
    metadata = new_metadata((<Topic>topic).name, partition, offset, timestamp_ms)
    if kf_get(&batch.state) == KF_BATCH_FAILED:
        return failure_of(batch, plane), metadata
    return None, metadata


cdef bint wait_for(DataPlane plane, kf_batch* batch, double deadline) except -1:
    cdef kf_plane* shared = plane.plane
    cdef double now
    if kf_batch_is_done(batch):
        return True
    plane.check_lives()
    kf_queue_kick(batch.queue, batch)
    while not kf_batch_is_done(batch):
        if plane.dead:
            plane.check_lives()
        now = shared.env.now(shared.env.context)
        if deadline != 0.0 and now >= deadline:
            return False
        with nogil:
            kf_plane_wait_batch(shared, batch, KF_WAIT_SLICE if deadline == 0.0
                                else min(KF_WAIT_SLICE, deadline - now))
        PyErr_CheckSignals()
    return True


# ---- observers ----

cdef int drop_holds(kf_batch* batch, int32_t count, int32_t seen) except -1:
    """Give up `count` of the batch's handles, `seen` of them after they were read."""
    batch.seen += seen
    kf_queue_drop_handles(batch.queue, batch, count)
    return 0


# A callback that waits for its record's batch to end.
cdef struct observation:
    int64_t timestamp_ms
    PyObject* callback  # owned
    int32_t index


@cython.final
cdef class Observations:
    """The callbacks of one batch. A C array, not a list: callbacks may come once per record."""

    cdef kf_batch* batch   # referenced once it has ended
    cdef observation* all
    cdef int32_t count
    cdef int32_t capacity
    cdef int32_t holds     # how many of them count as handles of the batch
    cdef list loops        # BatchWaits of event loops; None: no loop waits for it
    cdef object metadata   # what the last callback was given
    cdef object timestamp  # the last timestamp as Python has it
    cdef int64_t timestamp_ms

    cdef int add(self, int32_t index, int64_t timestamp_ms, object callback) except -1:
        cdef int32_t capacity = max(16, 2 * self.capacity)
        cdef observation* larger
        if self.count == self.capacity:
            larger = <observation*>realloc(self.all, capacity * sizeof(observation))
            if larger == NULL:
                raise MemoryError
            self.all = larger
            self.capacity = capacity
        Py_INCREF(callback)
        self.all[self.count].callback = <PyObject*>callback
        self.all[self.count].index = index
        self.all[self.count].timestamp_ms = timestamp_ms
        self.count += 1
        return 0

    cdef int run(self, DataPlane plane, report) except -1:
        """Call them all; each sees the outcome of its own record."""
        cdef int32_t i = 0
        cdef bint delivered = kf_get(&self.batch.state) == KF_BATCH_ACKED
        cdef object callback = None
        while i < self.count:
            try:
                while i < self.count:
                    callback = <object>self.all[i].callback
                    i += 1
                    if delivered:
                        callback(None, self.metadata_of(plane, &self.all[i - 1]))
                    else:
                        error, metadata = outcome_of(self.batch, plane, self.all[i - 1].index,
                                                     self.all[i - 1].timestamp_ms)
                        callback(error, metadata)
            except BaseException as exception:  # a SystemExit must not end the callback thread
                report(callback, exception)
        return 0

    cdef object metadata_of(self, DataPlane plane, const observation* one):
        """Return the metadata of a delivered record: the last one's tuple if nobody kept it."""
        cdef int64_t offset = self.batch.base_offset
        cdef int64_t timestamp_ms = self.batch.append_time_ms
        cdef object offset_object
        if offset >= 0:
            offset += one.index
        if timestamp_ms < 0:
            timestamp_ms = one.timestamp_ms
        if self.timestamp is None or timestamp_ms != self.timestamp_ms:
            self.timestamp_ms = timestamp_ms
            self.timestamp = timestamp_ms
        offset_object = offset
        if self.metadata is None or Py_REFCNT(self.metadata) > 1:
            topic, partition = <tuple>(<list>plane.queues)[self.batch.queue.id]
            self.metadata = new_metadata((<Topic>topic).name, partition, offset_object,
                                         self.timestamp)
        else:
            change_item(self.metadata, 2, offset_object)
            change_item(self.metadata, 3, self.timestamp)
        return self.metadata

    def __dealloc__(self):
        cdef int32_t i
        for i in range(self.count):
            Py_DECREF(<object>self.all[i].callback)
        free(self.all)
        if self.batch != NULL:
            kf_batch_unref(self.batch)


cdef Observations observations_of(DataPlane plane, kf_batch* batch):
    """Return the batch's observations, made on first use. Callers stay with a batch for a while."""
    cdef Observations found
    if plane.last_observed == batch:
        return plane.last_observations
    found = plane.observers.get(<uintptr_t>batch)
    if found is None:
        found = Observations.__new__(Observations)
        plane.observers[<uintptr_t>batch] = found
    plane.last_observed = batch
    plane.last_observations = found
    return found


cdef int observe(DataPlane plane, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                 object callback, bint holds) except -1:
    cdef Observations waiting
    if plane.inherited:
        plane.check_owner()
    if plane.callback_starter is not None:
        starter, plane.callback_starter = plane.callback_starter, None
        starter()
    waiting = observations_of(plane, batch)
    waiting.add(index, timestamp_ms, callback)
    waiting.holds += holds
    watch(plane, batch)
    return 0


cdef void watch(DataPlane plane, kf_batch* batch) noexcept:
    """Have the batch listed when it ends, or now if it has."""
    if kf_get(&batch.watched) == 0:
        kf_set(&batch.watched, 1)
        kf_fence()  # against the data plane, which publishes the end before it reads `watched`
    if kf_get(&batch.state) > KF_BATCH_IN_FLIGHT and kf_batch_is_done(batch):
        kf_plane_observe(plane.plane, batch)


cdef BatchWaits waits_of(LoopWaits loop, kf_batch* batch):
    """Return what the loop awaits of the batch, made on first use: the batch leaves then."""
    cdef BatchWaits found = loop.find(batch)
    cdef Observations waiting
    if found is None:
        loop.plane.check_lives()
        found = loop.add(batch)
        waiting = observations_of(loop.plane, batch)
        if waiting.loops is None:
            waiting.loops = []
        waiting.loops.append(found)
        kf_queue_kick(batch.queue, batch)
        watch(loop.plane, batch)
    return found


cdef Waiter waiter_for(DataPlane plane, kf_batch* batch, object awaited):
    cdef LoopWaits loop = running_waits(plane)
    if loop is None:
        raise RuntimeError("no running event loop")
    return new_waiter(waits_of(loop, batch), awaited)


cdef int64_t failed_records(kf_batch* batch, kf_batch** sample) noexcept:
    """Return how many records of an ended batch failed; `sample` gets one that holds some."""
    cdef kf_batch* child = batch.children
    cdef int64_t failed = 0
    if child == NULL and kf_get(&batch.state) == KF_BATCH_FAILED:
        sample[0] = batch
        failed = batch.record_count
    while child != NULL:
        failed += failed_records(child, sample)
        child = child.sibling
    return failed


cdef int count_lost(DataPlane plane, kf_batch* batch) except -1:
    """Count the failed records of an ended batch that nobody can observe any more.

    Handles count at the batch that the records were sent in, so its pieces are not looked at by
    themselves. Which of its records the handles are for is not known: where only a part of them
    failed, as many as possible count as observed by nobody.
    """
    cdef int64_t failed
    cdef kf_batch* sample = NULL
    if batch.counted or batch.parent != NULL:
        return 0
    batch.counted = True
    failed = min(failed_records(batch, &sample),
                 batch.record_count + batch.doubled - batch.handles - batch.seen
                 - batch.bulk_records)
    if failed > 0:
        add_lost(plane, failure_of(sample, plane), failed)
    return 0


cdef int add_lost(DataPlane plane, object error, int64_t count) except -1:
    plane.lost_count += count
    if plane.lost_first is None:
        plane.lost_first = error
    return 0


def collect(DataPlane plane):
    """Take note of the batches that have ended since the last call.

    Failures that nobody can observe are counted; what observers wait for is kept for `notify`.

    Returns:
        Whether there is something to notify.
    """
    plane.check_owner()
    cdef kf_batch* batch = kf_plane_take_observed(plane.plane)
    cdef kf_batch* following
    cdef Observations waiting
    while batch != NULL:
        following = batch.next
        kf_set(&batch.listed, 0)
        count_lost(plane, batch)
        waiting = plane.observers.pop(<uintptr_t>batch, None)
        if plane.last_observed == batch:
            plane.last_observed = NULL
            plane.last_observations = None
        if waiting is not None and waiting.loops is not None:
            for waits in waiting.loops:
                (<BatchWaits>waits).owner.hand_over(waits)
        if waiting is None or waiting.count == 0:
            kf_batch_unref(batch)
        else:
            waiting.batch = batch  # takes the list's reference over
            plane.ended.append(waiting)
            plane.unnotified += 1
            if waiting.holds > 0:
                drop_holds(batch, waiting.holds, waiting.holds)
        batch = following
    return len(plane.ended) > 0


def notify(DataPlane plane, report):
    """Run the callbacks of the batches that have ended.

    Args:
        report: Called with (callback, exception) for one that raises.
    """
    collect(plane)
    cdef list ended = plane.ended
    plane.ended = []
    while ended:
        (<Observations>ended.pop(0)).run(plane, report)
        plane.unnotified -= 1


def take_lost(DataPlane plane):
    """Return (count, first DeliveryError) of failures that nobody can observe, and forget them."""
    collect(plane)
    lost = plane.lost_count, plane.lost_first
    plane.lost_count = 0
    plane.lost_first = None
    return lost


# ---- the handle ----

cdef inline DataPlane plane_of(const kf_batch* batch):
    return <DataPlane>batch.queue.plane.owner


cdef inline int32_t index_of(DeliveryFuture future) noexcept:
    return future.place >> 1


cdef int64_t timestamp_of(DeliveryFuture future) except? -1:
    """Return the timestamp that the record was sent with."""
    if future.delay == FAR:
        return far_timestamps[<uintptr_t><void*>future]
    return future.batch.base_timestamp + future.delay


@cython.final
@cython.no_gc
cdef class DeliveryFuture:
    """What becomes of one record. Any thread may wait for it; it can be awaited too."""

    def __init__(self):
        raise TypeError("DeliveryFuture is made by Producer.send")

    def done(self):
        """Return whether the record's fate is known."""
        return bool(kf_batch_is_done(self.batch))

    def cancelled(self):
        """Return whether the running event loop has given up waiting. The record goes its way."""
        return is_given_up(self)

    def cancel(self, msg=None):
        """Have the running event loop wait no more for the record, which goes its way.

        Whoever awaits it there through `gather`, `wait` or `add_done_callback` is told that it was
        cancelled, until the record's fate is known after all.

        Returns:
            False if nobody there waits for it.
        """
        cdef BatchWaits waits = found_waits(self)
        return waits is not None and waits.cancel(self)

    def result(self, timeout=None):
        """Wait until the record is delivered; an open batch leaves at once.

        Args:
            timeout: Seconds to wait; None waits as long as delivery.timeout.ms allows.

        Returns:
            RecordMetadata of the record.

        Raises:
            DeliveryError: The record was not, or perhaps not, delivered; `outcome` says which.
            KafkaTimeoutError: Not known yet after `timeout`. The record is still on its way.
            UsageError: Called from a delivery callback, or the producer does not run any more.
        """
        wait_until_known(self, timeout)
        return known_result(self)

    def exception(self, timeout=None):
        """Wait like `result`, and return the DeliveryError, or None if the record was delivered."""
        wait_until_known(self, timeout)
        self.place |= 1
        return read_outcome(self)[0]

    def add_done_callback(self, callback, *, context=None):
        """Have `callback(future)` called once the record's fate is known.

        In an event loop it is called there, soon and in `context` (contextvars); elsewhere on the
        callback thread.
        """
        cdef LoopWaits waits
        cdef bint known = kf_batch_is_done(self.batch)
        loop = running_loop()
        if loop is not None and known:
            self.place |= 1
            loop.call_soon(callback, self, context=context)
        elif known and plane_of(self.batch).dead:  # the callback thread has ended
            self.place |= 1
            callback(self)
        else:
            waits = running_waits(plane_of(self.batch))
            if waits is None:
                self.add_observer(lambda error, metadata: callback(self))
                return
            self.place |= 1
            waits_of(waits, self.batch).add(self, callback, context)

    def remove_done_callback(self, callback):
        """Forget a callback that is to run in the event loop; return how often it was there."""
        cdef BatchWaits waits = found_waits(self)
        return 0 if waits is None else waits.remove(self, callback)

    def get_loop(self):
        """Return the running event loop: it is where the handle acts as an asyncio future."""
        import asyncio  # only those who await pay for it

        return asyncio.get_running_loop()

    # What asyncio reads of its own futures, so that it takes a handle for one.

    @property
    def _asyncio_future_blocking(self):
        return False

    @property
    def _cancel_message(self):
        return None

    def _make_cancelled_error(self):
        return cancelled_error()

    def add_observer(self, on_delivery):
        """Have `on_delivery(error, metadata)` called on the callback thread."""
        observe_beside(self, on_delivery)

    def __await__(self):
        """Wait in an event loop; ends at once if the record's fate is known."""
        cdef Await steps = Await.__new__(Await)
        steps.future = self
        return steps

    def __repr__(self):
        if not kf_batch_is_done(self.batch):
            return "<DeliveryFuture pending>"
        error, metadata = read_outcome(self)
        return f"<DeliveryFuture {error or metadata}>"


# Functions, not methods: methods in C would cost each handle eight bytes for a table of them.

cdef int wait_until_known(DeliveryFuture future, timeout) except -1:
    """Wait as `result` says."""
    cdef double deadline = 0.0
    cdef kf_plane* shared = future.batch.queue.plane
    if kf_batch_is_done(future.batch):
        return 0
    if is_given_up(future):
        raise cancelled_error()
    plane_of(future.batch).check_may_wait()
    if timeout is not None:
        deadline = shared.env.now(shared.env.context) + max(<double>timeout, 1e-9)
    if not wait_for(plane_of(future.batch), future.batch, deadline):
        raise KafkaTimeoutError(f"the record's delivery is not known after {timeout} s")
    return 0


cdef tuple read_outcome(DeliveryFuture future):
    return outcome_of(future.batch, plane_of(future.batch), index_of(future), timestamp_of(future))


cdef int observe_beside(DeliveryFuture future, object callback) except -1:
    """Register a callback for a record that has a handle, which then counts as observed."""
    future.place |= 1
    future.batch.handles += 1
    future.batch.doubled += 1
    return observe(plane_of(future.batch), future.batch, index_of(future), timestamp_of(future),
                   callback, True)


cdef BatchWaits found_waits(DeliveryFuture future):
    """Return what the running event loop awaits of the handle's batch, or None."""
    cdef LoopWaits loop
    if plane_of(future.batch).last_waits is None or kf_batch_is_done(future.batch):
        return None
    loop = running_waits(plane_of(future.batch))
    return None if loop is None else loop.find(future.batch)


cdef bint is_given_up(DeliveryFuture future) except -1:
    cdef BatchWaits waits = found_waits(future)
    return waits is not None and waits.given_up is not None and future in waits.given_up


cdef object cancelled_error():
    import asyncio

    return asyncio.CancelledError()


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Await:
    """What `await` iterates over: waits while the record's fate is not known, and ends with it."""

    cdef DeliveryFuture future

    def __iter__(self):
        return self

    def __await__(self):
        return self

    def __next__(self):
        if not kf_batch_is_done(self.future.batch):
            return waiter_for(plane_of(self.future.batch), self.future.batch, self.future)
        raise StopIteration(known_result(self.future))


cdef object known_result(DeliveryFuture future):
    """Return the metadata of a record whose fate is known, or raise its error."""
    future.place |= 1
    error, metadata = read_outcome(future)
    if error is not None:
        raise error
    return metadata


cdef int send_await(PyObject* steps, PyObject* value, PyObject** result) noexcept:
    """`Await.__next__` as the interpreter takes it up to 3.11: an end without an exception, which
    would cost more than all else here.
    """
    cdef Await self = <Await>steps
    try:
        if kf_batch_is_done(self.future.batch):
            outcome = known_result(self.future)
            Py_INCREF(outcome)
            result[0] = <PyObject*>outcome
            return PYGEN_RETURN
        outcome = waiter_for(plane_of(self.future.batch), self.future.batch, self.future)
        Py_INCREF(outcome)
        result[0] = <PyObject*>outcome
        return PYGEN_NEXT
    except BaseException as error:
        result[0] = NULL
        PyErr_SetObject(type(error), error)
        return PYGEN_ERROR


set_am_send(<PyTypeObject*>Await, <void*>send_await)


# ---- making and dropping handles ----
#
# Most are dropped at once, so this is done for every record. What Cython would do for __dealloc__
# (saving the exception in flight, reviving the object) costs more than the rest of it.

cdef DeliveryFuture new_delivery(DataPlane plane, kf_batch* batch, int32_t index,
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
    Py_INCREF(plane)
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
    cdef PyObject* plane
    if batch != NULL:  # else it was made by __new__
        plane = <PyObject*>batch.queue.plane.owner
        if batch.counted or (<DeliveryFuture>handle).delay == FAR:
            drop_unusual(handle)
        batch.seen += (<DeliveryFuture>handle).place & 1
        kf_queue_drop_handles(batch.queue, batch, 1)
        Py_DECREF(<object>plane)
    if spare_count < SPARE_HANDLES:
        spare_handles[spare_count] = handle
        spare_count += 1
    else:
        PyObject_Free(handle)


cdef void drop_unusual(PyObject* handle) noexcept:
    """A handle goes after its batch has ended, or one that has a far timestamp."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    cdef kf_batch* batch = (<DeliveryFuture>handle).batch
    cdef DataPlane plane = plane_of(batch)
    cdef int32_t index = (<DeliveryFuture>handle).place >> 1
    PyErr_Fetch(&kind, &value, &traceback)
    if (<DeliveryFuture>handle).delay == FAR:
        far_timestamps.pop(<uintptr_t>handle, None)
    if batch.counted and not (<DeliveryFuture>handle).place & 1:
        batch = kf_batch_resolve(batch, &index)
        if kf_get(&batch.state) == KF_BATCH_FAILED:
            add_lost(plane, failure_of(batch, plane), 1)
    PyErr_Restore(kind, value, traceback)


(<PyTypeObject*>DeliveryFuture).tp_dealloc = <destructor>drop_handle
