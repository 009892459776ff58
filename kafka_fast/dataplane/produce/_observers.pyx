"""Observers: callbacks, event loops and counts, which hear what became of a batch's records.

All records of a batch share one result, which the data plane writes once. The callbacks of a batch
are kept until it ends. An event loop is told once of all that it awaits (see _awaiting). Failures
that nobody can observe are counted.

    on_delivery, add_done_callback ─► Observations ─► run on the callback thread, batch by batch
    await, gather ──────────────────► BatchWaits ───► run in the event loop
    neither, and no handle ─────────► counted, and raised by the next flush

Threads: any, with the GIL; it guards the counts of handles.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, realloc

from kafka_fast.dataplane.produce._awaiting cimport (
    BatchWaits,
    LoopWaits,
    Waiter,
    new_waiter,
    running_waits,
)
from kafka_fast.dataplane.produce._causes cimport cause_of
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.dataplane.produce.losses import Losses
from kafka_fast.errors import BrokerError, DeliveryError, Outcome
from kafka_fast.types import RecordMetadata

cdef extern from "Python.h":
    """
    /* From Python 3.14 on a tuple keeps its hash. */
    static inline void kf_forget_hash(PyObject *tuple) {
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)tuple)->ob_hash = -1;
    #else
        (void)tuple;
    #endif
    }
    """
    void kf_forget_hash(PyObject* items)
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)
    void PyObject_GC_UnTrack(PyObject* item)
    PyObject* PyTuple_GET_ITEM(object items, Py_ssize_t i)
    Py_ssize_t Py_REFCNT(PyObject* item)

cdef dict OUTCOMES = {
    KF_OUTCOME_NOT_SENT: Outcome.NOT_SENT,
    KF_OUTCOME_REJECTED: Outcome.REJECTED,
    KF_OUTCOME_MAYBE_WRITTEN: Outcome.MAYBE_WRITTEN,
}


# ---- what became of a record ----

cdef PyObject* last_metadata = NULL  # owned; given out last
cdef int64_t last_timestamp_ms = 0


cdef object failure_of(kf_batch* batch, Queues queues):
    """Return the DeliveryError of a failed batch, for one record."""
    name, partition = queues.queue_of(batch.queue.id)
    cause = cause_of(batch, queues, name, partition)
    outcome = OUTCOMES[batch.outcome]
    error = DeliveryError(f"not delivered ({outcome.value}): {cause}", outcome=outcome,
                          first=cause, topic=name, partition=partition)
    # A broker's own error is shown as the cause, even if a timeout stands in front of it.
    error.__cause__ = cause.__cause__ if isinstance(cause.__cause__, BrokerError) else cause
    return error


cdef object new_metadata(str topic, object partition, object offset_object,
                         object timestamp_object):
    """Return RecordMetadata without the detour through its Python constructor.

    Strings and numbers make no cycle: the garbage collector need not look at it, ever.
    """
    cdef object metadata = PyType_GenericAlloc(<PyTypeObject*>RecordMetadata, 4)
    PyObject_GC_UnTrack(<PyObject*>metadata)
    Py_INCREF(topic)
    Py_INCREF(partition)
    Py_INCREF(offset_object)
    Py_INCREF(timestamp_object)
    PyTuple_SET_ITEM(metadata, 0, topic)
    PyTuple_SET_ITEM(metadata, 1, partition)
    PyTuple_SET_ITEM(metadata, 2, offset_object)
    PyTuple_SET_ITEM(metadata, 3, timestamp_object)
    kf_forget_hash(<PyObject*>metadata)
    return metadata


cdef int change_item(PyObject* metadata, Py_ssize_t i, object item) except -1:
    """Put another item into a tuple that nobody else holds."""
    cdef PyObject* before = PyTuple_GET_ITEM(<object>metadata, i)
    Py_INCREF(item)
    PyTuple_SET_ITEM(<object>metadata, i, item)
    Py_DECREF(<object>before)
    return 0


cdef object metadata_of(kf_batch* batch, Queues queues, int32_t index, int64_t timestamp_ms):
    """Return the metadata of a record of a batch that was not split.

    Most are dropped as soon as they were seen: then their tuple is given out again.
    """
    global last_metadata, last_timestamp_ms
    cdef int64_t offset = batch.base_offset + index if batch.base_offset >= 0 else -1
    cdef str name
    topic, partition = <tuple>(<list>queues.places)[batch.queue.id]
    name = (<TopicQueues>topic).name
    if batch.append_time_ms >= 0:
        timestamp_ms = batch.append_time_ms
    if (last_metadata == NULL or Py_REFCNT(last_metadata) > 1
            or PyTuple_GET_ITEM(<object>last_metadata, 0) != <PyObject*>name
            or PyTuple_GET_ITEM(<object>last_metadata, 1) != <PyObject*>partition):
        metadata = new_metadata(name, partition, offset, timestamp_ms)
        Py_INCREF(metadata)
        Py_XDECREF(last_metadata)
        last_metadata, last_timestamp_ms = <PyObject*>metadata, timestamp_ms
        return metadata
    kf_forget_hash(last_metadata)
    change_item(last_metadata, 2, offset)
    if timestamp_ms != last_timestamp_ms:
        change_item(last_metadata, 3, timestamp_ms)
        last_timestamp_ms = timestamp_ms
    return <object>last_metadata


cdef tuple outcome_of(kf_batch* batch, Queues queues, int32_t index, int64_t timestamp_ms):
    batch = kf_batch_resolve(batch, &index)
    metadata = metadata_of(batch, queues, index, timestamp_ms)
    if kf_get(&batch.state) == KF_BATCH_FAILED:
        return failure_of(batch, queues), metadata
    return None, metadata


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

    cdef int run(self, Queues queues, report) except -1:
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
                        metadata = metadata_of(self.batch, queues, self.all[i - 1].index,
                                               self.all[i - 1].timestamp_ms)
                        callback(None, metadata)
                    else:
                        error, metadata = outcome_of(self.batch, queues, self.all[i - 1].index,
                                                     self.all[i - 1].timestamp_ms)
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


cdef Observations observations_of(Queues queues, kf_batch* batch):
    """Return the batch's observations, made on first use; the last batch's are found at once."""
    cdef Observations found
    if queues.last_observed == batch:
        return queues.last_observations
    found = queues.observers.get(<uintptr_t>batch)
    if found is None:
        found = Observations.__new__(Observations)
        queues.observers[<uintptr_t>batch] = found
    queues.last_observed = batch
    queues.last_observations = found
    return found


cdef int observe(Queues queues, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                 object callback, bint holds) except -1:
    cdef Observations waiting
    if queues.producer.inherited:
        queues.check_owner()
    if queues.callback_starter is not None:
        starter, queues.callback_starter = queues.callback_starter, None
        starter()
    waiting = observations_of(queues, batch)
    waiting.add(index, timestamp_ms, callback)
    waiting.holds += holds
    watch(queues, batch)
    return 0


cdef void watch(Queues queues, kf_batch* batch) noexcept:
    """Have the batch listed when it ends, or now if it has."""
    if kf_get(&batch.watched) == 0:
        kf_set(&batch.watched, 1)
        kf_fence()  # against the data plane, which publishes the end before it reads `watched`
    if kf_get(&batch.state) > KF_BATCH_IN_FLIGHT and kf_batch_is_done(batch):
        kf_producer_observe(queues.producer, batch)


cdef BatchWaits waits_of(LoopWaits loop, kf_batch* batch):
    """Return what the loop awaits of the batch; the first use has the batch sent."""
    cdef BatchWaits found = loop.find(batch)
    cdef Observations waiting
    if found is None:
        loop.queues.check_lives()
        found = loop.add(batch)
        waiting = observations_of(loop.queues, batch)
        if waiting.loops is None:
            waiting.loops = []
        waiting.loops.append(found)
        kf_queue_urge(batch.queue, batch)
        watch(loop.queues, batch)
    return found


cdef Waiter waiter_for(Queues queues, kf_batch* batch, object awaited):
    cdef LoopWaits loop = running_waits(queues)
    if loop is None:
        raise RuntimeError("no running event loop")
    return new_waiter(waits_of(loop, batch), awaited)


cdef int64_t failed_records(Queues queues, kf_batch* batch, kf_batch** sample) noexcept:
    """Return how many records of an ended batch failed; `sample` gets one that holds some."""
    cdef kf_batch* child = batch.children
    cdef int64_t failed = 0
    if child == NULL and has_failed_untold(queues, batch):
        sample[0] = batch
        failed = batch.record_count
    while child != NULL:
        failed += failed_records(queues, child, sample)
        child = child.sibling
    return failed


cdef int count_lost(Queues queues, kf_batch* batch) except -1:
    """Count the failed records of an ended batch that nobody can observe any more.

    Handles count at the batch that the records were appended to, so the children of a split batch
    are skipped. It is not known which records the handles are for. Where only some of the records
    failed, as many of these as possible count as observed by nobody.
    """
    cdef int64_t failed
    cdef kf_batch* sample = NULL
    if batch.counted or batch.parent != NULL:
        return 0
    batch.counted = True
    failed = min(failed_records(queues, batch, &sample),
                 batch.record_count + batch.doubled - batch.handles - batch.seen
                 - batch.bulk_records)
    if failed > 0:
        add_lost(queues, failure_of(sample, queues), failed)
    return 0


cdef bint has_failed_untold(Queues queues, kf_batch* batch) noexcept:
    if kf_get(&batch.state) != KF_BATCH_FAILED:
        return False
    return batch.error_code != KF_ERROR_CLOSED or not queues.told


cdef int add_lost(Queues queues, object error, int64_t count) except -1:
    if queues.lost is None:
        queues.lost = Losses()
    if queues.unlogged is None:
        queues.unlogged = Losses()
    queues.lost.add(error.topic, count, error)
    queues.unlogged.add(error.topic, count, error)
    return 0


def collect(Queues queues):
    """Take note of the batches that have ended since the last call.

    Failures that nobody can observe are counted. Callbacks are kept for `notify`.

    Returns:
        Whether there is something to notify.
    """
    queues.check_owner()
    cdef kf_batch* batch = kf_producer_take_observed(queues.producer)
    cdef kf_batch* following
    cdef Observations waiting
    while batch != NULL:
        following = batch.next
        kf_set(&batch.listed, 0)
        count_lost(queues, batch)
        waiting = queues.observers.pop(<uintptr_t>batch, None)
        if queues.last_observed == batch:
            queues.last_observed = NULL
            queues.last_observations = None
        if waiting is not None and waiting.loops is not None:
            for waits in waiting.loops:
                (<BatchWaits>waits).owner.hand_over(waits)
        if waiting is None or waiting.count == 0:
            kf_batch_unref(batch)
        else:
            waiting.batch = batch  # takes the list's reference over
            queues.ended.append(waiting)
            queues.observed += 1
            if waiting.holds > 0:
                drop_holds(batch, waiting.holds, waiting.holds)
        batch = following
    return len(queues.ended) > 0


def notify(Queues queues, report):
    """Run the callbacks of the batches that have ended.

    Args:
        report: Called with (callback, exception) for one that raises.
    """
    collect(queues)
    cdef list ended = queues.ended
    queues.ended = []
    while ended:
        (<Observations>ended.pop(0)).run(queues, report)
        queues.notified += 1


def take_lost(Queues queues):
    """Return the failures that nobody can observe, to be raised: they are not logged then."""
    collect(queues)
    lost, queues.lost, queues.unlogged = queues.lost, None, None
    return Losses() if lost is None else lost


def take_unlogged(Queues queues):
    """Return the lost failures that were not logged yet; a flush or close may still raise them."""
    collect(queues)
    unlogged, queues.unlogged = queues.unlogged, None
    return Losses() if unlogged is None else unlogged
