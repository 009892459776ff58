"""BatchFuture: what becomes of the records of a bulk call.

A call's records lie in slices of batches, and what became of a batch is written once. So a future
for a million records is a few hundred slices. Rows are the caller's numbering. Positions are the
order of appending, which differs where records were sorted by partition first.

    rows      0 1 2 3 4 5 6 7          the caller's list or table
    rows[]    0 2 5 │ 1 3 4 6 7        by position: sorted by partition
    slices    ├────┤ ├───────┤         (batch, index within it, first position, count)

Thread: any, with the GIL. Only `slices` grows without it, while the call is under way.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.sending._awaiting cimport running_loop
from kafka_fast.sending._causes cimport timeout_error, wrong_records
from kafka_fast.sending._delivery cimport wait_for
from kafka_fast.sending._fields cimport check_callback
from kafka_fast.sending._observers cimport (
    PartObserver,
    add_late,
    failure_of,
    has_failed_untold,
    observe_records,
    tell,
    waiter_for,
)

from kafka_fast._hints import hint_at_names, name_type, refuse_new
from kafka_fast.errors import DeliveryError, Outcome
from kafka_fast.peer_names import BATCH_FUTURE
from kafka_fast.times import seconds
from kafka_fast.types import BatchResult, PartitionResult, RecordMetadata, TopicPartition

cdef extern from "Python.h":
    object PyContext_CopyCurrent()

cdef tuple LEAST_CERTAIN_FIRST = (Outcome.MAYBE_WRITTEN, Outcome.REJECTED, Outcome.NOT_SENT)
cdef str NOT_MADE = "BatchFuture is made by Producer.send_many and Producer.send_table"
cdef int SAMPLES = 5  # errors that a summary names


# Records of a slice that stand in one batch once splits are resolved.
cdef struct part:
    kf_batch* batch
    int32_t index    # of the first of them within `batch`
    int32_t count
    int64_t first    # its position
    int32_t done     # records of the slice up to the end of this part


cdef bint next_part(const batch_slice* whole, part* piece) noexcept:
    """Advance `piece`, which starts zeroed, to the slice's next part; False after the last."""
    if piece.done >= whole.count:
        return False
    piece.first = whole.first + piece.done
    piece.index = whole.index + piece.done
    piece.batch = kf_batch_resolve(whole.batch, &piece.index)
    piece.count = min(whole.count - piece.done,
                      kf_get(&piece.batch.record_count) - piece.index)
    piece.done += piece.count
    return True


cdef bint has_failed(const part* piece) noexcept:
    return kf_get(&piece.batch.state) == KF_BATCH_FAILED


cdef int64_t offset_of(const part* piece) noexcept:
    """Return the log offset of the part's first record; -1 if the broker did not say."""
    return piece.batch.base_offset + piece.index if piece.batch.base_offset >= 0 else -1


cdef int forget_refused(Queues queues, list refused) except -1:
    """Count these no longer among the failures that nobody has read."""
    if not queues.is_settled:
        for _, count, error in refused:
            queues.unread.remove(error.topic, count)
    return 0


cdef list failures_of(const part* piece, Queues queues):
    """Return (records before it, count, DeliveryError) of each run of records in a failed part.

    A broker that refuses a batch for single records names these, and their errors differ.
    """
    cdef int32_t at = piece.index
    cdef int32_t end = piece.index + piece.count
    cdef int32_t index
    cdef list found = []
    wrong = [it for it in wrong_records(piece.batch, queues) if at <= it < end]
    for index in [*wrong, end]:
        if index > at:
            error = failure_of(piece.batch, queues, at)
            found.append((at - piece.index, index - at, error))
        if index < end:
            error = failure_of(piece.batch, queues, index)
            found.append((index - piece.index, 1, error))
        at = index + 1
    return found


cdef object summary_of(list failures, int64_t record_count):
    """Return one DeliveryError for failures, (row, count, DeliveryError) each.

    It names a record that was refused itself, if there is one.
    """
    count = sum([many for _, many, _ in failures])
    collateral = sum([many for _, many, error in failures if error.is_collateral])
    outcomes = {error.outcome for _, _, error in failures}
    outcome = next(each for each in LEAST_CERTAIN_FIRST if each in outcomes)
    failures.sort(key=lambda failure: (failure[2].is_collateral, failure[0]))
    row, _, error = failures[0]
    others = f", {collateral} of them because of others in their batches" if collateral else ""
    summary = DeliveryError(
        f"{count} of {record_count} records not delivered ({outcome.value}){others}; the first is "
        f"row {row}: {error.first}", outcome=outcome, count=count, first=error.first,
        samples=[sample for _, _, sample in failures[:SAMPLES]])
    summary.__cause__ = error.first
    return summary


