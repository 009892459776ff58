"""Bulk sending: `send_many` and `send_table`.

    arguments ─► Rows ─► bulk_job ─► batches        see _rows and _job
                              └───► BatchFuture     which rows lie in which batches

Everything that can be wrong with the arguments is found before the first record is appended. The
GIL is never held across a wait for memory.

Thread: any caller's.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport realloc

from kafka_fast.dataplane.core._loop_share cimport share_end, share_is_over
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._produce_waits cimport room_wait
from kafka_fast.dataplane.produce._queues cimport TopicQueues
from kafka_fast.sending._accumulator cimport Accumulator, name_of_topic
from kafka_fast.sending._fields cimport check_partition, suspect_time
from kafka_fast.sending._partitioner cimport (
    PARTITIONER_BUILT_IN,
    PARTITIONER_CUSTOM,
    PARTITIONER_ROUND_ROBIN,
    choose_partition,
)
from kafka_fast.sending.bulk._batch_future cimport BatchFuture, new_batch_future
from kafka_fast.sending.bulk._column cimport Column, kf_column_get
from kafka_fast.sending.bulk._job cimport (
    JOB_DONE,
    JOB_NO_MEMORY,
    JOB_YIELDS,
    append_objects,
    append_raw,
    bulk_job,
    free_job,
    new_job,
    scatter,
)
from kafka_fast.sending.bulk._rows cimport Numbers, Rows, new_numbers, rows_of
from kafka_fast.sending.bulk._table cimport Table, open_table

from kafka_fast.errors import (
    DeliveryError,
    KafkaTimeoutError,
    Outcome,
    TransactionError,
    UsageError,
)

cdef enum:
    UINT32_ROWS = 0xffffffff  # what rows by position can number


cdef int number_rows(BatchFuture future, int64_t first, int64_t count) except -1:
    """Number rows by position, in their order, before they are sorted."""
    cdef int64_t i
    cdef void* grown
    if future.rows == NULL:  # positions before these were the rows themselves
        count += first
        first = 0
    if first + count > UINT32_ROWS:
        raise UsageError(f"one call takes at most {UINT32_ROWS} rows with keys or partitions")
    grown = realloc(future.rows, max(1, first + count) * sizeof(uint32_t))
    if grown == NULL:
        raise MemoryError
    future.rows = <uint32_t*>grown
    for i in range(first, first + count):
        future.rows[i] = <uint32_t>i
    return 0


cdef bint belongs(list numbers, int64_t row, object number):
    """Return whether a row goes to the topic of this number; without numbers all do."""
    return not numbers or numbers[row] == number


cdef int check_partitions(TopicQueues topic, Rows rows, list numbers, object number) except -1:
    """Raise UsageError if a row of the topic asks for a partition that does not exist."""
    cdef int64_t i
    cdef int64_t partition_count = topic.topic.partition_count
    for i in range(rows.count if rows.partitions.count >= 0 else 1):
        if rows.partition_of(i) >= partition_count and belongs(numbers, i, number):
            where = f"row {rows.first + i}" if rows.partitions.count >= 0 else "every row"
            raise UsageError(f"topic {topic.name!r} has partitions 0 to {partition_count - 1}, "
                             f"not {rows.partition_of(i)} ({where})")
    return 0


cdef dict count_topics(Column names, int64_t first_row, list numbers):
    """Return name -> rows, in order of appearance; `numbers` gets each row's, in that order."""
    cdef dict found = {}  # bytes -> (number, name)
    cdef dict counts = {}
    cdef int64_t row
    for row in range(names.count):
        raw = names.item(row)
        if raw is None:
            raise UsageError(f"the topic of row {first_row + row} is null")
        entry = found.get(raw)
        if entry is None:
            try:
                entry = found[raw] = (len(found), raw.decode())
            except UnicodeDecodeError as error:
                raise UsageError(f"the topic of row {first_row + row} is not UTF-8: "
                                 f"{raw!r}") from error
        numbers.append(entry[0])
        counts[entry[1]] = counts.get(entry[1], 0) + 1
    return counts


cdef int order_rows(BatchFuture future, int64_t first, list numbers, list counts) except -1:
    """Group the rows from position `first` on by topic, keeping the order within each."""
    cdef list at = []
    cdef int64_t row
    cdef int64_t start = first
    for count in counts:
        at.append(start)
        start += count
    for row in range(len(numbers)):
        number = numbers[row]
        future.rows[<int64_t>at[number]] = <uint32_t>(first + row)
        at[number] += 1
    return 0


cdef size_t need_of(const bulk_job* job) noexcept:
    """Return how many bytes of memory the next row needs."""
    cdef const kf_record* record = &job.records[job.next]
    return max(0, record.key_len) + max(0, record.value_len) + record.headers_size + 256


