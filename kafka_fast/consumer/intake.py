"""The fetched records that were not handed over yet: one reader for each partition, read in turn.

    data plane ── chunks ──► Intake ── PartitionReader … ──► slices for one RecordHandover
                                ▲
    seek, pause, assignment ────┘

Thread: the user's, like all code that hands records over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from kafka_fast.consumer.record_handover import RecordHandover, Taken
from kafka_fast.control.consumer.messages import generation, seeks_of
from kafka_fast.control.consumer.partition import Position
from kafka_fast.dataplane.fetch._chunk import Chunk
from kafka_fast.dataplane.fetch._reading import PartitionReader
from kafka_fast.errors import KafkaError, RecordDeserializationError, fresh_copy
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import Value, field


class FetchSide(Protocol):
    """The part of the data plane that the user's thread calls."""

    def add_stream(self, stream_id: int, topic: str, partition: int) -> None:
        """Add a stream; nothing is fetched until the control plane starts it."""

    def set_generation(self, stream_id: int, generation: int) -> None:
        """Drop all chunks of older generations, both those here and those still to come."""

    def set_paused(self, stream_id: int, paused: bool) -> None:
        """Stop or resume fetching a stream."""

    def take_chunks_into(self, found: list[Chunk], most: int) -> None:
        """Append at most `most` arrived chunks, in order."""

    def watermarks(self, stream_id: int) -> tuple[int, int, int]:
        """Return high watermark, last stable offset and log start offset; -1: not told."""


class Stream(Value, frozen=False, eq=False):
    """The state of an assigned partition in the user's thread."""

    id: int
    partition: TopicPartition
    reader: PartitionReader
    seeks: int = 0
    """How often the user has moved the stream. Chunks and news from before the last move are
    dropped.
    """
    is_paused: bool = False
    is_failed: bool = False
    """Whether the reader has met a batch or record that it cannot read. Until the user moves the
    stream, nothing is fetched.
    """
    is_waiting: bool = False
    """Whether there is no position until the control plane finds one."""
    is_queued: bool = False
    """Whether the stream is in `Intake._ready`."""
    fed: int = -1
    """Generation of the last chunk that the reader got."""
    jump: Position | None = None
    """Where reading goes on once the reader is empty."""
    errors: deque[KafkaError] = field(factory=deque)
    """Errors to raise, once each, after all records fetched before have been handed over."""
    failure: KafkaError | None = None
    """An error that every poll raises, after these records, until the user moves the stream."""

    def describe(self) -> str:
        """Return one line on how far the partition is read, and what holds it up. Any thread."""
        at = f"handed over up to offset {self.reader.position}"
        said = "no position yet" if self.is_waiting else at
        said += ", paused" if self.is_paused else ""
        said += ", stands before what cannot be read" if self.is_failed else ""
        said += "" if self.failure is None else f", every poll() raises {self.failure}"
        return f"{self.partition}: {said}"

    def take_error(self) -> KafkaError | None:
        """Return the error to raise now, if there is one."""
        if self.errors:
            return self.errors.popleft()
        return None if self.failure is None else fresh_copy(self.failure)


CHUNKS_AT_A_TIME = 256


