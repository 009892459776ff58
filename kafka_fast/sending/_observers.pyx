"""Observers: callbacks, event loops and counts, which hear what became of a batch's records.

All records of a batch share one result, which the data plane writes once. The callbacks of a batch
are kept until it ends; those of a batch that was split, until their parts end. An event loop is
told once of all that it awaits (see _awaiting). Failures that nobody can observe are counted.

    on_delivery, add_done_callback ─► Observations ─► run on the callback thread, batch by batch
    await, gather ──────────────────► BatchWaits ───► run in the event loop
    neither, and no handle ─────────► counted, and raised by the next flush

Thread: any, with the GIL; it guards the counts of handles. `collect` takes note of all ended
batches in one step: no Python code runs there, see _losses. Another thread sees all of it done.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free, realloc

from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._losses cimport LossCounts
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues
from kafka_fast.sending._awaiting cimport (
    BatchWaits,
    LoopWaits,
    Waiter,
    new_waiter,
    running_waits,
)
from kafka_fast.sending._causes cimport ANY_RECORD, cause_of, is_collateral

from kafka_fast.errors import BrokerError, DeliveryError, Outcome
from kafka_fast.sending.losses import Losses
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


cdef object failure_of(kf_batch* batch, Queues queues, int32_t index=ANY_RECORD):
    """Return the DeliveryError of a failed batch, for the record at this index."""
    name, partition = queues.queue_of(batch.queue.id)
    cause = cause_of(batch, queues, name, partition, index)
    outcome = OUTCOMES[batch.outcome]
    error = DeliveryError(f"not delivered ({outcome.value}): {cause}", outcome=outcome,
                          first=cause, topic=name, partition=partition,
                          is_collateral=is_collateral(batch, queues, index))
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
        return failure_of(batch, queues, index), metadata
    return None, metadata


# ---- observers ----

cdef int drop_holds(kf_batch* batch, int32_t count, int32_t seen) except -1:
    """Give up `count` of the batch's handles, `seen` of them after they were read."""
    batch.seen += seen
    kf_queue_drop_handles(batch.queue, batch, count)
    return 0


# A callback that waits until the fate of its records is known.
cdef struct observation:
    int64_t timestamp_ms
    PyObject* callback  # owned
    int32_t index       # of its first record
    int32_t records     # how many it has


cdef class PartObserver:
    """A callback that is called with each end of a part of its records, and knows which it is."""


@cython.final
cdef class Observations:
    """The callbacks of one batch. A C array, not a list: callbacks may come once per record."""

    cdef kf_batch* batch   # referenced once it, or a part of it, has ended
    cdef observation* all
    cdef int32_t count
    cdef int32_t capacity
    cdef int32_t holds     # how many of them count as handles of the batch
    cdef list loops        # BatchWaits of event loops; None: no loop waits for it

    cdef int reserve(self, int32_t capacity) except -1:
        cdef observation* larger = <observation*>realloc(self.all, capacity * sizeof(observation))
        if larger == NULL:
            raise MemoryError
        self.all = larger
        self.capacity = capacity
        return 0

    cdef int add(self, int32_t index, int32_t records, int64_t timestamp_ms,
                 object callback) except -1:
        if self.count == self.capacity:
            self.reserve(max(16, 2 * self.capacity))
        Py_INCREF(callback)
        self.all[self.count].callback = <PyObject*>callback
        self.all[self.count].index = index
        self.all[self.count].records = records
        self.all[self.count].timestamp_ms = timestamp_ms
        self.count += 1
        return 0

    cdef int give_known(self, Observations known, kf_batch* batch) except -1:
        """Move the callbacks that can run, of a batch of which only parts have ended."""
        cdef observation* one
        cdef int32_t i
        cdef int32_t kept = 0
        known.reserve(max(1, self.count))  # nothing fails once some have moved
        for i in range(self.count):
            one = &self.all[i]
            if kf_records_are_done(batch, one.index, one.records):
                known.all[known.count] = one[0]
                known.count += 1
                continue
            if isinstance(<object>one.callback, PartObserver):
                known.add(one.index, one.records, one.timestamp_ms, <object>one.callback)
            self.all[kept] = one[0]
            kept += 1
        self.count = kept
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
    """Return the batch's observations, made on first use; the last batch's are found at once.

    Whoever adds to them does so before it allocates anything: another thread may run then, and
    take note of the batch's end.
    """
    cdef Observations found
    if queues.last_observed == batch:
        return queues.last_observations
    found = queues.observers.get(<uintptr_t>batch)
    if found is None:
        found = Observations.__new__(Observations)  # meanwhile another thread may do the same
        found = queues.observers.setdefault(<uintptr_t>batch, found)
    queues.last_observed = batch
    queues.last_observations = found
    return found


