"""Read one partition: chunks of Fetch answers in, slices of checked records out.

    feed(chunk) ─► waiting ─► batch by batch ─► take(n) ─► slices, and the position behind them
                              length, CRC, order, transaction, decompress, scan

A batch is opened when its records are asked for. So it is still in the processor's caches when they
are handed out, and waiting chunks are only bytes. A bad batch stops its own partition only: the
records before it are handed out, then every `take` raises the same error until `seek`. Until then
the partition is not fetched, because the chunks would be thrown away. A broker answers with whole
batches, so records below the position are passed over. No record is handed out twice, whatever the
broker sends: the position only rises.

Thread: the consumer's user's, with the GIL; large batches are read without it.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t

from kafka_fast.dataplane.fetch._chunk cimport Chunk
from kafka_fast.dataplane.fetch.fetch cimport kf_chunk, kf_chunk_done
from kafka_fast.record._layout cimport (
    KF_ATTRIBUTE_CONTROL, KF_ATTRIBUTE_LOG_APPEND_TIME, KF_ATTRIBUTE_TRANSACTIONAL, KF_BATCH_MAGIC,
    kf_read_i64, kf_reader, kf_reader_of,
)
from kafka_fast.record._reader cimport RecordBatch, batch_at, source_of
from kafka_fast.record._records cimport Records
from kafka_fast.record._slices cimport Origin, RecordSlice, new_origin, new_slice
from kafka_fast.records._aborted cimport aborted_in
from kafka_fast.records._consumer_record cimport new_record
from kafka_fast.records._consumer_records cimport ConsumerRecords, new_consumer_records

from collections import deque

from kafka_fast.errors import CorruptBatchError, RecordDeserializationError, UnreadableBatchError
from kafka_fast.record.compression import MAX_SIZE
from kafka_fast.record.types import ControlType
from kafka_fast.serialization import BytesDeserializer, as_deserializer


@cython.final
cdef class PartitionReader:
    """The records of one partition, from a position on.

    Attributes:
        topic, partition: what is read.
        position: offset of the next record to hand out. It passes over gaps, control batches and
            aborted records as soon as they are seen.
        high_watermark: offset behind the last record that all in-sync replicas have; -1: not told.
        last_stable_offset: offset behind the last record whose transaction has ended; -1: not told.
        log_start_offset: offset of the first record that is still there; -1: not told.
        leader_epoch: of the last batch that was handed out or passed over; before the first batch,
            as seek() was told; -1: unknown.
        failure: the error that keeps the partition where it is, or None.
        end: offset behind the last record that is wanted. Once the position is there, or beyond
            it behind a gap, nothing more is handed out.
    """

    def __init__(
        self,
        str topic not None,
        int32_t partition,
        int64_t position,
        *,
        int64_t end=INT64_MAX,
        bint read_committed=False,
        bint check_crcs=True,
        Py_ssize_t max_decompressed=MAX_SIZE,
        key_deserializer=None,
        value_deserializer=None,
    ) -> None:
        """Read a partition.

        Args:
            topic: its topic.
            partition: its number.
            position: offset of the first record that is wanted.
            end: offset of the first record behind it that is not wanted.
            read_committed: drop the records of aborted transactions.
            check_crcs: False trusts the bytes to be what the broker wrote.
            max_decompressed: most bytes that a batch may decompress to.
            key_deserializer: what `serialization.as_deserializer` takes; None hands bytes out.
            value_deserializer: the same for values.
        """
        self.topic = topic
        self.partition = partition
        self.end = end
        self.read_committed = read_committed
        self.check_crcs = check_crcs
        self.max_size = max_decompressed
        self.key_deserializer = needed(key_deserializer)
        self.value_deserializer = needed(value_deserializer)
        self.waiting = deque()
        self.forget_watermarks()
        self.seek(position)

    def __bool__(self) -> bool:
        """Whether take() has something to do: bytes to read, or an error to raise."""
        return (self.chunk is not None or self.failure is not None or bool(self.waiting)
                or bool(self.returned))

    def seek(self, int64_t position, int32_t leader_epoch=-1) -> None:
        """Go on at `position`: what was fetched is dropped, and a failure forgotten.

        Args:
            position: offset of the next record to hand out.
            leader_epoch: of the record before it; -1: unknown.
        """
        self.clear()
        self.position = position
        self.leader_epoch = leader_epoch
        self.failure = None

    def forget_watermarks(self) -> None:
        """Forget the watermarks and the log start offset; -1 means not known."""
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1

    def know_epoch(self, int64_t position, int32_t leader_epoch) -> None:
        """Take the epoch of the record before `position`, if nothing was read from there yet."""
        if self.position == position and self.leader_epoch < 0:
            self.leader_epoch = leader_epoch

    def clear(self) -> None:
        """Drop what was fetched; position and failure stay."""
        self.returned = None
        self.records = None
        if self.chunk is not None:
            self.end_chunk()
        while self.waiting:
            kf_chunk_done((<Chunk>self.waiting.popleft()).chunk)

    def feed(self, Chunk chunk not None) -> None:
        """Add the chunk that follows those that were fed.

        It is dropped if the partition has failed, or is at its end. To feed a chunk twice does
        nothing.
        """
        cdef kf_chunk* fed = chunk.chunk
        if chunk.is_fed:
            return
        chunk.is_fed = True
        if fed.high_watermark >= 0:
            self.high_watermark = fed.high_watermark
        if fed.last_stable_offset >= 0:
            self.last_stable_offset = fed.last_stable_offset
        if fed.log_start_offset >= 0:
            self.log_start_offset = fed.log_start_offset
        if self.failure is None and self.position < self.end:
            self.waiting.append(chunk)
        else:
            kf_chunk_done(fed)

    def take(self, Py_ssize_t max_records) -> list:
        """Hand out the next records and move the position behind them.

        Returns:
            Slices of at most `max_records` records together; none if nothing more was fed. The
            position may have moved even then.

        Raises:
            UnreadableBatchError: the next batch is corrupt. Every call raises it until seek().
            RecordDeserializationError: a deserializer refused the next record. Every call raises it
                until seek().
            UsageError: the codec's library is not there.
        """
        return self.take_slices(max_records)

    def take_into(self, list found not None, Py_ssize_t max_records) -> int:
        """Append what take() returns to `found`; return how many records that are.

        A signal that came meanwhile raises at the end of this call. A list that take() returned
        would then be lost; the slices in `found` can be given back.
        """
        cdef list slices = self.take_slices(max_records)
        cdef RecordSlice part
        cdef Py_ssize_t count = 0
        for part in slices:
            count += part.count
        found += slices
        return count

    cdef list take_slices(self, Py_ssize_t max_records):
        cdef list slices = []
        cdef RecordSlice part
        cdef Py_ssize_t left = max_records
        cdef int64_t start = self.position
        if self.returned:
            return self.take_returned(max_records)
        try:
            while left > 0 and self.failure is None and (self.records is not None
                                                         or self.open_next()):
                part = self.next_slice(left)
                if part.count != 0:
                    slices.append(part)
                    left -= part.count
        except Exception:  # nothing is lost: the next call raises it again
            if not slices:
                raise
        except BaseException:  # Ctrl-C in a deserializer
            self.give_back(slices, start)
            raise
        if self.failure is not None:
            self.clear()
            if not slices:
                raise self.failure.with_traceback(None)
        if slices:
            (<RecordSlice>slices[len(slices) - 1]).next_offset = self.position
        return slices

    def give_back(self, list slices not None, int64_t position) -> None:
        """Take back what take() has handed out from `position` on, because nobody got it.

        The next take() begins with these slices.
        """
        if slices:
            self.returned = slices + (self.returned or [])
            self.position = position

    cdef list take_returned(self, Py_ssize_t max_records):
        """Hand out again what was given back."""
        cdef list slices = []
        cdef RecordSlice part
        cdef Py_ssize_t count
        while self.returned and max_records > 0:
            part = <RecordSlice>self.returned.pop(0)
            count = min(part.count, max_records)
            if count < part.count:
                self.returned.insert(0, part.part(count, part.count - count))
                part = part.part(0, count)
            slices.append(part)
            max_records -= count
            self.position = part.next_offset
        return slices

    # ---- chunks ----

    cdef bint open_next(self) except -1:
        """Open the next batch that has records to hand out; False if none was fed."""
        cdef RecordBatch batch
        while True:
            if self.chunk is None:
                if not self.waiting:
                    return False
                self.begin_chunk(<Chunk>self.waiting.popleft())
            batch = None
            try:
                batch = batch_at(self.source, self.at, self.left)
                if batch is not None and self.open_batch(batch):
                    return True
            except CorruptBatchError as error:
                self.failure = unreadable(self, batch, error)
                return False
            if self.chunk is None:  # the end was reached
                return False
            if batch is None or self.left == 0:  # nothing, or the piece of a batch
                self.leave_chunk()
                if self.failure is not None:
                    return False

    cdef int begin_chunk(self, Chunk chunk) except -1:
        self.chunk = chunk
        if chunk.chunk.generation != self.generation:
            # The stream was started again, perhaps at another offset: go on from there.
            self.generation = chunk.chunk.generation
            self.position = chunk.chunk.asked_offset
        self.source = source_of(chunk, chunk.chunk.data, chunk.chunk.size)
        self.at = chunk.chunk.data
        self.left = chunk.chunk.size
        self.floor = -1
        self.aborted = aborted_in(chunk) if self.read_committed else None
        return 0

    cdef int leave_chunk(self) except -1:
        """End a chunk that was read.

        Behind a broken chunk nothing is fetched any more. So the partition fails here, even if no
        batch of the chunk was refused.
        """
        cdef bint broken = self.chunk.chunk.broken
        self.end_chunk()
        if broken:
            self.failure = unreadable(self, None, CorruptBatchError(
                "the batches that the broker sends do not lead forwards"
            ))
        return 0

    cdef int end_chunk(self) except -1:
        """Leave the chunk: its bytes are out of the budget, though records may still pin them."""
        kf_chunk_done(self.chunk.chunk)
        self.chunk = None
        self.source = None
        self.aborted = None
        self.at = NULL
        self.left = 0
        return 0

    # ---- batches ----

    cdef bint open_batch(self, RecordBatch batch) except -1:
        """Open the batch at `self.at` and move behind it; False if it has nothing to hand out."""
        cdef bint is_legacy = batch.header.magic < KF_BATCH_MAGIC
        cdef int64_t base = batch.header.base_offset
        cdef int32_t delta = batch.header.last_offset_delta
        cdef int64_t next_offset
        cdef Records records
        # The CRC comes first: it covers the fields that decide whether the batch is passed over.
        if self.check_crcs:
            batch.check_crc()
        batch.crc_good = True
        if base < 0 or delta < 0 or base >= INT64_MAX - delta:
            raise batch.corrupt("has offsets that no log can have")
        next_offset = base + delta + 1
        if not is_legacy:
            self.check_order(batch, base)
            if base >= self.end:
                self.stop()
                return False
            if self.is_dropped(batch) or next_offset <= self.position:
                self.pass_over(batch, next_offset)
                return False
        records = batch.opened(self.check_crcs, self.max_size)
        if is_legacy and records.count != 0:  # the outer message may have the offset 0
            self.check_order(batch, records.spans[0].offset)
            next_offset = max(next_offset, records.spans[records.count - 1].offset + 1)
        if records.count == 0 or records.spans[records.count - 1].offset < self.position:
            self.pass_over(batch, next_offset)
            return False
        self.index = first_at(records, self.position)
        if records.spans[self.index].offset >= self.end:
            self.stop()
            return False
        self.move_behind(batch, next_offset)
        self.records = records
        self.next_offset = next_offset
        self.stop_index = first_at(records, self.end)
        set_origin(self, batch)
        return True

    cdef int check_order(self, RecordBatch batch, int64_t first_offset) except -1:
        """Raise if a batch begins before the one in front of it has ended."""
        if first_offset < self.floor:
            raise batch.corrupt(
                f"follows one that ends at offset {self.floor - 1}: offsets go backwards"
            )
        return 0

    cdef bint is_dropped(self, RecordBatch batch) except -1:
        """Whether no record of the batch is for the user: it is a control batch, or aborted."""
        cdef int64_t last_offset = batch.header.base_offset + batch.header.last_offset_delta
        if batch.header.attributes & KF_ATTRIBUTE_CONTROL != 0:
            if self.read_committed:
                kind = batch.control_record().type
                if self.aborted is not None and (kind == ControlType.ABORT
                                                 or kind == ControlType.COMMIT):
                    self.aborted.end(batch.header.producer_id, last_offset)
            return True
        return (
            self.aborted is not None
            and batch.header.attributes & KF_ATTRIBUTE_TRANSACTIONAL != 0
            and self.aborted.cover(batch.header.producer_id, last_offset)
        )

    cdef int pass_over(self, RecordBatch batch, int64_t next_offset) except -1:
        """Go on behind a batch that has nothing for the user."""
        self.move_behind(batch, next_offset)
        if next_offset > self.position:
            self.position = next_offset
            self.leader_epoch = batch.header.leader_epoch
        return 0

    cdef int move_behind(self, RecordBatch batch, int64_t next_offset) except -1:
        self.at += batch.size_
        self.left -= batch.size_
        self.floor = next_offset
        return 0

    cdef int stop(self) except -1:
        """Stop at the end: the records behind it are not wanted."""
        self.position = max(self.position, self.end)
        self.clear()
        return 0

    # ---- records ----

    cdef RecordSlice next_slice(self, Py_ssize_t most):
        """Hand out records of the open batch; none if the next one is refused."""
        cdef Records records = self.records
        cdef Py_ssize_t count = min(most, self.stop_index - self.index)
        cdef RecordSlice part = new_slice(self.origin, records, self.index, count, 0)
        if self.key_deserializer is not None or self.value_deserializer is not None:
            self.deserialize(part)
        if part.count == 0:
            return part
        self.index += part.count
        if self.index < records.count and self.index == self.stop_index:
            self.stop()
        elif self.index == records.count:
            self.position = self.next_offset
            self.records = None
            if self.left == 0:
                self.leave_chunk()
            elif self.position >= self.end:
                self.stop()
        else:
            self.position = records.spans[self.index - 1].offset + 1
        self.leader_epoch = self.origin.leader_epoch
        part.next_offset = self.position
        return part

    cdef int deserialize(self, RecordSlice part) except -1:
        """Give a slice its objects; it ends before the first record that is refused."""
        cdef Py_ssize_t i
        if self.key_deserializer is not None:
            part.key_objects = []
        if self.value_deserializer is not None:
            part.value_objects = []
        for i in range(part.start, part.start + part.count):
            try:
                if self.key_deserializer is not None:
                    part.key_objects.append(self.object_of(
                        self.key_deserializer, "key", i, part.records.key_at(i)
                    ))
                if self.value_deserializer is not None:
                    part.value_objects.append(self.object_of(
                        self.value_deserializer, "value", i, part.records.value_at(i)
                    ))
            except RecordDeserializationError as error:
                self.failure = error.with_traceback(None)  # which holds its caller's variables
                part.count = i - part.start
                if part.key_objects is not None:
                    del part.key_objects[part.count:]
                break
        return 0

    cdef object object_of(self, object deserializer, str part, Py_ssize_t index, object data):
        if data is None:
            return None
        try:
            return deserializer.deserialize(self.topic, data, self.records.headers_at(index))
        except Exception as error:
            offset = self.records.spans[index].offset
            raise RecordDeserializationError(
                f"{self.topic}-{self.partition}: the {part} of the record at offset {offset} "
                f"cannot be deserialized: {error}; {go_past(self, offset + 1)}",
                topic=self.topic,
                partition=self.partition,
                offset=offset,
                part=part,
                record=new_record(self.origin, self.records, index),
            ) from error

    def __repr__(self) -> str:
        return f"PartitionReader({self.topic}-{self.partition} at offset {self.position})"


cdef object needed(object given):
    """Return the deserializer, or None for one that hands bytes out as they are."""
    made = as_deserializer(given)
    return None if isinstance(made, BytesDeserializer) else made


cdef Py_ssize_t first_at(Records records, int64_t offset) noexcept:
    """Return the index of the first record that is not below an offset, or their count."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = records.count
    cdef Py_ssize_t middle
    if records.spans[0].offset >= offset:
        return 0
    if records.spans[high - 1].offset < offset:
        return high
    while low < high:
        middle = (low + high) // 2
        if records.spans[middle].offset < offset:
            low = middle + 1
        else:
            high = middle
    return low