@cython.final
@cython.no_gc_clear  # __dealloc__ needs the queues
cdef class BatchFuture:
    """What becomes of the records of one bulk call. Any thread may wait for it, or await it.

    Failures that nobody has asked for when the future is dropped are raised by the producer's next
    `flush` or `close`.
    """

    def __init__(self, *arguments, **named):
        raise TypeError(NOT_MADE)

    def __reduce__(self):
        raise TypeError(
            "a BatchFuture cannot be pickled or copied, as its records are sent by this process: "
            "use its result(), a BatchResult"
        )

    def __dealloc__(self):
        cdef Py_ssize_t i
        cdef batch_slice* item
        cdef part piece
        for i in range(self.slices.count):
            item = &self.slices.items[i]
            if self.queues.producer.inherited:
                break  # a forked child must not lock, and has nobody to tell
            if not self.seen and not item.batch.counted:
                kf_queue_forget_bulk(item.batch.queue, item.batch, item.count)
            elif not self.seen:
                piece.done = 0
                while next_part(item, &piece):
                    if has_failed_untold(self.queues, piece.batch):
                        tell(self.queues, item.batch, piece.count)
                        add_late(self.queues, piece.batch, None, piece.count)
            kf_batch_unref(item.batch)
        if not self.seen and self.refused:  # None if __init__ raised
            forget_refused(self.queues, self.refused)
            for _, count, error in self.refused:
                add_late(self.queues, NULL, error, count)
        free(self.slices.items)
        free(self.rows)
        free(self.timestamps)

    def __len__(self):
        """Return the number of records of the call."""
        return self.record_count

    def done(self):
        """Return whether the fate of all records is known."""
        cdef const batch_slice* item
        while self.ended < self.slices.count:
            item = &self.slices.items[self.ended]
            if not kf_records_are_done(item.batch, item.index, item.count):
                return False
            self.ended += 1
        return True

    def cancelled(self):
        """Return False: what was sent cannot be called back."""
        return False

    def result(self, timeout=None):
        """Wait until the fate of all records is known; open batches leave at once.

        Failed records do not raise here: `failed` in the result counts them, `failed()` lists
        them, and `exception()` makes one error of them.

        Args:
            timeout: seconds to wait; None waits as long as delivery.timeout.ms allows.

        Returns:
            BatchResult: counts, and the range of offsets per partition.

        Raises:
            KafkaTimeoutError: not all known yet after `timeout`. The records are still on their
                way.
            UsageError: called from a delivery callback, or the producer does not run any more.
        """
        cdef Py_ssize_t i
        cdef part piece
        cdef int64_t failed = 0
        self.wait_all(timeout)
        ranges = {}
        for i in range(self.slices.count):
            piece.done = 0
            while next_part(&self.slices.items[i], &piece):
                if has_failed(&piece):
                    failed += piece.count
                else:
                    widen(ranges, &piece)
        for _, count, _ in self.refused:
            failed += count
        partitions = {TopicPartition(*self.queues.queue_of(queue_id)): PartitionResult(*found)
                      for queue_id, found in ranges.items()}
        return BatchResult(self.record_count, failed, dict(sorted(partitions.items())))

    def failed(self, timeout=None):
        """Wait like `result`, and return (row, DeliveryError) of the records that failed, by row.

        Rows count from 0 in the list, array or table of the call.
        """
        cdef int64_t position
        found = []
        for first, count, error in self.failures(timeout):
            for position in range(first, first + count):
                found.append((self.row_of(position), error))
        found.sort(key=lambda failure: failure[0])
        return found

    def exception(self, timeout=None):
        """Wait like `result`, and return one DeliveryError for all failed records, or None."""
        cdef int64_t position
        failures = []
        for first, count, error in self.failures(timeout):
            row = min([self.row_of(position) for position in range(first, first + count)])
            failures.append((row, count, error))
        return summary_of(failures, self.record_count) if failures else None

    def failures(self, timeout):
        """Wait, and return (position, count, DeliveryError) of each run that failed."""
        cdef Py_ssize_t i
        cdef part piece
        self.wait_all(timeout)
        found = list(self.refused)
        for i in range(self.slices.count):
            piece.done = 0
            while next_part(&self.slices.items[i], &piece):
                if has_failed(&piece):
                    for before, count, error in failures_of(&piece, self.queues):
                        found.append((piece.first + before, count, error))
        return found

    def add_done_callback(self, callback, *, context=None):
        """Have `callback(future)` called once the fate of all records is known.

        In an event loop it is called there, in `context` (contextvars). Elsewhere it is called on
        the callback thread; or at once, in this thread, if the producer is closed or no record was
        accepted.
        """
        check_callback(callback, "a callback of add_done_callback", "the future")
        self.mark_seen()
        loop = running_loop()
        if loop is None:
            self.when_done(lambda: callback(self))
            return
        if not self.done():
            self.urge()
        entry = callback, PyContext_CopyCurrent() if context is None else context
        if self.in_loops is None:
            self.in_loops = []
        self.in_loops.append(entry)
        self.when_done(lambda: self._call_in_loop(loop, entry))

    def _call_in_loop(self, loop, tuple entry):
        """Have a loop call what was added there, if it was not taken back. Any thread."""
        try:
            self.in_loops.remove(entry)
        except ValueError:
            return
        callback, context = entry
        loop.call_soon_threadsafe(callback, self, context=context)

    def remove_done_callback(self, callback):
        """Forget a callback that is to run in an event loop; return how often it was there."""
        found = [entry for entry in self.in_loops or () if entry[0] == callback]
        for entry in found:
            self.in_loops.remove(entry)
        return len(found)

    def __await__(self):
        """Wait in an event loop; gives what `result` returns."""
        if not self.done():
            self.urge()
        return AwaitAll(self)

    def __repr__(self):
        state = "done" if self.done() else "pending"
        return f"<BatchFuture of {self.record_count} records, {state}>"

    # ---- for the bulk call itself ----

    cdef int64_t row_of(self, int64_t position) noexcept:
        return position if self.rows == NULL else self.rows[position]

    cdef int refuse(self, int64_t position, int64_t count, object error) except -1:
        self.refused.append((position, count, error))
        self.queues.refused_rows += count
        self.queues.unread.add(error.topic, count, NULL, error)
        return 0

    cdef int mark_seen(self) except -1:
        """Note that the call's owner is told of all outcomes, or callbacks will be."""
        cdef Py_ssize_t i
        cdef batch_slice* item
        cdef part piece
        if self.seen:
            return 0
        self.seen = True
        for i in range(self.slices.count):
            item = &self.slices.items[i]
            if not item.batch.counted:
                tell(self.queues, item.batch, item.count)
                continue
            piece.done = 0
            while next_part(item, &piece):
                if has_failed(&piece):
                    tell(self.queues, item.batch, piece.count)
        forget_refused(self.queues, self.refused)
        return 0

    cdef int urge(self) except -1:
        """Let all open batches leave now."""
        self.queues.check_lives()
        cdef Py_ssize_t i
        cdef kf_batch* batch
        for i in range(self.ended, self.slices.count):
            batch = self.slices.items[i].batch
            if not kf_batch_is_done(batch):
                kf_queue_urge(batch.queue, batch)
        return 0

    cdef bint wait_all(self, timeout) except -1:
        cdef double deadline = 0.0
        cdef kf_producer* shared = self.queues.producer
        cdef const batch_slice* item
        if not self.done():
            self.queues.check_may_wait()
            if timeout is not None:
                deadline = shared.env.now(shared.env.context) + max(<double>seconds(timeout), 1e-9)
            self.urge()
            while not self.done():
                item = &self.slices.items[self.ended]
                if not wait_for(self.queues, item.batch, item.index, item.count, deadline):
                    raise timeout_error(self.queues,
                                        f"the delivery of {self.record_count} records is not "
                                        f"known in full after {timeout} s",
                                        item.batch, deadline - timeout)
        self.mark_seen()
        return True

    cdef int when_done(self, object callback) except -1:
        """Have `callback()` called on the callback thread once the fate of all records is known."""
        cdef Py_ssize_t i
        cdef const batch_slice* item
        cdef Countdown countdown = Countdown(callback)
        if self.done() and (self.queues.plane.dead or self.slices.count == 0):
            callback()  # the callback thread has ended, or there is no batch to be observed
            return 0
        # If all have ended, observe the last batch: it is listed at once.
        self.ended = min(self.ended, self.slices.count - 1)
        countdown.left = self.slices.count - self.ended
        for i in range(self.ended, self.slices.count):
            item = &self.slices.items[i]
            observe_records(self.queues, item.batch, item.index, item.count, countdown)
        return 0

    cdef int deliver_each(self, object on_delivery) except -1:
        """Have `on_delivery(error, metadata)` called for each record, batch by batch."""
        cdef Py_ssize_t i
        cdef const batch_slice* item
        self.mark_seen()
        for i in range(self.slices.count):
            item = &self.slices.items[i]
            observe_records(self.queues, item.batch, item.index, item.count,
                            SliceObserver(self, i, on_delivery))
        return 0


