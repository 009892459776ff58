"""What has come in and not been handed over: one reader for each partition, read in turn.

    data plane ── chunks ──► Intake ── PartitionReader … ──► slices for one RecordHandover
                                ▲
    seek, pause, assignment ────┘

Thread: the user's, as everything in a consumer that hands records over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from kafka_fast.consumer.record_handover import RecordHandover, Taken
from kafka_fast.control.consumer.partition import Position
from kafka_fast.control.consumer.plane import generation, seeks_of
from kafka_fast.dataplane.fetch._chunk import Chunk
from kafka_fast.dataplane.fetch._reading import PartitionReader
from kafka_fast.errors import KafkaError, RecordDeserializationError, fresh_copy
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import Value, field


class FetchSide(Protocol):
    """What the user's thread needs of the data plane's `Streams`."""

    def add_stream(self, stream_id: int, topic: str, partition: int) -> None:
        """Make a stream; it stands still until the control plane starts it."""

    def set_generation(self, stream_id: int, generation: int) -> None:
        """Drop what has arrived under an older generation, and what still will."""

    def set_paused(self, stream_id: int, paused: bool) -> None:
        """Fetch a stream no more, or again."""

    def take_chunks_into(self, found: list[Chunk], most: int) -> None:
        """Append what has arrived, in order."""

    def watermarks(self, stream_id: int) -> tuple[int, int, int]:
        """Return high watermark, last stable offset and log start offset; -1: not told."""


class Stream(Value, frozen=False, eq=False):
    """A partition as the user's thread has it."""

    id: int
    partition: TopicPartition
    reader: PartitionReader
    seeks: int = 0
    """How often the user has moved it: what comes in of an earlier life is dropped."""
    is_paused: bool = False
    is_failed: bool = False
    """Its reader stands before what it cannot read, until the user moves it; nothing is fetched."""
    is_waiting: bool = False
    """It has no position until the control plane finds one."""
    is_queued: bool = False
    fed: int = -1
    """Generation of the last chunk that came in."""
    jump: Position | None = None
    """Where reading goes on once the reader is empty."""
    errors: deque[KafkaError] = field(factory=deque)
    """To be raised once what was fetched before has been handed over."""
    failure: KafkaError | None = None
    """Likewise, but again and again, until the user moves the stream."""

    def describe(self) -> str:
        """Return in a line how far it is read, and what holds it up. Any thread."""
        at = f"handed over up to offset {self.reader.position}"
        said = "no position yet" if self.is_waiting else at
        said += ", paused" if self.is_paused else ""
        said += ", stands before what cannot be read" if self.is_failed else ""
        said += "" if self.failure is None else f", every poll() raises {self.failure}"
        return f"{self.partition}: {said}"

    def take_error(self) -> KafkaError | None:
        """Return what is to be raised now, if anything."""
        if self.errors:
            return self.errors.popleft()
        return None if self.failure is None else fresh_copy(self.failure)


CHUNKS_AT_A_TIME = 256