cdef int observe(Queues queues, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                 object callback, bint holds) except -1:
    return add_observation(queues, batch, index, 1, timestamp_ms, callback, holds)


cdef int observe_records(Queues queues, kf_batch* batch, int32_t index, int32_t records,
                         object callback) except -1:
    return add_observation(queues, batch, index, records, -1, callback, False)


cdef int add_observation(Queues queues, kf_batch* batch, int32_t index, int32_t records,
                         int64_t timestamp_ms, object callback, bint holds) except -1:
    cdef Observations waiting
    if queues.producer.inherited:
        queues.check_owner()
    waiting = observations_of(queues, batch)
    waiting.add(index, records, timestamp_ms, callback)
    waiting.holds += holds
    watch(queues, batch)
    if queues.callback_starter is not None:
        start_callbacks(queues)
    return 0


cdef int start_callbacks(Queues queues) except -1:
    """Start the thread that runs callbacks. If that fails, the next callback tries again."""
    starter, queues.callback_starter = queues.callback_starter, None
    try:
        starter()
    except BaseException:  # out of threads; or Ctrl-C
        queues.callback_starter = starter
        raise
    return 0


cdef int observe_alone(Queues queues, kf_batch* batch, int32_t index, int64_t timestamp_ms,
                       object callback) except -1:
    tell(queues, batch, 1)
    return observe(queues, batch, index, timestamp_ms, callback, True)


cdef void watch(Queues queues, kf_batch* batch) noexcept:
    """Have the batch listed when it or a part of it ends, or now if it has."""
    if kf_get(&batch.watched) == 0:
        kf_set(&batch.watched, 1)
        kf_fence()  # against the data plane, which publishes the end before it reads `watched`
    if kf_get(&batch.state) > KF_BATCH_IN_FLIGHT:
        kf_producer_observe(queues.producer, batch)


cdef BatchWaits waits_of(LoopWaits loop, kf_batch* batch):
    """Return what the loop awaits of the batch; the first use has the batch sent."""
    cdef BatchWaits found = loop.find(batch)
    cdef Observations waiting
    cdef list first
    if found is None:
        loop.queues.check_lives()
        found = loop.add(batch)
        first = [found]
        waiting = observations_of(loop.queues, batch)
        if waiting.loops is None:
            waiting.loops = first
        else:
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
    """Count the failed records of an ended batch: those that nobody can observe, and the others.

    Handles count at the batch that the records were appended to, so the children of a split batch
    are skipped. It is not known which records the handles are for. Where only some of the records
    failed, as many of these as possible count as observed by nobody.
    """
    cdef int64_t failed
    cdef int64_t lost
    cdef kf_batch* sample = NULL
    if batch.counted or batch.parent != NULL:
        return 0
    batch.counted = True
    failed = failed_records(queues, batch, &sample)
    if failed == 0:
        return 0
    lost = max(0, min(failed, batch.record_count + batch.doubled - batch.handles - batch.seen
                      - batch.bulk_records))
    if lost > 0:
        add_lost(queues, sample, None, lost)
    batch.unread = max(0, failed - lost - batch.asked)
    if batch.unread > 0:
        queues.unread.add(topic_of(queues, sample), batch.unread, sample, None)
    return 0