class Intake:
    """The assigned partitions of one consumer. User's thread only."""

    def __init__(
        self,
        streams: FetchSide,
        make_reader: Callable[[TopicPartition], PartitionReader],
        *,
        read_committed: bool,
    ) -> None:
        """Begin with no partition.

        Args:
            streams: the data plane's fetch side.
            make_reader: returns the reader of a newly assigned partition.
            read_committed: whether a partition ends at its last stable offset.
        """
        self._read_committed = read_committed
        self._plane = streams
        self._make_reader = make_reader
        self._next_id = 0
        self._by_partition: dict[TopicPartition, Stream] = {}
        self._by_id: dict[int, Stream] = {}
        self._arrived: list[Chunk] = []  # chunks that no reader has got yet
        self._ready: deque[Stream] = deque()  # streams that may have something to hand over
        self.unreadable_batches = 0
        """How often a corrupt batch stopped a partition."""
        self.refused_records = 0
        """How often a record that a deserializer refused stopped a partition."""

    # Getters

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that are assigned, in the order of their assignment."""
        return list(self._by_partition)

    def stream(self, partition: TopicPartition) -> Stream | None:
        """Return a partition's stream; None if it is not assigned."""
        return self._by_partition.get(partition)

    def position(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return where reading goes on; None while the control plane looks the position up."""
        stream = self._by_partition[partition]
        if stream.is_waiting:
            return None
        return OffsetAndMetadata(stream.reader.position, stream.reader.leader_epoch)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where reading goes on in all partitions that have a position."""
        found = {partition: self.position(partition) for partition in self._by_partition}
        return {partition: at for partition, at in found.items() if at is not None}

    def lag(self, partition: TopicPartition, done: int | None = None) -> int | None:
        """Return how far the end was away at the partition's last fetch; None: not known.

        Args:
            partition: an assigned partition.
            done: offset to count from; None: the position.
        """
        stream = self._by_partition[partition]
        end = stream.reader.last_stable_offset if self._read_committed else -1
        end = end if end >= 0 else stream.reader.high_watermark
        at = stream.reader.position if done is None else done
        return None if stream.is_waiting or end < 0 else max(0, end - at)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether all records that the broker had at the last fetch are handed over."""
        stream = self._by_partition[partition]
        high_watermark, last_stable_offset, _ = self._plane.watermarks(stream.id)
        end = last_stable_offset if self._read_committed else -1
        end = end if end >= 0 else high_watermark
        return not stream.is_waiting and 0 <= end <= stream.reader.position

    @property
    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {it.partition for it in self._by_partition.values() if it.is_paused}

    def describe(self) -> list[str]:
        """Return a line about each partition, for people. Any thread."""
        return [it.describe() for it in list(self._by_partition.values())]

    # Assignment and moves

    def assign(self, partitions: Iterable[TopicPartition]) -> list[tuple[TopicPartition, int]]:
        """Read these partitions and no others; return them with the ids of their streams."""
        wanted = dict.fromkeys(partitions)
        for partition in [it for it in self._by_partition if it not in wanted]:
            self.drop(partition)
        for partition in wanted:
            if partition not in self._by_partition:
                stream = Stream(self._next_id, partition, self._make_reader(partition))
                stream.is_waiting = True
                self._next_id += 1
                self._plane.add_stream(stream.id, *partition)
                self._by_partition[partition] = self._by_id[stream.id] = stream
        return [(partition, self._by_partition[partition].id) for partition in wanted]

    def drop(self, partition: TopicPartition) -> None:
        """Remove a partition; none of its records are handed over any more."""
        stream = self._by_partition.pop(partition)
        del self._by_id[stream.id]
        self._ready = deque(it for it in self._ready if it is not stream)
        self._plane.set_generation(stream.id, generation(stream.seeks + 1, 0))

    def move(self, partition: TopicPartition, to: Position | None) -> int:
        """Move a partition; return its new count of seeks.

        Args:
            partition: an assigned partition.
            to: the new position; None: the control plane will find one.
        """
        stream = self._by_partition[partition]
        stream.seeks += 1
        stream.errors.clear()
        stream.failure = None
        stream.jump = None
        stream.is_waiting = to is None
        self._plane.set_generation(stream.id, generation(stream.seeks, 0))
        stream.reader.seek(*(to or Position(0)))
        if stream.is_failed:
            stream.is_failed = False
            self._plane.set_paused(stream.id, stream.is_paused)
        return stream.seeks

    def positioned(self, partition: TopicPartition, start: int, at: Position) -> None:
        """Read on from a position, once all records fetched before are handed over.

        Args:
            partition: the partition that the control plane has positioned.
            start: generation of the chunks that are fetched from there. If the reader has got such
                a chunk already, it follows by itself.
            at: position of the next record.
        """
        stream = self._by_partition.get(partition)
        if stream is None or stream.seeks != seeks_of(start):
            return
        stream.failure = None
        if stream.fed >= start:
            stream.reader.know_epoch(*at)
            return
        stream.is_waiting = False
        if stream.reader:
            stream.jump = at
        else:
            stream.reader.seek(*at)

    def pause(self, partition: TopicPartition, paused: bool) -> None:
        """Pause a partition, or resume it. A paused one keeps its records, and is not fetched."""
        stream = self._by_partition[partition]
        stream.is_paused = paused
        self._plane.set_paused(stream.id, paused or stream.is_failed)
        self._queue(stream)

    def fail(
        self, partition: TopicPartition, seeks: int, error: KafkaError, *, is_final: bool = False
    ) -> None:
        """Raise an error after all records that were fetched before it have been handed over.

        Args:
            partition: the partition that has failed.
            seeks: its count of seeks at the failure. If the user has moved it since, the error is
                out of date and is dropped.
            error: raised by `take`.
            is_final: whether every poll raises it, until the user moves the partition.
        """
        stream = self._by_partition.get(partition)
        if stream is None or stream.seeks != seeks:
            return
        if is_final:
            stream.failure = error
        else:
            stream.errors.append(fresh_copy(error))
        self._queue(stream)

    def heal(self, partition: TopicPartition, seeks: int) -> None:
        """Drop the failure that every poll raises, unless the user has moved the partition."""
        stream = self._by_partition.get(partition)
        if stream is not None and stream.seeks == seeks:
            stream.failure = None

    def take_error(self, partition: TopicPartition) -> KafkaError | None:
        """Return a partition's error to raise now, if there is one."""
        return self._by_partition[partition].take_error()

    # Records

    def feed(self) -> None:
        """Give arrived chunks to their readers. After a Ctrl-C in here the next call goes on."""
        arrived = self._arrived
        self._plane.take_chunks_into(arrived, CHUNKS_AT_A_TIME)
        while arrived:
            self._feed(arrived[0])
            del arrived[0]

    def _feed(self, chunk: Chunk) -> None:
        """Give a chunk to its reader. A second call with the same chunk has no effect."""
        stream = self._by_id.get(chunk.stream_id)
        if stream is None or seeks_of(chunk.generation) != stream.seeks:
            return
        if stream.is_waiting:  # records came before the news of their position
            stream.reader.seek(chunk.asked_offset)
            stream.is_waiting = False
        stream.fed = chunk.generation
        self._queue(stream)
        stream.reader.feed(chunk)
        if stream.jump is not None and chunk.asked_offset == stream.jump.offset:
            stream.jump = None  # the reader follows by itself

    def take(self, most: int, handover: RecordHandover) -> None:
        """Take slices of at most `most` records, one partition after the other.

        If records come before an error, this call returns these records and the next call raises
        the error. Records of other partitions then wait for the call after that.

        Raises:
            KafkaError: a partition's records cannot be read, or it has no position.
        """
        found = handover.slices
        handover.taken.clear()  # notes of earlier calls that found no records
        unseen = len(self._ready)
        while unseen and most > 0:
            stream = self._ready[0]
            if stream.is_paused:
                self._leave(stream)
                unseen -= 1
                continue
            reader = stream.reader
            place = stream, len(found), stream.jump, stream.seeks
            handover.taken.append(
                Taken(
                    stream.partition, reader.position, reader.leader_epoch, self._bring_back, place
                )
            )
            try:
                count = reader.take_into(found, most)
            except KafkaError as refusal:
                self._stop_fetching(stream, refusal)
                if found:
                    break  # the next poll raises it
                self._ready.rotate(-1)
                handover.taken.clear()
                raise
            if count:
                most -= count
                continue  # a reader is emptied before the next stream's turn
            if stream.jump is not None:
                stream.reader.seek(*stream.jump)
                stream.jump = None
            if not stream.errors and stream.failure is None:
                self._leave(stream)
                unseen -= 1
                continue
            if found:
                break  # the next poll raises it
            self._ready.rotate(-1)
            error = stream.take_error()
            if error is not None:
                handover.taken.clear()
                raise error
        if not most:
            self._ready.rotate(-1)  # the next poll begins with another partition

    def _bring_back(self, handover: RecordHandover, taken: Taken) -> None:
        """Give records back to their stream, because the user did not get them."""
        stream, first, jump, seeks = taken.place
        slices = handover.slices[first:]
        del handover.slices[first:]
        if stream.seeks == seeks:  # otherwise the user has moved the stream since
            stream.reader.give_back(slices, taken.position)
            stream.jump = jump
            stream.is_queued = False  # queue it in any case: it may be about to leave
            self._queue(stream)

    def _stop_fetching(self, stream: Stream, error: KafkaError) -> None:
        """Stop fetching a partition whose reader has stopped: its chunks would be thrown away."""
        if stream.is_failed:
            return
        stream.is_failed = True
        self._plane.set_paused(stream.id, True)
        if isinstance(error, RecordDeserializationError):
            self.refused_records += 1
        else:
            self.unreadable_batches += 1

    # A Ctrl-C may raise at any point of these two. A stream is then queued twice, or is queued with
    # `is_queued` false. Both are harmless; a stream missing from the queue would not be read.

    def _queue(self, stream: Stream) -> None:
        if not stream.is_queued and not stream.is_paused:
            self._ready.append(stream)
            stream.is_queued = True

    def _leave(self, stream: Stream) -> None:
        stream.is_queued = False
        del self._ready[0]