class Intake:
    """The partitions of one consumer that are read now. User's thread only."""

    def __init__(
        self,
        streams: FetchSide,
        make_reader: Callable[[TopicPartition], PartitionReader],
        *,
        read_committed: bool,
    ) -> None:
        """Begin with no partition.

        Args:
            streams: of the data plane.
            make_reader: returns the reader of a partition that is assigned.
            read_committed: the end of a partition is its last stable offset.
        """
        self._read_committed = read_committed
        self._plane = streams
        self._make_reader = make_reader
        self._next_id = 0
        self._by_partition: dict[TopicPartition, Stream] = {}
        self._by_id: dict[int, Stream] = {}
        self._arrived: list[Chunk] = []  # and not been given to its reader
        self._turn: deque[Stream] = deque()  # those that may have something to hand over
        self.unreadable_batches = 0
        """How often a partition was stopped by a batch that is corrupt."""
        self.refused_records = 0
        """How often by a record that a deserializer refused."""

    # Getters

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that are assigned, in the order of their assignment."""
        return list(self._by_partition)

    def stream(self, partition: TopicPartition) -> Stream | None:
        """Return a partition's stream; None if it is not assigned."""
        return self._by_partition.get(partition)

    def position(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return where reading goes on; None while that is being found out."""
        stream = self._by_partition[partition]
        if stream.is_waiting:
            return None
        return OffsetAndMetadata(stream.reader.position, stream.reader.leader_epoch)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where reading goes on in all partitions that have a position."""
        found = {partition: self.position(partition) for partition in self._by_partition}
        return {partition: at for partition, at in found.items() if at is not None}

    def lag(self, partition: TopicPartition, done: int | None = None) -> int | None:
        """Return how far the end was away when the partition was fetched last; None: not known.

        Args:
            partition: which.
            done: from what offset on; None: from where reading goes on.
        """
        stream = self._by_partition[partition]
        end = stream.reader.last_stable_offset if self._read_committed else -1
        end = end if end >= 0 else stream.reader.high_watermark
        at = stream.reader.position if done is None else done
        return None if stream.is_waiting or end < 0 else max(0, end - at)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether all is handed over that the broker had when it was asked last."""
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
        """Read these partitions and no others; returns them with the ids of their streams."""
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
        """Hand over nothing more of a partition."""
        stream = self._by_partition.pop(partition)
        del self._by_id[stream.id]
        self._turn = deque(it for it in self._turn if it is not stream)
        self._plane.set_generation(stream.id, generation(stream.seeks + 1, 0))

    def move(self, partition: TopicPartition, to: Position | None) -> int:
        """Begin again somewhere (None: the control plane finds out where); return the seeks."""
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
        """Read on from here once what was fetched before it has been handed over.

        Args:
            partition: which.
            start: the generation of what is fetched from there; if some of it is here already, the
                reader follows by itself.
            at: where the next record is.
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
        """Hand over nothing of a partition, and fetch it no more, or again; what is here stays."""
        stream = self._by_partition[partition]
        stream.is_paused = paused
        self._plane.set_paused(stream.id, paused or stream.is_failed)
        self._queue(stream)

    def fail(
        self, partition: TopicPartition, seeks: int, error: KafkaError, *, is_final: bool = False
    ) -> None:
        """Raise this once what was fetched before it has been handed over.

        Args:
            partition: that has failed.
            seeks: how often the user had moved it then; of an earlier life it is nobody's business.
            error: to be raised.
            is_final: raise it again and again, until the user moves the partition.
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
        """Raise no more what was to be raised again and again, if it is of this life."""
        stream = self._by_partition.get(partition)
        if stream is not None and stream.seeks == seeks:
            stream.failure = None

    def take_error(self, partition: TopicPartition) -> KafkaError | None:
        """Return what is the matter with a partition, if anything is."""
        return self._by_partition[partition].take_error()

    # Records

    def feed(self) -> None:
        """Take what has arrived. After a Ctrl-C in here the next call goes on."""
        arrived = self._arrived
        self._plane.take_chunks_into(arrived, CHUNKS_AT_A_TIME)
        while arrived:
            self._feed(arrived[0])
            del arrived[0]

    def _feed(self, chunk: Chunk) -> None:
        """Give a chunk to its reader; to do so twice is to do it once."""
        stream = self._by_id.get(chunk.stream_id)
        if stream is None or seeks_of(chunk.generation) != stream.seeks:
            return
        if stream.is_waiting:  # records were faster than the news of their start
            stream.reader.seek(chunk.asked_offset)
            stream.is_waiting = False
        stream.fed = chunk.generation
        self._queue(stream)
        stream.reader.feed(chunk)
        if stream.jump is not None and chunk.asked_offset == stream.jump.offset:
            stream.jump = None  # the reader follows by itself

    def take(self, most: int, handover: RecordHandover) -> None:
        """Take slices of at most so many records, those of one partition in a row.

        An error is raised by the call that finds nothing before it; what other partitions have
        then waits for the next one.

        Raises:
            KafkaError: a partition's records, or its position, are no good.
        """
        found = handover.slices
        handover.taken.clear()  # of looks that have found nothing
        unseen = len(self._turn)
        while unseen and most > 0:
            stream = self._turn[0]
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
                self._stop(stream, refusal)
                if found:
                    break  # the next poll raises it
                self._turn.rotate(-1)
                handover.taken.clear()
                raise
            if count:
                most -= count
                continue  # to its end, before the next one's turn
            if stream.jump is not None:
                stream.reader.seek(*stream.jump)
                stream.jump = None
            if not stream.errors and stream.failure is None:
                self._leave(stream)
                unseen -= 1
                continue
            if found:
                break  # the next poll raises it
            self._turn.rotate(-1)
            error = stream.take_error()
            if error is not None:
                handover.taken.clear()
                raise error
        if not most:
            self._turn.rotate(-1)  # the next poll begins with another partition

    def _bring_back(self, handover: RecordHandover, taken: Taken) -> None:
        """Nobody got what was taken from a stream: it comes next."""
        stream, first, jump, seeks = taken.place
        slices = handover.slices[first:]
        del handover.slices[first:]
        if stream.seeks == seeks:  # else the user has moved it since
            stream.reader.give_back(slices, taken.position)
            stream.jump = jump
            stream.is_queued = False  # it may be about to leave
            self._queue(stream)

    def _stop(self, stream: Stream, error: KafkaError) -> None:
        """Fetch nothing more of a partition whose reader is stopped: it would be thrown away."""
        if stream.is_failed:
            return
        stream.is_failed = True
        self._plane.set_paused(stream.id, True)
        if isinstance(error, RecordDeserializationError):
            self.refused_records += 1
        else:
            self.unreadable_batches += 1

    # An exception may come from anywhere in here (Ctrl-C): a stream is then in the queue twice, or
    # is there and does not know it. Both do no harm; to be left out would.

    def _queue(self, stream: Stream) -> None:
        if not stream.is_queued and not stream.is_paused:
            self._turn.append(stream)
            stream.is_queued = True

    def _leave(self, stream: Stream) -> None:
        stream.is_queued = False
        del self._turn[0]
