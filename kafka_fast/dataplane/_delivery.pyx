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
from libc.stdint cimport int32_t, int64_t, uintptr_t

from kafka_fast.dataplane._plane cimport DataPlane
from kafka_fast.dataplane.state cimport *

from kafka_fast.errors import (
    DeliveryError,
    KafkaTimeoutError,
    Outcome,
    UsageError,
    broker_error,
)
from kafka_fast.types import RecordMetadata

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
                          first=cause)
    error.__cause__ = cause
    return error


cdef tuple outcome_of(kf_batch* batch, DataPlane plane, int32_t index, int64_t timestamp_ms):
    cdef int64_t offset
    batch = kf_batch_resolve(batch, &index)
    name, partition = plane.queue_of(batch.queue.id)
    offset = batch.base_offset + index if batch.base_offset >= 0 else -1
    if batch.append_time_ms >= 0:
        timestamp_ms = batch.append_time_ms
    metadata = RecordMetadata(name, partition, offset, timestamp_ms)
    if kf_get(&batch.state) == KF_BATCH_FAILED:
        return failure_of(batch, plane), metadata
    return None, metadata


cdef bint wait_for(DataPlane plane, kf_batch* batch, double deadline) except -1:
    cdef kf_plane* shared = plane.plane
    cdef double now
    if kf_batch_is_done(batch):
        return True
    kf_queue_kick(batch.queue, batch)
    while not kf_batch_is_done(batch):
        if plane.dead:
            raise UsageError("this producer does not run any more: nothing will be delivered")
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
    batch.handles -= count
    batch.seen += seen
    if batch.handles == 0:
        kf_batch_unref(batch)
    return 0


cdef int observe(DataPlane plane, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                 object callback, bint holds) except -1:
    cdef object address = <uintptr_t>batch
    cdef list waiting = plane.observers.get(address)
    if waiting is None:
        waiting = plane.observers[address] = []
    if plane.callback_starter is not None:
        starter, plane.callback_starter = plane.callback_starter, None
        starter()
    waiting.append((index, timestamp_ms, callback, holds))
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
                 batch.record_count - batch.handles - batch.seen - batch.bulk_records)
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
    cdef kf_batch* batch = kf_plane_take_observed(plane.plane)
    cdef kf_batch* following
    cdef int32_t count
    while batch != NULL:
        following = batch.next
        kf_set(&batch.listed, 0)
        count_lost(plane, batch)
        waiting = plane.observers.pop(<uintptr_t>batch, None)
        if waiting is not None:
            count = 0
            for index, timestamp_ms, callback, holds in <list>waiting:
                plane.ended.append((callback, *outcome_of(batch, plane, index, timestamp_ms)))
                count += <bint>holds
            if count > 0:
                drop_holds(batch, count, count)
        kf_batch_unref(batch)
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
    for callback, error, metadata in ended:
        try:
            callback(error, metadata)
        except Exception as exception:
            report(callback, exception)


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
        if batch == NULL:
            return
        if not self.seen and batch.counted and kf_get(&batch.state) == KF_BATCH_FAILED:
            add_lost(self.plane, failure_of(batch, self.plane), 1)
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
        error, metadata = self.wait(timeout)
        if error is not None:
            raise error
        return metadata

    def exception(self, timeout=None):
        """Wait like `result`, and return the DeliveryError, or None if the record was delivered."""
        error, _ = self.wait(timeout)
        return error

    cdef tuple wait(self, timeout):
        cdef double deadline = 0.0
        cdef kf_plane* shared = self.plane.plane
        if timeout is not None:
            deadline = shared.env.now(shared.env.context) + max(<double>timeout, 1e-9)
        if not kf_batch_is_done(self.batch):
            self.plane.check_may_wait()
        if not wait_for(self.plane, self.batch, deadline):
            raise KafkaTimeoutError(f"the record's delivery is not known after {timeout} s")
        self.seen = True
        return outcome_of(self.batch, self.plane, self.index, self.timestamp_ms)

    def add_done_callback(self, callback):
        """Have `callback(future)` called on the callback thread once the record's fate is known."""
        self.seen = True
        observe(self.plane, self.batch, self.index, self.timestamp_ms,
                lambda error, metadata: callback(self), False)

    def add_observer(self, on_delivery):
        """Have `on_delivery(error, metadata)` called on the callback thread."""
        self.seen = True
        observe(self.plane, self.batch, self.index, self.timestamp_ms,
                Kept(self, on_delivery), False)

    def __await__(self):
        """Wait in an event loop; ends at once if the record's fate is known."""
        if not kf_batch_is_done(self.batch):
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


@cython.final
cdef class Kept:
    """A callback that keeps its record's handle, and so the batch, until it is called."""

    cdef DeliveryFuture future
    cdef object callback

    def __init__(self, DeliveryFuture future, callback):
        self.future = future
        self.callback = callback

    def __call__(self, error, metadata):
        self.callback(error, metadata)


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