cdef bint has_failed_untold(Queues queues, kf_batch* batch) noexcept:  # commits tell of theirs
    if kf_get(&batch.state) != KF_BATCH_FAILED or queues.producer.transactional:
        return False
    return batch.error_code != KF_ERROR_CLOSED or not queues.told


cdef str topic_of(Queues queues, kf_batch* batch):
    topic, _ = <tuple>(<list>queues.places)[batch.queue.id]
    return (<TopicQueues>topic).name


cdef int add_lost(Queues queues, kf_batch* batch, object error, int64_t count) except -1:
    cdef str topic = error.topic if batch == NULL else topic_of(queues, batch)
    queues.lost.add(topic, count, batch, error)
    queues.unlogged.add(topic, count, batch, error)
    return 0


cdef int tell(Queues queues, kf_batch* batch, int32_t count) except -1:
    """Note that somebody learns of the outcome of `count` records of the batch, or will.

    If the batch has been counted, its records have failed.
    """
    if not batch.counted:
        batch.asked += count
        return 0
    count = min(count, batch.unread)
    if count > 0 and not queues.is_settled:
        batch.unread -= count
        queues.unread.remove(topic_of(queues, batch), count)
    return 0


cdef int tell_part(Queues queues, kf_batch* batch) except -1:
    """Let callbacks run whose records have ended, of a batch of which other parts have not."""
    # Made first: an allocation may let another thread run, which may take the rest.
    cdef Observations known = Observations.__new__(Observations)
    cdef Observations waiting = queues.observers.get(<uintptr_t>batch)
    if waiting is None:
        return 0
    waiting.give_known(known, batch)
    if known.count > 0:
        kf_batch_ref(batch)
        known.batch = batch
        queues.ended.append(known)
        queues.observed += 1
    if waiting.loops is not None:
        for waits in waiting.loops:
            (<BatchWaits>waits).owner.hand_over_part(waits)
    return 0


def collect(Queues queues):
    """Hand the batches that have ended since the last call, whole or in part, to their observers.

    Failures that nobody can observe are counted. Callbacks are kept for `notify`.

    Returns:
        Whether there is something to notify.
    """
    cdef kf_batch* batch
    cdef Observations waiting
    if queues.plane.inherited:
        queues.check_owner()
    if queues.taken == NULL:
        queues.taken = kf_producer_take_observed(queues.producer)
    while queues.taken != NULL:
        batch = queues.taken
        queues.taken = batch.next  # first: if memory runs out here, the others come next time
        kf_set(&batch.listed, 0)
        if not kf_batch_is_done(batch):
            tell_part(queues, batch)
            kf_batch_unref(batch)
            continue
        count_lost(queues, batch)
        waiting = queues.observers.pop(<uintptr_t>batch, None)
        if queues.last_observed == batch:
            queues.last_observed = NULL
            queues.last_observations = None
        if waiting is not None and waiting.loops is not None:
            for waits in waiting.loops:
                (<BatchWaits>waits).owner.hand_over(waits)
        if waiting is not None and waiting.holds > 0:
            drop_holds(batch, waiting.holds, waiting.holds)
        if waiting is None or waiting.count == 0:
            kf_batch_unref(batch)
        else:
            waiting.batch = batch  # takes the list's reference over
            queues.ended.append(waiting)
            queues.observed += 1
    return len(queues.ended) > 0


def notify(Queues queues, report):
    """Run the callbacks of the batches that have ended.

    Args:
        report: called with (callback, exception) for one that raises.
    """
    collect(queues)
    cdef list ended = queues.ended
    queues.ended = []
    while ended:
        (<Observations>ended.pop(0)).run(queues, report)
        queues.notified += 1