cdef int widen(dict ranges, const part* piece) except -1:
    """Enter delivered records: queue id -> [count, first offset, last offset, bytes]."""
    cdef int64_t offset = offset_of(piece)
    cdef int32_t all_records = kf_get(&piece.batch.record_count)
    cdef list found = ranges.get(piece.batch.queue.id)
    if found is None:
        found = ranges[piece.batch.queue.id] = [0, -1, -1, 0]
    found[0] += piece.count
    found[3] += <int64_t>piece.batch.size * piece.count // all_records
    if offset >= 0:
        found[1] = offset if found[1] < 0 else min(found[1], offset)
        found[2] = max(found[2], offset + piece.count - 1)
    return 0


@cython.final
cdef class Countdown:
    """Calls once it has been called as often as there are slices to wait for."""

    cdef object callback
    cdef Py_ssize_t left

    def __init__(self, callback):
        self.callback = callback

    def __call__(self, error, metadata):
        self.left -= 1
        if self.left == 0:
            self.callback()


@cython.final
cdef class SliceObserver(PartObserver):
    """Tells a callback of each record of a slice; it keeps the future, and so the batch."""

    cdef BatchFuture future
    cdef Py_ssize_t slice_index
    cdef object on_delivery
    cdef set told  # positions at which parts begin that were told, if the batch was split

    def __init__(self, BatchFuture future, Py_ssize_t slice_index, on_delivery):
        self.future = future
        self.slice_index = slice_index
        self.on_delivery = on_delivery

    def __call__(self, error, metadata):
        cdef part piece
        cdef int32_t i
        cdef BatchFuture future = self.future
        cdef object raised = None
        piece.done = 0
        while next_part(&future.slices.items[self.slice_index], &piece):
            if not self.is_due(&piece):
                continue
            runs = [(0, piece.count, None)]
            if has_failed(&piece):
                runs = failures_of(&piece, future.queues)
            for first, count, failure in runs:
                for i in range(<int32_t>first, <int32_t>(first + count)):
                    try:
                        self.on_delivery(failure, metadata_of(future, &piece, i))
                    except BaseException as exception:
                        raised = exception  # the other records' callbacks are due all the same
        if raised is not None:
            raise raised

    cdef bint is_due(self, const part* piece) except -1:
        """Return whether the fate of a part is known, and was not told yet."""
        if not kf_records_are_done(piece.batch, piece.index, 1):
            return False
        if piece.batch.parent == NULL:
            return True
        if self.told is None:
            self.told = set()
        if piece.first in self.told:
            return False
        self.told.add(piece.first)
        return True


