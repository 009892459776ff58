"""What a consumer's user reads: assignments, moves, records, and the news that concern them.

    the user's ── assign, seek ──► Intake, and ConsumerControl on kf-control
               ◄── records ─────── Intake
               ◄── news ────────── kf-control: positions, errors; what the group wants

Thread: the user's unless said otherwise.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafka_fast.config import ConsumerSettings, OffsetReset
from kafka_fast.consumer.idle import Idle
from kafka_fast.consumer.intake import Intake
from kafka_fast.consumer.record_handover import RecordHandover
from kafka_fast.consumer.waits import Waits
from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.consumer.partition import Position
from kafka_fast.control.consumer.plane import (
    BrokerFailed,
    News,
    PartitionFailed,
    PartitionFound,
    Positioned,
    Recreated,
    Reposition,
)
from kafka_fast.control.group.member import GroupNews
from kafka_fast.dataplane.fetch._reading import PartitionReader
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.errors import fresh_copy
from kafka_fast.logs import LongWait, Waiting, get_logger
from kafka_fast.net.calls import Calls
from kafka_fast.net.host import Host
from kafka_fast.net.steps import Steps, Wait
from kafka_fast.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kafka_fast.consumer")

NO_END = 2**63 - 1

FRESH = 10.0
"""Seconds for which it is news that a node has talked nonsense: who polls later asks anew."""

Forget: TypeAlias = Callable[[Iterable[TopicPartition]], None]
"""Drops what was handed over of these partitions and is not read yet."""


class Reading:
    """The user's side of what one consumer reads."""

    def __init__(
        self,
        settings: ConsumerSettings,
        control: ConsumerControl,
        streams: Streams,
        waits: Waits,
        host: Host,
        call: Calls,
    ) -> None:
        """Begin with nothing assigned.

        Args:
            settings: the consumer's configuration.
            control: hears of assignments and moves.
            streams: of the data plane.
            waits: what ends the wait for records.
            host: knows the time.
            call: reaches the control thread.
        """
        self._settings = settings
        self._control = control
        self._streams = streams
        self._waits = waits
        self._now = host.now
        self._call = call
        # Two deques, for the control thread may append while the user's takes: from each of them
        # one side only appends and the other only takes from the front.
        self._news: deque[News] = deque()
        self._group_news: deque[GroupNews] = deque()
        self._forget: Callable[[], Forget | None] = lambda: None
        self.intake = Intake(streams, self._make_reader, read_committed=settings.is_read_committed)
        self._idle = Idle(control, self.intake, settings)
        self._nonsense: BrokerFailed | None = None  # that a poll has to raise
        self.ends: dict[TopicPartition, int] = {}
        """Where partitions that are assigned from now on end; those not named go on for ever."""

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
        """Have this method called with partitions of recreated topics, too.

        Its object is not kept alive by it: who is behind it is behind the core as well, and threads
        hold the core.
        """
        self._forget = weakref.WeakMethod(forget)

    # What is read

    def assign(self, partitions: Iterable[TopicPartition], *, by_hand: bool = True) -> None:
        """Read these partitions and no others; those that stay go on undisturbed.

        Args:
            partitions: all that are read from now on.
            by_hand: the user has named them, not the group.
        """
        streams = self.intake.assign(partitions)
        committed = self._settings.group_id is not None
        self._call(
            lambda now: self._control.assign(streams, now, committed=committed, by_hand=by_hand)
        )

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Read on from an offset."""
        position = Position(offset, epoch)
        seeks = self.intake.move(partition, position)
        self._call(lambda now: self._control.seek(partition, position, seeks, now))

    def look_up(self, partition: TopicPartition, reset: OffsetReset) -> None:
        """Read on from where the log begins, ends, or was at a Unix time in ms."""
        seeks = self.intake.move(partition, None)
        self._call(lambda now: self._control.look_up(partition, reset, seeks, now))

    # Records

    def try_take(self, most: int, handover: RecordHandover) -> bool:
        """Take records that are here; return whether there were any, or the group wants something.

        Raises:
            KafkaError: see `Intake.take`; or the control thread has failed.
        """
        self.intake.feed()
        self._read_news()
        if self._group_news:  # what is here may be others' by now
            return True
        self._raise_nonsense(urgent=True)
        self.intake.take(most, handover)
        if handover.slices:
            self._idle.end()
            return True
        self._raise_nonsense(urgent=False)
        return False

    def take(self, most: int, handover: RecordHandover, deadline: float) -> Steps[None]:
        """Take records as soon as there are any, or the group wants something; see `try_take`.

        Raises:
            WakeupError: another thread called `wakeup`.
        """
        is_over = self._news_or(self._waits.ends())
        while not self.try_take(most, handover):
            self._waits.check()
            now = self._now()
            self._idle.look(now)
            if deadline <= now:
                return
            yield Wait(is_over, deadline, "records")

    def _news_or(self, is_ended: Callable[[], bool]) -> Callable[[], object]:
        """Return what tells whether there is something to read, or the wait is ended."""
        streams, news, group_news = self._streams, self._news, self._group_news
        return lambda: streams.has_chunks or news or group_news or is_ended()

    def _raise_nonsense(self, *, urgent: bool) -> None:
        """Raise that nothing but nonsense has come for a while, if that is still true."""
        failed = self._nonsense
        if failed is None or failed.is_urgent is not urgent:
            return
        self._nonsense = None
        if self._now() < failed.at + FRESH:
            raise fresh_copy(failed.error)

    def await_position(
        self, partition: TopicPartition, deadline: float
    ) -> Steps[OffsetAndMetadata]:
        """Return where reading goes on, once that is known.

        Raises:
            KafkaError: there is no position, or none by the deadline.
        """
        began = self._now()
        long = LongWait(logger)
        ends = self._waits.ends()
        what = f"position of {partition}"
        while True:
            self.intake.feed()
            self._read_news()
            at = self.intake.position(partition)
            if at is not None:
                return at
            error = self.intake.take_error(partition)
            if error is not None:
                raise error
            self._waits.check()
            now = self._now()
            if now >= deadline:
                limit = self._waits.limit(began, deadline)
                why = self._control.silence_of(partition, now)
                raise self._waits.late(f"no {what} {limit}", began, why)
            long.look(now, lambda at: self._describe(partition, began, deadline, at))
            # What the group wants is no news here: it is not done before the next poll.
            yield Wait(
                lambda: self._streams.has_chunks or self._news or ends(),
                min(deadline, long.deadline),
                what,
            )

    def _describe(
        self, partition: TopicPartition, began: float, deadline: float, now: float
    ) -> Waiting:
        why = self._control.silence_of(partition, now)
        return self._waits.describe(f"position of {partition}", began, deadline, now, why)

    # News

    def put_news(self, news: News) -> None:
        """Tell the user of positions at the next look. Control thread."""
        self._news.append(news)

    def put_group_news(self, news: GroupNews) -> None:
        """Tell the user what the group wants, at the next poll. Control thread."""
        self._group_news.append(news)

    @property
    def has_group_news(self) -> bool:
        """Whether the group wants something of the user's thread."""
        return bool(self._group_news)

    def first_group_news(self) -> GroupNews | None:
        """Return what the group wants first; None if there is nothing."""
        self._read_news()
        return self._group_news[0] if self._group_news else None

    def drop_group_news(self) -> None:
        """The first thing that the group wants is being done."""
        self._group_news.popleft()

    def return_group_news(self, news: GroupNews) -> None:
        """It may not have been done: it is the first one again."""
        if not self._group_news or self._group_news[0] is not news:
            self._group_news.appendleft(news)

    def forget_group_news(self) -> None:
        """The member is out of its group: what the group wanted of it is void."""
        self._group_news.clear()

    def _read_news(self) -> None:
        """Take what the control thread has to say of positions."""
        self._waits.check_runs()
        while self._news:
            match self._news[0]:
                case PartitionFailed(partition, seeks, error, is_final):
                    self.intake.fail(partition, seeks, error, is_final=is_final)
                case PartitionFound(partition, seeks):
                    self.intake.heal(partition, seeks)
                case Reposition(partition, seeks, offset, epoch):
                    stream = self.intake.stream(partition)
                    if stream is not None and stream.seeks == seeks:
                        self._go_back(partition, offset, epoch)
                case Recreated(partition, seeks):
                    self._begin_again(partition, seeks)
                case BrokerFailed() as failed:
                    self._nonsense = failed
                case Positioned(partition, generation, offset, epoch):
                    self.intake.positioned(partition, generation, Position(offset, epoch))
            del self._news[0]  # not before: a Ctrl-C in here must not lose it

    def _begin_again(self, partition: TopicPartition, seeks: int) -> None:
        """Forget what was read of a topic that was deleted, and read the recreated one."""
        stream = self.intake.stream(partition)
        if stream is not None and stream.seeks == seeks:
            moved = self.intake.move(partition, None)
            if (forget := self._forget()) is not None:
                forget({partition})
            self._call(lambda now: self._control.begin_again(partition, moved, now))

    def _go_back(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """Drop what was fetched from an offset on; what was fetched before it is still to come."""
        at = self.intake.position(partition)
        if at is not None and at.offset < offset:
            offset, epoch = at.offset, at.leader_epoch
        self.seek(partition, offset, epoch)