# ---- who is told of failures that nobody can observe ----
#
# Whoever tells of them takes the counts first, in one step. The error or the log line is made after
# that. If it is interrupted (Ctrl-C, a signal handler that raises), the counts are put back.

cdef object losses_of(Queues queues, LossCounts counts):
    first = counts.error if counts.batch == NULL else failure_of(counts.batch, queues)
    return Losses(counts.records, first)


def raise_lost(Queues queues):
    """Raise the failures that nobody can observe, if there are any; they are not logged then."""
    cdef LossCounts lost = LossCounts.__new__(LossCounts)
    cdef LossCounts unlogged = LossCounts.__new__(LossCounts)
    collect(queues)
    if not queues.lost.records:
        return
    lost, queues.lost = queues.lost, lost
    unlogged, queues.unlogged = queues.unlogged, unlogged
    try:
        error = losses_of(queues, lost).error()
    except BaseException:
        queues.lost.add_all(lost)
        queues.unlogged.add_all(unlogged)
        raise
    raise error


def log_unlogged(Queues queues):
    """Log the failures that nobody can observe. A flush or close may still raise them."""
    cdef LossCounts unlogged = LossCounts.__new__(LossCounts)
    collect(queues)
    unlogged, queues.unlogged = queues.unlogged, unlogged
    try:
        if unlogged.records:
            losses_of(queues, unlogged).log(queues.client_id)
    except BaseException:
        queues.unlogged.add_all(unlogged)
        raise


def log_finally(Queues queues, bint unread):
    """Log the failures that nobody was told of: no flush or close will raise them any more.

    Args:
        unread: log those as well that a handle would tell: the process ends, and none is read.

    Returns:
        Whether there are failures of which nobody but the log was told.
    """
    cdef LossCounts lost = LossCounts.__new__(LossCounts)
    cdef LossCounts unlogged = LossCounts.__new__(LossCounts)
    collect(queues)
    queues.is_reporting = False
    lost, queues.lost = queues.lost, lost
    unlogged, queues.unlogged = queues.unlogged, unlogged
    if unread and not queues.is_settled:
        queues.is_settled = True
        lost.add_all(queues.unread)
        unlogged.add_all(queues.unread)
    try:
        if unlogged.records:
            losses_of(queues, unlogged).log(queues.client_id)
    except BaseException:
        queues.lost.add_all(lost)
        queues.unlogged.add_all(unlogged)
        raise
    return bool(lost.records)


def add_given_up(Queues queues, int64_t count, error not None):
    """Count records of a topic that were given up as failures that nobody can observe."""
    add_lost(queues, NULL, error, count)


cdef int add_late(Queues queues, kf_batch* batch, object error, int64_t count) except -1:
    """Count failures that a finalizer has found: a handle was dropped unread after its batch's end.

    The finalizer tells nobody itself: the thread that it has interrupted may hold any lock, and at
    the end of the interpreter nothing can be imported.
    """
    cdef kf_producer* producer = queues.producer
    cdef bint is_first = not queues.unlogged.records
    if producer.inherited or queues.is_settled:
        return 0
    add_lost(queues, batch, error, count)
    if not queues.plane.dead:
        if is_first:
            producer.env.wake_control(producer.env.context)  # it will log them, if no flush comes
        return 0
    report_late(queues)
    return 0


cdef list unreported = []  # Queues that no thread could be started for; the process's end tells


cdef int report_late(Queues queues) except -1:
    """Have failures logged of a client whose control thread has ended."""
    if queues.is_reporting or queues.reporter is None or queues.is_inherited:
        return 0
    queues.is_reporting = True
    try:
        queues.reporter((queues,))
    except RuntimeError:  # out of threads
        unreported.append(queues)
    return 0


def report_if_dead(Queues queues not None):
    """Have failures of a dropped client logged, which no call can raise now. Does not wait."""
    if queues.unlogged.records and queues.plane.dead and not queues.is_settled:
        report_late(queues)