cdef object run(object steps):
    """Run the steps of a call that never yields; return its result."""
    try:
        steps.send(None)
    except StopIteration as end:
        return end.value
    raise SystemError("a bulk call of a producer that may wait has yielded")


cdef class BulkAccumulator(Accumulator):
    """An Accumulator that takes many records at a time."""

    def send_many(self, topic, values, *, keys=None, partitions=None, timestamps_ms=None,
                  headers=None):
        """Send many records and return one handle for all of them.

        Args:
            topic: its name.
            values: a list, tuple or other sequence of bytes-like objects, str (sent as UTF-8) or
                None; a numpy array of `S`, of objects, or of uint8 with a row per record; any Arrow
                array of binary or string; or a pair (data, offsets): a buffer, and n + 1 int32 or
                int64. Serializers see the items of sequences; buffers are sent as they are.
            keys: like `values`, or one str, bytes or bytearray for all records.
            partitions: numbers of partitions: a sequence, an array, or one int for all records;
                None, also for a single record, lets the partitioner choose.
            timestamps_ms: Unix times in ms, given like `partitions`, or datetimes with a time
                zone; None is now.
            headers: one record's headers for all, or a sequence with each record's: (key, value)
                pairs, a mapping, or None. Or an Arrow array of list<struct<key, value>>.

        Returns:
            BatchFuture. Records larger than max.request.size, and those for which no room was found
            in max.block.ms after others had been accepted, are failures of it (`NOT_SENT`).

        Raises:
            KafkaTimeoutError: no metadata, or no room in buffer.memory, within max.block.ms;
                nothing was accepted.
            SerializationError, TypeError: A key, value or header is not what it must be; nothing
                was accepted. The message names its row.
            UsageError: columns differ in length, a partition does not exist, the first record is
                larger than buffer.memory, or the producer is closed; nothing was accepted.
        """
        return run(self._many(topic, values, keys, partitions, timestamps_ms, headers))

    def send_table(self, topic, data, *, value="value", key="key", headers=None, partition=None,
                   timestamp=None):
        """Send the rows of an Arrow table and return one handle for all of them.

        Record batches are read and sent one after the other, without a Python object per row.
        Serializers do not see them.

        Args:
            topic: name of the topic, or None: column "topic" says it for each row.
            data: anything with `__arrow_c_array__` or `__arrow_c_stream__`: a table, a record
                batch, an array of structs, a reader.
            value: name of a column of binary or string.
            key: name of another; without a column "key" there are no keys, and None ignores it.
            headers: name of a column of list<struct<key, value>> or map, or None.
            partition: name of an integer column; null lets the partitioner choose.
            timestamp: name of a column of timestamps, or of Unix times in ms; null is now.

        Returns:
            BatchFuture; rows count from 0 through all record batches. See `send_many`.

        Raises:
            TypeError: a column's type does not fit; nothing was accepted.
            UsageError: a column is missing, or a cell is not what it must be. Record batches
                before its own were accepted, and flush raises what becomes of them.
            KafkaTimeoutError: as for `send_many`.
        """
        return run(self._table(topic, data, value, key, headers, partition, timestamp))

    # ---- the same as steps, which an event loop's driver runs (see `net/waiting/steps`) ----

    def _many(self, topic, values, keys, partitions, timestamps_ms, headers):
        """Take the steps of `send_many`. Those of a producer that may wait never yield."""
        cdef Rows rows
        cdef BatchFuture future
        cdef TopicQueues known
        cdef list pieces
        topic = self.check_topic(topic)
        if self.transforms:
            values, keys = yield from self._serialized(topic, values, keys, headers)
        pieces = rows_of(topic, values, keys, partitions, timestamps_ms, headers)
        if self.never_waits:
            yield from self._topic_steps(topic)
        known = self.topic_of(topic)
        for rows in pieces:
            self.set_partitions(known, rows, [], 0)
        future = self.new_future()
        try:
            for rows in pieces:
                self.keep_timestamps(future, rows)
                if future.rows != NULL or self.is_scattered(rows):
                    number_rows(future, rows.first, rows.count)
                yield from self._rows(known, rows, future, rows.first, rows.count)
        finally:  # rows that were accepted before an interruption have a callback, too
            self.tell_callback(future)
        return future

    def _table(self, topic, data, value, key, headers, partition, timestamp):
        """Take the steps of `send_table`."""
        cdef BatchFuture future
        cdef Table table
        cdef Rows rows
        if topic is not None or self._queues.refuses:
            topic = self.check_topic(topic)
        table = open_table(data, topic, {"value": value, "key": key, "headers": headers,
                                         "partition": partition, "timestamp": timestamp})
        future = self.new_future()
        rows = table.next_rows()
        try:
            while rows is not None:
                self.keep_timestamps(future, rows)
                if self.never_waits:
                    for name in self.names_in(table, rows):
                        yield from self._topic_steps(name)
                for known, first, count in self.group_rows(table, rows, future):
                    yield from self._rows(known, rows, future, first, count)
                rows = table.next_rows()
        finally:
            self.tell_callback(future)
        return future

    cdef object names_in(self, Table table, Rows rows):
        """Return the topics of the rows."""
        return [table.topic] if table.topics is None else count_topics(table.topic_names,
                                                                       rows.first, [])

    cdef list group_rows(self, Table table, Rows rows, BatchFuture future):
        """Order rows by topic; return (TopicQueues, first position, count) of each."""
        cdef list numbers = []
        cdef list groups = []
        cdef dict known
        cdef int64_t at = rows.first
        if table.topics is None:
            names = {table.topic: rows.count}
        else:
            names = count_topics(table.topic_names, rows.first, numbers)
        known = {name: self.topic_of(name) for name in names}
        for number, name in enumerate(names):
            self.set_partitions(known[name], rows, numbers, number)
        if len(names) > 1 or future.rows != NULL or self.is_scattered(rows):
            number_rows(future, rows.first, rows.count)
        if len(names) > 1:
            order_rows(future, rows.first, numbers, list(names.values()))
        for name, count in names.items():
            groups.append((known[name], at, count))
            at += count
        return groups

    cdef str check_topic(self, object topic):
        """Return the topic's name; raise if it is none, or if the producer is closed."""
        if self._queues.refuses:
            self._queues.raise_refusal()
        return name_of_topic(topic)

    def _serialized(self, str topic, values, keys, headers):
        """Return values and keys as the serializers make them, if they are sequences; as steps."""
        cdef kf_producer* producer = self._queues.producer
        cdef list all_values = []
        cdef list all_keys = []
        if not isinstance(values, (list, tuple)):
            return values, keys
        if keys is None or isinstance(keys, (str, bytes, bytearray)):
            keys = [keys] * len(values)
        for key, value in zip(keys, values, strict=True):
            key, value = self._serialize(topic, key, value, headers)
            all_keys.append(key)
            all_values.append(value)
            if self.never_waits and share_is_over(producer.env.now(producer.env.context)):
                yield from self._yield_steps()
        return all_values, all_keys

    cdef int set_partitions(self, TopicQueues topic, Rows rows, list numbers,
                            object number) except -1:
        """Check the partitions that are given; ask a custom partitioner for the others.

        Only rows with this number in `numbers` go to the topic; if that is empty, all do.
        """
        cdef Numbers chosen
        cdef int64_t i
        check_partitions(topic, rows, numbers, number)
        if self.how.kind != PARTITIONER_CUSTOM:
            return 0
        chosen = new_numbers(rows.count)
        for i in range(rows.count):
            chosen.items[i] = rows.partition_of(i)
            if chosen.items[i] < 0 and belongs(numbers, i, number):
                key = None if rows.keys is None else rows.keys.item(i)
                chosen.items[i] = check_partition(topic, self.custom_partitioner(
                    topic.name, key, rows.values.item(i), topic.topic.partition_count))
        rows.partitions = chosen
        rows.partition_start = 0
        return 0

    cdef BatchFuture new_future(self):
        cdef BatchFuture future = new_batch_future(self._queues)
        future.timestamp_ms = self._queues.producer.env.wall_ms(self._queues.producer.env.context)
        return future

    cdef int tell_callback(self, BatchFuture future) except -1:
        """Register the producer's on_delivery for every record that was accepted."""
        if self.on_delivery is not None:
            future.deliver_each(self._bulk_callback())
        return 0

    def _bulk_callback(self):
        """Return what is called for each record of a bulk call."""
        return self.on_delivery

    cdef int keep_timestamps(self, BatchFuture future, Rows rows) except -1:
        """Note the rows' own timestamps, which on_delivery is told; log one of another unit."""
        cdef int64_t i
        cdef int64_t time
        cdef void* grown
        if rows.timestamps.odd:
            suspect_time(self._queues, rows.topic, rows.timestamps.odd)
        if self.on_delivery is None or rows.timestamps.count < 0:
            return 0
        grown = realloc(future.timestamps, max(1, rows.first + rows.count) * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        future.timestamps = <int64_t*>grown
        for i in range(rows.count):
            time = rows.timestamp_of(i)
            future.timestamps[rows.first + i] = time if time >= 0 else future.timestamp_ms
        return 0

    def _rows(self, TopicQueues topic, Rows rows, BatchFuture future, int64_t first,
              int64_t count):
        """Append the rows that stand at positions from `first` on, in steps."""
        cdef bulk_job* job
        cdef kf_topic* shared = topic.topic
        cdef int result
        cdef int64_t blocked_at = -1
        cdef object room = None  # this standstill's RoomWait, in an event loop
        cdef room_wait wait
        future.record_count = first + count
        if future.refusal is not None:  # there was no room for rows before these
            future.refuse(first, count, future.refusal)
            return
        kf_set(&shared.used, 1)
        job = new_job(self._queues, &self.how, topic, rows, future)
        try:
            self.choose_way(job, rows)
            job.rows = future.rows
            job.pos = job.window_end = first
            job.end = first + count
            while True:
                if self.never_waits:
                    job.until = share_end()
                result = self.append(job, rows, future, topic)
                if result == JOB_DONE:
                    return
                if result == JOB_YIELDS:
                    yield from self._yield_steps()
                    continue
                if job.pos != blocked_at:  # max.block.ms counts from each new standstill
                    blocked_at = job.pos
                    wait.began = 0.0
                    room = None
                try:
                    if self._queues.refuses and kf_get(&self._queues.producer.held):
                        self._queues.raise_refusal()
                    if self.never_waits:
                        self.refuse_too_large(topic, need_of(job))
                        room = self._begin_room(topic.name) if room is None else room
                        yield from self._room_steps(room, need_of(job))
                    else:
                        self.wait_for_memory(topic, need_of(job), &wait)
                except (KafkaTimeoutError, TransactionError, UsageError) as error:
                    self.give_up(topic, job, future, error)
                    return
        finally:
            # The topic may have lost partitions meanwhile: then another one is drawn.
            shared.sticky = job.cursor.sticky if job.cursor.sticky < shared.partition_count else -1
            shared.sticky_left = job.cursor.sticky_left
            shared.random = job.cursor.random
            free_job(job)
        return 0

    cdef bint goes_by_key(self, Rows rows) noexcept:
        return (rows.keys is not None and self.how.kind == PARTITIONER_BUILT_IN
                and not self.how.ignore_keys)

    cdef bint is_scattered(self, Rows rows) noexcept:
        """Return whether each row may have a partition of its own."""
        if rows.partitions.count < 0 and rows.partitions.scalar >= 0:
            return False
        return (rows.partitions.count >= 0 or self.how.kind == PARTITIONER_ROUND_ROBIN
                or (self.goes_by_key(rows) and rows.keys.count >= 0))

    cdef int choose_way(self, bulk_job* job, Rows rows) except -1:
        """Decide how the partitions are chosen: one for all, one for a while, or row by row."""
        cdef kf_record record
        cdef bint by_key = self.goes_by_key(rows)
        job.partition = -1
        if rows.partitions.count < 0 and rows.partitions.scalar >= 0:
            job.partition = <int32_t>rows.partitions.scalar
        elif self.is_scattered(rows):
            scatter(job)
        elif by_key:  # one key for all rows
            record.key = kf_column_get(&job.key, 0, &record.key_len)
            record.value_len = 0
            job.partition = choose_partition(&self.how, job.producer, &job.cursor, &record)
        return 0

    cdef int append(self, bulk_job* job, Rows rows, BatchFuture future,
                    TopicQueues topic) except -1:
        """Append rows until all are done (JOB_DONE), or one has to wait."""
        cdef int result
        while True:
            if job.raw:
                with nogil:
                    result = append_raw(job)
            else:
                result = append_objects(job, rows)
            if result == JOB_NO_MEMORY:
                raise MemoryError
            if result != KF_APPEND_TOO_LARGE:
                return result
            future.refuse(job.pos, 1, self.size_error(topic, &job.records[job.next]))
            job.pos += 1
            job.next += 1

    cdef object size_error(self, TopicQueues topic, const kf_record* record):
        """Return the DeliveryError of a record that is too large for any batch."""
        try:
            self.refuse_size(topic, record)
        except DeliveryError as error:
            return error.with_traceback(None)

    cdef int give_up(self, TopicQueues topic, bulk_job* job, BatchFuture future,
                     object error) except -1:
        """Refuse the rows left, or raise if none was accepted before.

        Errors that a future keeps have no traceback. Before Python 3.11 the frames of a traceback
        hold the caller's frames, and so the future itself, even after the caller has dropped it.
        """
        if future.slices.count == 0:
            raise error
        refusal = DeliveryError(f"not delivered ({Outcome.NOT_SENT.value}): {error}",
                                outcome=Outcome.NOT_SENT, first=error, topic=topic.name)
        refusal.__cause__ = error.with_traceback(None)
        future.refusal = refusal
        future.refuse(job.pos, job.end - job.pos, refusal)
        return 0
