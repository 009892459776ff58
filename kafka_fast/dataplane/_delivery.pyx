"""Delivery: handles, callbacks, and the failures that nobody can observe.

A handle is (batch, index): all records of a batch share one result, which the data plane writes
once. Who waits for a batch that is still open makes it leave at once.

    send ─► DeliveryFuture ─► result()        waits on the plane, without the GIL
                           ─► await           one event-loop wake-up per batch
         ─► on_delivery, add_done_callback    run on the callback thread, batch by batch

Threads: any, with the GIL; it guards the counts of handles.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, realloc

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
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)

cdef double WAIT_SLICE = 0.025  # seconds between two looks for signals

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


cdef object new_metadata(str topic, object partition, int64_t offset, int64_t timestamp_ms):
    """Return RecordMetadata without the detour through its Python constructor."""
    cdef object offset_object = offset
    cdef object timestamp_object = timestamp_ms
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
            kf_plane_wait_batch(shared, batch,
                                WAIT_SLICE if deadline == 0.0 else min(WAIT_SLICE, deadline - now))
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
        cdef int32_t i
        for i in range(self.count):
            callback = <object>self.all[i].callback
            error, metadata = outcome_of(self.batch, plane, self.all[i].index,
                                         self.all[i].timestamp_ms)
            try:
                callback(error, metadata)
            except BaseException as exception:  # a SystemExit must not end the callback thread
                report(callback, exception)
        return 0

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
    if kf_get(&batch.watched) == 0:
        kf_set(&batch.watched, 1)
        kf_fence()  # against the data plane, which publishes the end before it reads `watched`
    if kf_batch_is_done(batch):
        kf_plane_observe(plane.plane, batch)
    return 0


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
        if waiting is None:
            kf_batch_unref(batch)
        else:
            if plane.last_observed == batch:
                plane.last_observed = NULL
                plane.last_observations = None
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

@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class DeliveryFuture:
    """What becomes of one record. Any thread may wait for it; it can be awaited too."""

    def __init__(self):
        raise TypeError("DeliveryFuture is made by Producer.send")

    def __dealloc__(self):
        cdef kf_batch* batch = self.batch
        cdef kf_batch* holder
        cdef int32_t index = self.index
        if batch == NULL:
            return
        if not self.seen and batch.counted:
            holder = kf_batch_resolve(batch, &index)
            if kf_get(&holder.state) == KF_BATCH_FAILED:
                add_lost(self.plane, failure_of(holder, self.plane), 1)
        drop_holds(batch, 1, self.seen)

    def done(self):
        """Return whether the record's fate is known."""
        return bool(kf_batch_is_done(self.batch))

    def cancelled(self):
        """Return False: what was sent cannot be called back."""
        return False

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
        error, metadata = outcome_when_known(self, timeout)
        if error is not None:
            raise error
        return metadata

    def exception(self, timeout=None):
        """Wait like `result`, and return the DeliveryError, or None if the record was delivered."""
        error, _ = outcome_when_known(self, timeout)
        return error

    def add_done_callback(self, callback):
        """Have `callback(future)` called on the callback thread once the record's fate is known."""
        self.add_observer(lambda error, metadata: callback(self))

    def add_observer(self, on_delivery):
        """Have `on_delivery(error, metadata)` called on the callback thread."""
        observe_beside(self, on_delivery)

    def __await__(self):
        """Wait in an event loop; ends at once if the record's fate is known."""
        if not kf_batch_is_done(self.batch):
            self.plane.check_lives()
            kf_queue_kick(self.batch.queue, self.batch)
            return self.wait_in_loop().__await__()
        return Ready(self)

    async def wait_in_loop(self):
        """Wait until the event loop that runs is told."""
        waiter, settle = self.plane.loop_bridge()
        self.add_observer(settle)
        await waiter
        return self.result()

    def __repr__(self):
        if not kf_batch_is_done(self.batch):
            return "<DeliveryFuture pending>"
        error, metadata = outcome_of(self.batch, self.plane, self.index, self.timestamp_ms)
        return f"<DeliveryFuture {error or metadata}>"


# Functions, not methods: methods in C would cost each handle eight bytes for a table of them.

cdef tuple outcome_when_known(DeliveryFuture future, timeout):
    """Wait as `result` says, and return (error or None, metadata)."""
    cdef double deadline = 0.0
    cdef kf_plane* shared = future.plane.plane
    if timeout is not None:
        deadline = shared.env.now(shared.env.context) + max(<double>timeout, 1e-9)
    if not kf_batch_is_done(future.batch):
        future.plane.check_may_wait()
    if not wait_for(future.plane, future.batch, deadline):
        raise KafkaTimeoutError(f"the record's delivery is not known after {timeout} s")
    future.seen = True
    return outcome_of(future.batch, future.plane, future.index, future.timestamp_ms)


cdef int observe_beside(DeliveryFuture future, object callback) except -1:
    """Register a callback for a record that has a handle, which then counts as observed."""
    future.seen = True
    future.batch.handles += 1
    future.batch.doubled += 1
    return observe(future.plane, future.batch, future.index, future.timestamp_ms, callback, True)


@cython.final
cdef class Ready:
    """What `await` iterates over when the outcome is known: it ends at once."""

    cdef DeliveryFuture future

    def __init__(self, DeliveryFuture future):
        self.future = future

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.future.result())


cdef DeliveryFuture new_delivery(DataPlane plane, kf_batch* batch, int32_t index,
                                 int64_t timestamp_ms):
    cdef DeliveryFuture future = DeliveryFuture.__new__(DeliveryFuture)
    future.plane = plane
    future.batch = batch
    future.index = index
    future.timestamp_ms = timestamp_ms
    future.seen = False
    return future
