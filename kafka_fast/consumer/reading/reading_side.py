"""The reading side of a consumer: assignments, moves, records, and news about them.

    user's thread ── assign, seek ──► FetchBuffer, and ConsumerControl on kf-control
                  ◄── records ─────── FetchBuffer
                  ◄── news ────────── kf-control: positions, errors
                  ◄── group news ──── kf-control: revoke, assign, the member's failures

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafka_fast.config import ConsumerSettings, OffsetReset
from kafka_fast.consumer.idle_log import IdleLog
from kafka_fast.consumer.reading.fetch_buffer import FetchBuffer
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.consumer.waits import Waits
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.consumer.consumer_messages import (
    BrokerFailed,
    News,
    PartitionFailed,
    PartitionFound,
    Positioned,
    Recreated,
    Reposition,
)
from kafka_fast.control.consumer.partition import Position
from kafka_fast.control.group.member import GroupNews
from kafka_fast.dataplane.fetch._streams import NO_END, Streams
from kafka_fast.errors import PositionError, fresh_copy
from kafka_fast.logs import ClientLog, LongWait, Waiting
from kafka_fast.net.calls import Calls
from kafka_fast.net.host import Host
from kafka_fast.net.waiting.steps import Steps, Wait
from kafka_fast.records._reading import PartitionReader
from kafka_fast.types import OffsetAndMetadata, TopicPartition

FRESH = 10.0
"""Seconds for which a poll raises that a node is of no use. A later poll drops this
error, because the node may have recovered.
"""

Forget: TypeAlias = Callable[[Iterable[TopicPartition]], None]
"""Drops records of these partitions that were handed over to an iteration but not reached."""


class ReadingSide:
    """The reading side of one consumer, in the user's thread."""

    def __init__(
        self,
        settings: ConsumerSettings,
        control: ConsumerControl,
        streams: Streams,
        waits: Waits,
        host: Host,
        call: Calls,
    ) -> None:
        """Make the buffer; no partition is assigned yet.

        Args:
            settings: the consumer's configuration.
            control: hears of assignments and moves.
            streams: the data plane's fetch side.
            waits: knows what ends a wait for records.
            host: knows the time.
            call: reaches the control thread.
        """
        self._settings = settings
        self._control = control
        self._view = control.view
        self._log = ClientLog("kafka_fast.consumer", control.view.client_id)
        self._streams = streams
        self._waits = waits
        self._now = host.now
        self._call = call
        # The control thread may append while the user's thread takes. So there are two deques, and
        # on each of them one thread only appends and the other only takes from the front.
        self._news: deque[News] = deque()
        self._group_news: deque[GroupNews] = deque()
        self._forget: Callable[[], Forget | None] = lambda: None
        # The last failure of each partition, until the user's thread reads it. A partition may fail
        # every second, and always in the same way: that is told once.
        self._untold_failures: dict[TopicPartition, tuple[int, bool, str]] = {}
        self.buffer = FetchBuffer(
            streams,
            self._make_reader,
            read_committed=settings.is_read_committed,
            is_well=lambda partition: control.view.is_well(partition, host.now()),
        )
        self._idle = IdleLog(control.view, self.buffer, settings)
        self._broker_failed: BrokerFailed | None = None  # to be raised by a poll
        self.ends: dict[TopicPartition, int] = {}
        """Ends of partitions that are assigned from now on. Others are read without end."""

    def _make_reader(self, partition: TopicPartition) -> PartitionReader:
        settings = self._settings
        return PartitionReader(
            *partition,
            0,
            end=self.ends.get(partition, NO_END),
            check_crcs=settings.check_crcs,
            read_committed=settings.is_read_committed,
            max_decompressed=settings.max_decompressed_batch_bytes,
            key_deserializer=settings.key_deserializer,
            value_deserializer=settings.value_deserializer,
        )

    def forget_with(self, forget: Forget) -> None:
        """Have this method called also with the partitions of a recreated topic.

        The method's object is held weakly. It belongs to the `Consumer`, which threads must not
        keep alive, and threads hold this object through the core.
        """
        self._forget = weakref.WeakMethod(forget)

    # ---- assignment and moves ----

    def assign(self, partitions: Iterable[TopicPartition], *, by_hand: bool = True) -> None:
        """Read these partitions and no others; those assigned before are read on undisturbed.

        Args:
            partitions: all partitions to read from now on.
            by_hand: whether the user has named them, and not the group.
        """
        streams = self.buffer.assign(partitions)
        committed = self._settings.group_id is not None
        self._call(
            lambda now: self._control.assign(streams, now, committed=committed, by_hand=by_hand)
        )

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Read on from an offset."""
        position = Position(offset, epoch)
        seeks = self.buffer.move(partition, position)
        self._call(lambda now: self._control.seek(partition, position, seeks, now))

    def look_up(self, partition: TopicPartition, reset: OffsetReset) -> None:
        """Read on from the log's beginning, its end, or a time in Unix ms."""
        seeks = self.buffer.move(partition, None)
        self._call(lambda now: self._control.look_up(partition, reset, seeks, now))

    # ---- records ----

    def try_take(self, most: int, handover: RecordHandover) -> bool:
        """Take fetched records. Return True if there were any, or if there is group news.

        Raises:
            KafkaError: see `FetchBuffer.take_slices`; or the control thread has failed.
        """
        self.buffer.feed()
        self._read_news()
        if self._group_news:  # these records' partitions may be given to others by now
            return True
        self._raise_broker_failed(urgent=True)
        self.buffer.take_slices(most, handover)
        if handover.slices:
            self._idle.end_wait()
            return True
        self._raise_broker_failed(urgent=False)
        return False

    def take_records(self, most: int, handover: RecordHandover, deadline: float) -> Steps[None]:
        """Wait until there are records or group news, and take the records; see `try_take`.

        Raises:
            WakeupError: another caller called `wakeup`.
        """
        is_over = self._news_or(self._waits.ends())
        while not self.try_take(most, handover):
            self._waits.raise_if_over()
            now = self._now()
            self._idle.note_idle(now)
            if deadline <= now:
                return
            yield Wait(is_over, deadline, "records")

    def _news_or(self, is_ended: Callable[[], bool]) -> Callable[[], object]:
        """Return a function that tells whether a wait for records is over."""
        streams, news, group_news = self._streams, self._news, self._group_news
        return lambda: streams.has_chunks or news or group_news or is_ended()

    def _raise_broker_failed(self, *, urgent: bool) -> None:
        """Raise that a broker is of no use to this client, if that news is fresh."""
        failed = self._broker_failed
        if failed is None or failed.is_urgent is not urgent:
            return
        self._broker_failed = None
        if self._now() < failed.at + FRESH and not self._view.is_over(failed):
            raise fresh_copy(failed.error)

    def await_position(
        self, partition: TopicPartition, deadline: float
    ) -> Steps[OffsetAndMetadata]:
        """Return a partition's position, once it is known.

        Raises:
            KafkaError: there is no position, or none by the deadline.
        """
        began = self._now()
        long = LongWait(self._log)
        ends = self._waits.ends()
        refusals = self._waits.watch_refusals()
        what = f"position of {partition}"
        while True:
            self.buffer.feed()
            self._read_news()
            at = self.buffer.position(partition)
            if at is not None:
                return at
            error = self.buffer.take_error(partition)
            if error is not None:
                raise error
            self._waits.raise_if_over()
            refusals.raise_refusal(lambda: self._view.why_waiting(partition, self._now()))
            now = self._now()
            if now >= deadline:
                limit = self._waits.limit(began, deadline)
                why = self._view.why_waiting(partition, now)
                raise self._waits.timeout_error(f"no {what} {limit}", began, why)
            long.log_if_long(now, lambda at: self._describe(partition, began, deadline, at))
            # Group news does not end this wait: only a poll handles it.
            yield Wait(
                lambda: self._streams.has_chunks or self._news or refusals.has_news or ends(),
                min(deadline, long.deadline),
                what,
            )

    def _describe(
        self, partition: TopicPartition, began: float, deadline: float, now: float
    ) -> Waiting:
        why = self._view.why_waiting(partition, now)
        return self._waits.describe(f"position of {partition}", began, deadline, now, why)

    # ---- news ----

    def put_news(self, news: News) -> None:
        """Pass news of a partition to the user's thread. Control thread."""
        if isinstance(news, PartitionFailed):
            what = (news.seeks, news.is_final, str(news.error))
            if self._untold_failures.get(news.partition) == what:
                return
            self._untold_failures[news.partition] = what
        elif isinstance(news, PartitionFound):
            self._untold_failures.pop(news.partition, None)  # one after it counts anew
        self._news.append(news)

    def put_group_news(self, news: GroupNews) -> None:
        """Pass group news to the user's next poll. Control thread."""
        self._group_news.append(news)

    @property
    def has_group_news(self) -> bool:
        """Whether group news waits for the user's thread."""
        return bool(self._group_news)

    def first_group_news(self) -> GroupNews | None:
        """Return the first item of group news; None if there is none."""
        self._read_news()
        return self._group_news[0] if self._group_news else None

    def drop_group_news(self) -> None:
        """Remove the first item of group news, which is about to be carried out."""
        self._group_news.popleft()

    def return_group_news(self, news: GroupNews) -> None:
        """Put an item of group news back to the front: its handling was interrupted."""
        if not self._group_news or self._group_news[0] is not news:
            self._group_news.appendleft(news)

    def forget_group_news(self) -> None:
        """Drop all group news: the member has left."""
        self._group_news.clear()

    def _read_news(self) -> None:
        """Handle the control thread's news of partitions."""
        self._waits.check_runs()
        while self._news:
            match self._news[0]:
                case PartitionFailed(partition, seeks, error, is_final):
                    self._untold_failures.pop(partition, None)
                    self.buffer.fail_partition(partition, seeks, error, is_final=is_final)
                case PartitionFound(partition, seeks):
                    self.buffer.clear_failure(partition, seeks)
                case Reposition(partition, seeks, offset, epoch):
                    read = self.buffer.buffered_partition(partition)
                    if read is not None and read.seeks == seeks:
                        self._go_back(partition, offset, epoch)
                case Recreated(partition, seeks):
                    self._begin_again(partition, seeks)
                case BrokerFailed() as failed:
                    self._broker_failed = failed
                case Positioned(partition, generation, offset, epoch):
                    self.buffer.positioned(partition, generation, Position(offset, epoch))
            del self._news[0]  # last, so that a Ctrl-C in here does not lose the news

    def _begin_again(self, partition: TopicPartition, seeks: int) -> None:
        """Forget records of a deleted topic, and read the recreated topic from its beginning.

        A range has no beginning in the new topic: its offsets were those of the old one.
        """
        read = self.buffer.buffered_partition(partition)
        if read is not None and read.seeks == seeks and partition in self.ends:
            # Not final: PartitionFound, of a topic that was denied for long, must not undo it.
            self.buffer.fail_partition(
                partition, seeks, _range_is_gone(partition, self.ends[partition])
            )
        elif read is not None and read.seeks == seeks:
            moved = self.buffer.begin_again(partition)
            if (forget := self._forget()) is not None:
                forget({partition})
            self._call(lambda now: self._control.begin_again(partition, moved, now))

    def _go_back(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """Drop fetched records from an offset on. Records before this offset are read again."""
        at = self.buffer.position(partition)
        if at is not None and at.offset < offset:
            offset, epoch = at.offset, at.leader_epoch
        self.seek(partition, offset, epoch)


def _range_is_gone(partition: TopicPartition, end: int) -> PositionError:
    """Return the error of a range whose topic was created again before it was read."""
    return PositionError(
        f"topic {partition.topic!r} was deleted and created again while a range of it was read: "
        f"the rest of {partition} up to offset {end} is gone; begin a new range to read the new "
        "topic",
        topic=partition.topic,
        partition=partition.partition,
    )