cdef int set_origin(PartitionReader reader, RecordBatch batch) except -1:
    """Let the reader have the batch's origin; batches mostly share it."""
    cdef Origin origin = reader.origin
    cdef int8_t kind = (batch.header.attributes & KF_ATTRIBUTE_LOG_APPEND_TIME) != 0
    cdef int32_t epoch = batch.header.leader_epoch
    if origin is None or origin.leader_epoch != epoch or origin.timestamp_type != kind:
        reader.origin = new_origin(reader.topic, reader.partition, epoch, kind)
    return 0


cdef str go_past(PartitionReader reader, int64_t next_offset):
    return (
        f"the partition stays there until the consumer goes past it: "
        f"seek(TopicPartition({reader.topic!r}, {reader.partition}), {next_offset})"
    )


cdef int64_t end_of(PartitionReader reader, RecordBatch batch):
    """Return where to seek to go past a corrupt batch; -1 if that cannot be known."""
    cdef int64_t base = batch.header.base_offset
    cdef int32_t delta = batch.header.last_offset_delta
    cdef int64_t end = -1
    cdef kf_reader behind = kf_reader_of(reader.at + batch.size_, reader.left - batch.size_)
    cdef int64_t following = kf_read_i64(&behind)
    if 0 <= base < reader.floor:
        end = reader.position  # a batch out of order: fetched again from here, all may be well
    elif base >= 0 and 0 <= delta < INT64_MAX - base:
        end = max(base + delta + 1, reader.position)
    if not behind.bad and reader.position < following and (end < 0 or following < end):
        end = following  # the corrupt header does not tell the truth
    return end