cdef object metadata_of(BatchFuture future, const part* piece, int32_t i):
    cdef int64_t offset = offset_of(piece)
    cdef int64_t timestamp_ms = future.timestamp_ms
    if piece.batch.append_time_ms >= 0:
        timestamp_ms = piece.batch.append_time_ms
    elif future.timestamps != NULL:
        timestamp_ms = future.timestamps[future.row_of(piece.first + i)]
    name, partition = future.queues.queue_of(piece.batch.queue.id)
    return RecordMetadata(name, partition, offset + i if offset >= 0 else -1, timestamp_ms)


@cython.final
cdef class AwaitAll:
    """What `await` iterates over: waits for one slice after the other."""

    cdef BatchFuture future

    def __init__(self, BatchFuture future not None):
        self.future = future

    def __reduce__(self):
        raise TypeError("an await cannot be pickled or copied: await the BatchFuture again")

    def __iter__(self):
        return self

    def __next__(self):
        cdef BatchFuture future = self.future
        if not future.done():
            return waiter_for(future.queues, future.slices.items[future.ended].batch, future)
        raise StopIteration(future.result())


cdef BatchFuture new_batch_future(Queues queues):
    cdef BatchFuture future = BatchFuture.__new__(BatchFuture)
    future.queues = queues
    future.refused = []
    return future


name_type(BatchFuture, "kafka_fast")
refuse_new(BatchFuture, NOT_MADE)
hint_at_names(BatchFuture, BATCH_FUTURE)
