"""A buffer of the fetched records that were not handed over yet: a reader for each partition.

    data plane ── chunks ──► FetchBuffer ── PartitionReader … ──► slices for one RecordHandover
                                ▲
    seek, pause, assignment ────┘

Thread: the user's, like all code that hands records over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from kafka_fast.consumer.reading.buffered_partition import BufferedPartition
from kafka_fast.consumer.reading.record_handover import RecordHandover, Taken
from kafka_fast.control.consumer.consumer_messages import generation, seeks_of
from kafka_fast.control.consumer.diagnosis import FetchStatus
from kafka_fast.control.consumer.partition import Position
from kafka_fast.dataplane.fetch._chunk import Chunk
from kafka_fast.errors import KafkaError, RecordDeserializationError, fresh_copy
from kafka_fast.records._reading import PartitionReader
from kafka_fast.types import OffsetAndMetadata, TopicPartition


class FetchSide(Protocol):
    """The part of the data plane that the user's thread calls."""

    def add_stream(self, stream_id: int, topic: str, partition: int, end: int) -> None:
        """Add a stream up to an offset; nothing is fetched until the control plane starts it."""

    def set_generation(self, stream_id: int, generation: int) -> None:
        """Drop all chunks of older generations, both those here and those still to come."""

    def set_paused(self, stream_id: int, paused: bool) -> None:
        """Stop or resume fetching a stream."""

    def take_chunks_into(self, found: list[Chunk], most: int) -> None:
        """Append at most `most` arrived chunks, in order."""

    def watermarks(self, stream_id: int) -> tuple[int, int, int]:
        """Return high watermark, last stable offset and log start offset; -1: not told."""

    def forget_watermarks(self, stream_id: int) -> None:
        """Forget a stream's watermarks: `watermarks` returns -1 until the next answer."""


CHUNKS_AT_A_TIME = 256