cdef object unreadable(PartitionReader reader, RecordBatch batch, object error):
    """Return what a consumer raises for a corrupt batch; None: its end is not known."""
    cdef int64_t end = -1 if batch is None else end_of(reader, batch)
    if end >= 0:
        advice = go_past(reader, end)
    else:
        advice = "the batch does not say where it ends, so only a seek() far past it can help"
    made = UnreadableBatchError(
        f"{reader.topic}-{reader.partition} at offset {reader.position}: {error}; {advice}",
        topic=reader.topic,
        partition=reader.partition,
        offset=reader.position,
        next_offset=end if end >= 0 else None,
    )
    made.__cause__ = error.with_traceback(None)
    return made


def collect(readers, Py_ssize_t max_records) -> ConsumerRecords:
    """Take up to `max_records` records from readers, in their order.

    The call is one step: if it is interrupted, in a deserializer, no reader has moved.

    Raises:
        UnreadableBatchError: the first reader with something to take has failed. Records of the
            readers before it are handed out first.
        RecordDeserializationError: the same, of a reader whose next record was refused.
    """
    cdef PartitionReader reader
    cdef list slices = []
    cdef list taken
    cdef list steps = []
    cdef Py_ssize_t left = max_records
    cdef int64_t start
    try:
        for reader in readers:
            if left <= 0:
                break
            start = reader.position
            taken = reader.take_slices(left)
            steps.append((reader, taken, start))
            slices += taken
            for part in taken:
                left -= (<RecordSlice>part).count
    except Exception:
        if not slices:
            raise
    except BaseException:
        for moved, taken, before in steps:
            (<PartitionReader>moved).give_back(taken, before)
        raise
    return new_consumer_records(slices)