class FetchBuffer:
    """One consumer's buffer, by assigned partition; read in turn. User's thread only."""

    def __init__(
        self,
        streams: FetchSide,
        make_reader: Callable[[TopicPartition], PartitionReader],
        *,
        read_committed: bool,
        is_well: Callable[[TopicPartition], bool] = lambda partition: False,
    ) -> None:
        """Start without partitions; `assign` adds them.

        Args:
            streams: the data plane's fetch side.
            make_reader: returns the reader of a newly assigned partition.
            read_committed: whether a partition ends at its last stable offset.
            is_well: returns whether what was wrong with a partition is over.
        """
        self._read_committed = read_committed
        self._streams = streams
        self._make_reader = make_reader
        self._is_well = is_well
        self._next_id = 0
        self._by_partition: dict[TopicPartition, BufferedPartition] = {}
        self._by_id: dict[int, BufferedPartition] = {}
        self._arrived: list[Chunk] = []  # chunks that no reader has got yet
        self._ready: deque[BufferedPartition] = deque()  # which may have something to hand over
        self.unreadable_batches = 0
        """How often a corrupt batch stopped a partition."""
        self.refused_records = 0
        """How often a record that a deserializer refused stopped a partition."""

    # ---- getters ----

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that are assigned, in the order of their assignment."""
        return list(self._by_partition)

    def buffered_partition(self, partition: TopicPartition) -> BufferedPartition | None:
        """Return the state of a partition here; None if it is not assigned."""
        return self._by_partition.get(partition)

    def position(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return where reading goes on; None while the control plane looks the position up."""
        read = self._by_partition[partition]
        if read.is_waiting:
            return None
        return OffsetAndMetadata(read.reader.position, read.reader.leader_epoch)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where reading goes on in all partitions that have a position."""
        positions = {partition: self.position(partition) for partition in self._by_partition}
        return {partition: at for partition, at in positions.items() if at is not None}

    def lag(self, partition: TopicPartition, done: int | None = None) -> int | None:
        """Return how far the end was away at the partition's last fetch; None: not known.

        Args:
            partition: an assigned partition.
            done: offset to count from; None: the position.
        """
        read = self._by_partition[partition]
        end = read.reader.last_stable_offset if self._read_committed else -1
        end = end if end >= 0 else read.reader.high_watermark
        at = read.reader.position if done is None else done
        return None if read.is_waiting or end < 0 else max(0, end - at)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether all records that the broker had at the last fetch are handed over."""
        return self._is_at_end(self._by_partition[partition])

    def _is_at_end(self, read: BufferedPartition) -> bool:
        high_watermark, last_stable_offset, _ = self._streams.watermarks(read.id)
        end = last_stable_offset if self._read_committed else -1
        end = end if end >= 0 else high_watermark
        return not read.is_waiting and 0 <= end <= read.reader.position

    @property
    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {read.partition for read in self._by_partition.values() if read.is_paused}

    def describe(self, status_of: Callable[[TopicPartition], FetchStatus]) -> list[str]:
        """Return a line about each partition, for people. Any thread.

        Args:
            status_of: returns what the control plane says of a partition.
        """
        lines: list[str] = []
        for read in list(self._by_partition.values()):
            try:
                is_at_end = self._is_at_end(read)
            except KeyError:  # another thread has dropped the partition meanwhile
                continue
            lines.append(read.describe(status_of(read.partition), is_at_end=is_at_end))
        return lines

    # ---- assignment and moves ----

    def assign(self, partitions: Iterable[TopicPartition]) -> list[tuple[TopicPartition, int]]:
        """Read these partitions and no others; return them with the ids of their streams."""
        requested = dict.fromkeys(partitions)
        for partition in [known for known in self._by_partition if known not in requested]:
            self.drop_partition(partition)
        for partition in requested:
            if partition not in self._by_partition:
                read = BufferedPartition(self._next_id, partition, self._make_reader(partition))
                read.is_waiting = True
                self._next_id += 1
                self._streams.add_stream(read.id, *partition, read.reader.end)
                self._by_partition[partition] = self._by_id[read.id] = read
        return [(partition, self._by_partition[partition].id) for partition in requested]

    def drop_partition(self, partition: TopicPartition) -> None:
        """Remove a partition; none of its records are handed over any more."""
        read = self._by_partition.pop(partition)
        del self._by_id[read.id]
        self._ready = deque(other for other in self._ready if other is not read)
        self._streams.set_generation(read.id, generation(read.seeks + 1, 0))

    def move(self, partition: TopicPartition, to: Position | None) -> int:
        """Move a partition; return its new count of seeks.

        Args:
            partition: an assigned partition.
            to: the new position; None: the control plane will find one.
        """
        read = self._by_partition[partition]
        read.seeks += 1
        read.errors.clear()
        read.failure = None
        read.jump = None
        read.is_waiting = to is None
        self._streams.set_generation(read.id, generation(read.seeks, 0))
        read.reader.seek(*(to or Position(0)))
        if read.is_failed:
            read.is_failed = False
            self._streams.set_paused(read.id, read.is_paused)
        return read.seeks

    def begin_again(self, partition: TopicPartition) -> int:
        """Forget a log that is gone, and its ends; return the partition's new count of seeks."""
        read = self._by_partition[partition]
        self._streams.forget_watermarks(read.id)
        read.reader.forget_watermarks()
        return self.move(partition, None)

    def positioned(self, partition: TopicPartition, start: int, at: Position) -> None:
        """Read on from a position, once all records fetched before are handed over.

        Args:
            partition: the partition that the control plane has positioned.
            start: generation of the chunks that are fetched from there. If the reader has got such
                a chunk already, it follows by itself.
            at: position of the next record.
        """
        read = self._by_partition.get(partition)
        if read is None or read.seeks != seeks_of(start):
            return
        read.failure = None
        if read.fed >= start:
            read.reader.know_epoch(*at)
            return
        read.is_waiting = False
        if read.reader:
            read.jump = at
        else:
            read.reader.seek(*at)

    def pause(self, partition: TopicPartition, paused: bool) -> None:
        """Pause a partition, or resume it. A paused one keeps its records, and is not fetched."""
        read = self._by_partition[partition]
        read.is_paused = paused
        self._streams.set_paused(read.id, paused or read.is_failed)
        self._queue(read)

    def fail_partition(
        self, partition: TopicPartition, seeks: int, error: KafkaError, *, is_final: bool = False
    ) -> None:
        """Raise an error after all records that were fetched before it have been handed over.

        Args:
            partition: the partition that has failed.
            seeks: its count of seeks at the failure. If the user has moved it since, the error is
                out of date and is dropped.
            error: raised by `take_slices`.
            is_final: whether every poll raises it, until the user moves the partition.
        """
        read = self._by_partition.get(partition)
        if read is None or read.seeks != seeks:
            return
        if is_final:
            read.failure = error
        elif str(error) not in map(str, read.errors):  # otherwise the next poll raises it anyway
            read.errors.append(fresh_copy(error))
        self._queue(read)

    def clear_failure(self, partition: TopicPartition, seeks: int) -> None:
        """Drop the failure that every poll raises, unless the user has moved the partition."""
        read = self._by_partition.get(partition)
        if read is not None and read.seeks == seeks:
            read.failure = None

    def take_error(self, partition: TopicPartition) -> KafkaError | None:
        """Return a partition's error to raise now, if there is one."""
        return self._by_partition[partition].take_error()

    # ---- records ----

    def feed(self) -> None:
        """Give arrived chunks to their readers. After a Ctrl-C in here the next call goes on."""
        arrived = self._arrived
        self._streams.take_chunks_into(arrived, CHUNKS_AT_A_TIME)
        while arrived:
            self._feed(arrived[0])
            del arrived[0]

    def _feed(self, chunk: Chunk) -> None:
        """Give a chunk to its reader. A second call with the same chunk has no effect."""
        read = self._by_id.get(chunk.stream_id)
        if read is None or seeks_of(chunk.generation) != read.seeks:
            return
        if read.is_waiting:  # records came before the news of their position
            read.reader.seek(chunk.asked_offset)
            read.is_waiting = False
        read.fed = chunk.generation
        self._queue(read)
        read.reader.feed(chunk)
        if read.jump is not None and chunk.asked_offset == read.jump.offset:
            read.jump = None  # the reader follows by itself

    def take_slices(self, most: int, handover: RecordHandover) -> None:
        """Take slices of at most `most` records, one partition after the other.

        If records come before an error, this call returns these records and the next call raises
        the error. Records of other partitions then wait for the call after that.

        Raises:
            KafkaError: a partition's records cannot be read, or it has no position.
        """
        slices = handover.slices
        handover.taken.clear()  # notes of earlier calls that found no records
        unseen = len(self._ready)
        while unseen and most > 0:
            read = self._ready[0]
            try:
                count = 0 if read.is_paused else self._take_from(read, most, handover)
            except KafkaError as refusal:
                self._stop_fetching(read, refusal)
                if slices:
                    return  # the next poll raises it
                self._ready.rotate(-1)
                handover.taken.clear()
                raise
            if count:
                most -= count  # a reader is emptied before the next partition's turn
            elif read.is_paused or not self._has_error(read):
                self._leave(read)
                unseen -= 1
            elif slices:
                return  # the next poll raises it
            else:
                self._ready.rotate(-1)
                error = read.take_error()
                if error is not None:
                    handover.taken.clear()
                    raise error
        if not most:
            self._ready.rotate(-1)  # the next poll begins with another partition

    def _take_from(self, read: BufferedPartition, most: int, handover: RecordHandover) -> int:
        """Take slices of at most `most` records of a partition; return the number of records.

        Raises:
            KafkaError: the partition's reader has stopped.
        """
        reader = read.reader
        place = read, len(handover.slices), read.jump, read.seeks
        handover.taken.append(
            Taken(read.partition, reader.position, reader.leader_epoch, self._bring_back, place)
        )
        count = reader.take_into(handover.slices, most)
        if not count and read.jump is not None:
            reader.seek(*read.jump)
            read.jump = None
        return count

    def _has_error(self, read: BufferedPartition) -> bool:
        """Return whether a poll must raise that a partition cannot be read on."""
        if read.errors and self._is_well(read.partition):
            read.errors.clear()  # nobody has polled while they were true
        return bool(read.errors) or read.failure is not None

    def _bring_back(self, handover: RecordHandover, taken: Taken) -> None:
        """Give records back to their reader, because the user did not get them."""
        read, first, jump, seeks = taken.place
        slices = handover.slices[first:]
        del handover.slices[first:]
        if read.seeks == seeks:  # otherwise the user has moved the partition since
            read.reader.give_back(slices, taken.position)
            read.jump = jump
            read.is_queued = False  # queue it in any case: it may be about to leave
            self._queue(read)

    def _stop_fetching(self, read: BufferedPartition, error: KafkaError) -> None:
        """Stop fetching a partition whose reader has stopped: its chunks would be thrown away."""
        if read.is_failed:
            return
        read.is_failed = True
        self._streams.set_paused(read.id, True)
        if isinstance(error, RecordDeserializationError):
            self.refused_records += 1
        else:
            self.unreadable_batches += 1

    # A Ctrl-C may raise at any point of these two. A partition is then queued twice, or is queued
    # with `is_queued` false. Both are harmless; one missing from the queue would not be read.

    def _queue(self, read: BufferedPartition) -> None:
        if not read.is_queued and not read.is_paused:
            self._ready.append(read)
            read.is_queued = True

    def _leave(self, read: BufferedPartition) -> None:
        read.is_queued = False
        del self._ready[0]
