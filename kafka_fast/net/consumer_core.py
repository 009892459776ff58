"""The core of a consumer: both planes on the machine, and the user's side of them.

    kf-data      native: fetches, repeats heartbeats, never takes the GIL
    kf-control   Python: carries events and commands, connects, keeps time for the control plane
    the user's   decodes and hands over; runs listeners and callbacks, in `poll` and `close`

Threads hold the core; the core does not know the `Consumer` in front of it, so that one that is
dropped can be noticed and stopped.
"""

from __future__ import annotations

import os
import random
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

from kafka_fast.config import ConsumerSettings, OffsetReset
from kafka_fast.control.consumer.assigned import Position
from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.consumer.lookup import Found
from kafka_fast.control.consumer.plane import (
    ConsumerCommand,
    News,
    PartitionFailed,
    Positioned,
    Recreated,
    Reposition,
)
from kafka_fast.control.group.member import (
    AssignWanted,
    GroupNews,
    MemberFailed,
    RevokeWanted,
    TopicFailed,
)
from kafka_fast.control.plane import TopicSettled
from kafka_fast.dataplane._consumer_records import ConsumerRecords
from kafka_fast.dataplane._plane import EVENT_DUMP, WAIT_SLICE, DataPlane, Environment
from kafka_fast.dataplane._reading import PartitionReader
from kafka_fast.dataplane._streams import Streams
from kafka_fast.errors import KafkaError, KafkaTimeoutError, UsageError, WakeupError, fresh_copy
from kafka_fast.logs import get_logger
from kafka_fast.net import fetch_carrier
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net.control_thread import ControlThread
from kafka_fast.net.dump import LinkDump
from kafka_fast.net.intake import Intake
from kafka_fast.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kafka_fast.consumer")

T = TypeVar("T")

NO_END = 2**63 - 1

TOUCH_INTERVAL = 30.0
"""Seconds between two assurances that the assigned topics' metadata are wanted."""

EXIT_PATIENCE = 1.0
"""Seconds that the end of the interpreter waits for coordinators to hear of it."""

_cores: weakref.WeakSet[ConsumerCore] = weakref.WeakSet()
"""All that live in this process, for the end of the interpreter and for fork."""


class Answer(Generic[T]):
    """What the control thread will have to say to the user's."""

    __slots__ = ("_done", "_result")

    def __init__(self) -> None:
        self._done = threading.Event()
        self._result: T | KafkaError | None = None

    def set(self, result: T | KafkaError) -> None:
        """Say it."""
        self._result = result
        self._done.set()

    @property
    def is_known(self) -> bool:
        """Whether it has been said."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for it, in a slice that looks for signals when it ends."""
        return self._done.wait(seconds)

    def get(self) -> T:
        """Return it, or raise it."""
        if isinstance(self._result, KafkaError):
            raise fresh_copy(self._result)
        result: Any = self._result
        return result  # type: ignore[no-any-return]


class ConsumerCore:
    """Both planes of one consumer and their threads. User's thread unless said otherwise."""

    def __init__(self, settings: ConsumerSettings, client_id: str) -> None:
        """Start the threads; connections are made when they are needed."""
        self.settings = settings
        self.client_id = client_id
        self.control = self._make_control(client_id)
        # Two deques, for the control thread may append while the user's takes: from each of them
        # one side only appends and the other only takes from the front.
        self._news: deque[News] = deque()
        self._anew: set[TopicPartition] = set()
        self._group_news: deque[GroupNews] = deque()
        self._settled = threading.Condition()
        self._topics: dict[str, KafkaError | None] = {}
        self._failure: UsageError | None = None
        self._wakeups = 0
        self._touch_at = 0.0
        self.ends: dict[TopicPartition, int] = {}
        """Where partitions that are assigned from now on end; those not named go on for ever."""
        self.closed = False
        self._pid = os.getpid()
        with ExitStack() as undo:  # a process that is out of threads or files is no worse after it
            self._start(undo)
            undo.pop_all()
        self.intake = Intake(
            self.streams, self._make_reader, read_committed=settings.is_read_committed
        )
        _cores.add(self)

    # ---- the machine: a simulation has another one ----

    def now(self) -> float:
        """Return monotonic seconds. Any thread."""
        return time.monotonic()

    def _make_control(self, client_id: str) -> ConsumerControl:
        return ConsumerControl(
            self.settings,
            client_id,
            random.SystemRandom().random,
            lambda: int(time.time() * 1000),
        )

    def _start(self, undo: ExitStack) -> None:
        """Make the planes and start their threads; `undo` learns how to take back each step."""
        settings = self.settings
        self._machine = Machine()
        undo.callback(self._machine.close)
        self.plane = self._make_plane(self._machine)
        undo.callback(self.plane.shut_down)
        self.streams = self._make_streams(Streams)
        self._dump = LinkDump(self.plane)
        self._pump = Pump(self.plane, self._machine)
        undo.callback(self._pump.stop)
        self._pump.start()
        self._thread = ControlThread(self, self.control.links, self._machine, self._pump, settings)
        undo.callback(self._thread.stop)
        self._thread.start()

    def _make_plane(self, environment: Environment) -> DataPlane:
        settings = self.settings
        return DataPlane(
            environment,
            buffer_memory=0,
            batch_size=0,
            max_request_size=0,
            coalesce_bytes=0,
            max_frame=settings.receive_message_max_bytes,
            linger=0.0,
            delivery_timeout=0.0,
            request_timeout=settings.fetch_timeout,
            max_in_flight=0,
            max_idle=max(settings.connections_max_idle_ms, 0) / 1000,
            idempotent=False,
        )

    def _make_streams(self, kind: type[Streams]) -> Streams:
        settings = self.settings
        return kind(
            self.plane,
            buffer_bytes=settings.fetch_buffer_bytes,
            max_bytes=settings.fetch_max_bytes,
            partition_max_bytes=settings.max_partition_fetch_bytes,
        )

    def _await(self, answer: Answer[T], seconds: float) -> bool:
        """Wait for an answer, not much longer than until signals have to be looked for."""
        return answer.wait(max(0.0, min(WAIT_SLICE, seconds)))

    def _make_reader(self, partition: TopicPartition) -> PartitionReader:
        settings = self.settings
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

    # ---- what is read ----

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others; those that stay go on undisturbed."""
        streams = self.intake.assign(partitions)
        committed = self.settings.group_id is not None
        self.call(lambda now: self.control.assign(streams, now, committed=committed))

    def seek(self, partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Read on from an offset."""
        seeks = self.intake.move(partition, offset)
        position = Position(offset, epoch)
        self.call(lambda now: self.control.seek(partition, position, seeks, now))

    def look_up(self, partition: TopicPartition, reset: OffsetReset) -> None:
        """Read on from where the log begins, ends, or was at a Unix time in ms."""
        seeks = self.intake.move(partition, None)
        self.call(lambda now: self.control.look_up(partition, reset, seeks, now))

    # ---- records ----

    def take(self, most: int, deadline: float) -> ConsumerRecords:
        """Return records as soon as there are any, at the deadline none.

        Raises:
            KafkaError: see `Intake.take`; or the control thread has failed.
            WakeupError: another thread called `wakeup`.
        """
        while True:
            self.intake.feed()
            self._read_news()
            if self.has_group_news:  # what is here may be others' by now
                return ConsumerRecords()
            slices = self.intake.take(most)
            if slices:
                return ConsumerRecords(slices)
            self.check()
            left = deadline - self.now()
            if left <= 0:
                return ConsumerRecords()
            self.streams.wait_chunks(left)

    def _read_news(self) -> None:
        """Take what the control thread has to say of positions."""
        if self._failure is not None:
            raise fresh_copy(self._failure)
        while self._news:
            match self._news.popleft():
                case PartitionFailed(partition, seeks, error, is_final):
                    self.intake.fail(partition, seeks, error, is_final=is_final)
                case Reposition(partition, seeks, offset, epoch):
                    stream = self.intake.stream(partition)
                    if stream is not None and stream.seeks == seeks:
                        self._go_back(partition, offset, epoch)
                case Recreated(partition, seeks):
                    self._begin_again(partition, seeks)
                case Positioned(partition, generation, offset):
                    self.intake.positioned(partition, generation, offset)

    def _begin_again(self, partition: TopicPartition, seeks: int) -> None:
        """Forget what was read of a topic that was deleted, and read the one made anew."""
        stream = self.intake.stream(partition)
        if stream is not None and stream.seeks == seeks:
            moved = self.intake.move(partition, None)
            self._anew.add(partition)
            self.call(lambda now: self.control.begin_again(partition, moved, now))

    def take_anew(self) -> set[TopicPartition]:
        """Return, once, the partitions of topics that were made anew: drop what is left of them."""
        anew, self._anew = self._anew, set()
        return anew

    def _go_back(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """Drop what was fetched from an offset on; what was fetched before it is still to come."""
        at = self.intake.position(partition)
        if at is not None and at.offset < offset:
            offset, epoch = at.offset, at.leader_epoch
        self.seek(partition, offset, epoch)

    @property
    def has_group_news(self) -> bool:
        """Whether the group wants something of the user's thread."""
        return bool(self._group_news)

    def next_group_news(self) -> GroupNews | None:
        """Take what the group wants, in order; None if there is nothing."""
        self._read_news()
        return self._group_news.popleft() if self._group_news else None

    def forget_group_news(self) -> None:
        """The member is out of its group: what the group wanted of it is void."""
        self._group_news.clear()

    # ---- questions to the control thread ----

    def call(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called on the control thread. Any thread."""
        self._thread.call(what)

    def wait(self, answer: Answer[T], deadline: float, what: str, *, may_wake: bool = True) -> T:
        """Wait for an answer of the control thread.

        Args:
            answer: that the control thread will set.
            deadline: when to give up.
            what: is waited for, for the message.
            may_wake: `wakeup` ends this wait; else it ends the next one that it may.

        Raises:
            KafkaTimeoutError: there was none by the deadline.
            WakeupError: another thread called `wakeup`.
        """
        while True:
            left = deadline - self.now()
            if self._await(answer, left):
                return answer.get()
            self.check(may_wake=may_wake)
            if left <= 0:
                raise self._late(f"{what}: no answer in time")

    def _late(self, what: str) -> KafkaTimeoutError:
        """Return what a wait in vain raises: caused by the last trouble with brokers, if any."""
        trouble = self.control.links.troubles.since(self.now() - self.settings.request_timeout)
        error = KafkaTimeoutError(what if trouble is None else f"{what}: {trouble}")
        error.__cause__ = None if trouble is None else fresh_copy(trouble)
        return error

    def offsets(self, wanted: Mapping[TopicPartition, int], deadline: float) -> Found:
        """Return offsets by time, or at the special times."""
        answer: Answer[Found] = Answer()
        self.call(lambda now: self.control.lookup.begin(wanted, answer.set, now))
        try:
            return self.wait(answer, deadline, "looking up offsets")
        finally:
            self.call(lambda now: self.control.lookup.cancel())

    def committed(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets."""
        group = self._group()
        answer: Answer[dict[TopicPartition, OffsetAndMetadata | None]] = Answer()
        wanted = list(partitions)
        cancels: list[Callable[[], None]] = []

        def ask(now: float) -> None:
            for partition in wanted:
                self.control.cluster.want_topic(partition.topic, now)
            cancels.append(group.committed.fetch(wanted, answer.set, now))

        self.call(ask)
        try:
            return self.wait(answer, deadline, "fetching committed offsets")
        finally:
            self.call(lambda now: _call_all(cancels))

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[KafkaError | None], None],
        deadline: float,
        *,
        as_member: bool,
        is_last: bool = False,
    ) -> None:
        """Commit after everything that was committed before; `done` runs on the control thread."""
        self._group()
        self.call(
            lambda now: self.control.commit(
                offsets, done, now, deadline=deadline, as_member=as_member, is_last=is_last
            )
        )

    def _group(self) -> Any:
        if self.control.group is None:
            raise UsageError("this needs a group.id")
        return self.control.group

    def await_topic(self, topic: str, deadline: float) -> int:
        """Return how many partitions a topic has, once that is known.

        Raises:
            KafkaTimeoutError: it is not known by the deadline.
            BrokerError: the topic cannot be used.
        """
        with self._settled:
            self._topics.pop(topic, None)
            self.call(lambda now: self.control.topics.want(topic, now))
            while topic not in self._topics:
                left = deadline - self.now()
                self.check()
                if left <= 0:
                    self.call(lambda now: self.control.topics.give_up(topic))
                    raise self._late(f"no metadata of topic {topic!r} in time")
                self._settled.wait(min(WAIT_SLICE, left))
            error = self._topics[topic]
        if error is not None:
            raise fresh_copy(error)
        return self.control.cluster.partition_count(topic) or 0

    def await_position(self, partition: TopicPartition, deadline: float) -> OffsetAndMetadata:
        """Return where reading goes on, once that is known.

        Raises:
            KafkaError: there is no position, or none by the deadline.
        """
        while True:
            self.intake.feed()
            self._read_news()
            at = self.intake.position(partition)
            if at is not None:
                return at
            error = self.intake.take_error(partition)
            if error is not None:
                raise error
            self.check()
            left = deadline - self.now()
            if left <= 0:
                raise self._late(f"the position of {partition} was not found out in time")
            self.streams.wait_chunks(min(left, WAIT_SLICE))

    def await_all_topics(self, deadline: float, *, keep: bool) -> set[str]:
        """Return the names of all topics but the internal ones, asked for just now.

        Args:
            deadline: when to give up.
            keep: a pattern needs them to stay known.
        """
        cluster = self.control.cluster
        before = cluster.all_topics

        def ask(now: float) -> None:
            cluster.want_all_topics(True)
            cluster.request_refresh("the user asks for all topics")

        self.call(ask)
        try:
            while cluster.all_topics is before:
                self.check()
                left = deadline - self.now()
                if left <= 0:
                    raise self._late("the brokers did not tell their topics in time")
                with self._settled:
                    self._settled.wait(min(WAIT_SLICE, left))
            return {topic.name for topic in cluster.all_topics or () if not topic.is_internal}
        finally:
            if not keep:
                self.call(lambda now: cluster.want_all_topics(False))

    def check_lives(self) -> None:
        """Raise if this core was inherited over a fork."""
        if os.getpid() != self._pid:
            raise UsageError("this consumer belongs to the parent of this process: make a new one")

    def wakeup(self) -> None:
        """End the wait of the user's thread, or its next one. Any thread."""
        self._wakeups += 1
        self.streams.interrupt()

    def check(self, *, may_wake: bool = True) -> None:
        """Raise what there is to tell to a call that has to wait.

        Raises:
            WakeupError: another thread called `wakeup` since the last time.
            KafkaError: this client will never get what it waits for.
        """
        if self._wakeups and may_wake:
            self._wakeups = 0
            raise WakeupError("wakeup() was called")
        if self._failure is not None:
            raise fresh_copy(self._failure)
        if self.control.fatal is not None:
            raise fresh_copy(self.control.fatal)

    def debug_dump(self, timeout: float) -> str:
        """Return what the links did lately, as text for people; what came within `timeout`."""
        lines = self._dump.ask(timeout, lambda: self.closed)
        return "\n".join([self.control.describe(), *lines])

    # ---- the control thread ----

    def turn(self, now: float) -> None:
        """Take events, do what is due, carry out commands. Control thread."""
        for event in self.plane.take_events():
            if event[0] == EVENT_DUMP:
                self._dump.take(event)
            else:
                self.control.handle_event(fetch_carrier.read_event(event), now)
        if now >= self._touch_at:
            self._touch_at = now + TOUCH_INTERVAL
            self.control.positions.touch(now)
        self.control.tick(now)
        while (command := self.control.poll_command()) is not None:
            self._carry_out(command, now)

    def next_deadline(self) -> float:
        """Return when `turn` has something to do. Control thread."""
        return min(self.control.next_deadline(), self._touch_at)

    def handle_crash(self, error: BaseException) -> None:
        """The control thread has failed: say so to whoever waits. Control thread."""
        failure = UsageError(f"the consumer's control thread has failed: {error!r}")
        failure.__cause__ = error
        with self._settled:
            self._failure = failure
            self._settled.notify_all()
        self.streams.interrupt()

    def _carry_out(self, command: ConsumerCommand, now: float) -> None:
        match command:
            case TopicSettled(topic, error):
                with self._settled:
                    self._topics[topic] = error
                    self._settled.notify_all()
            case PartitionFailed() | Positioned() | Reposition() | Recreated():
                self._news.append(command)
                self.streams.interrupt()
            case RevokeWanted() | AssignWanted() | MemberFailed() | TopicFailed():
                self._group_news.append(command)
                self.streams.interrupt()
            case _:
                if not self._thread.carry_out(command, now):
                    fetch_carrier.carry_out(self.plane, self.streams, command)

    # ---- the end ----

    def close(self) -> None:
        """End the threads. Any thread but the control thread."""
        if self.closed:
            return
        self.closed = True
        _cores.discard(self)
        if os.getpid() != self._pid:
            return
        if self._thread.is_current:  # garbage collection runs anywhere
            threading.Thread(target=self._stop, name="kf-close").start()
        else:
            self._stop()

    def begin_to_leave(self) -> Answer[bool] | None:
        """Tell the coordinator that this member is gone; None: it is none. Any thread."""
        group = self.control.group
        if group is None or self.closed or not group.member.identity.member_id:
            return None
        left: Answer[bool] = Answer()
        self.call(lambda now: group.leave(now, lambda: left.set(True)))
        return left

    def _stop(self) -> None:
        self._thread.stop()
        self._pump.stop()
        self.plane.shut_down()
        with self._settled:
            self._settled.notify_all()

    def mark_forked(self) -> None:
        """Called in a forked child: nothing of this runs here, and its locks may be held."""
        self.closed = True
        self.plane.mark_inherited()


def _call_all(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()


def leave_at_exit() -> None:
    """Leave the groups of consumers that nobody has closed, before the interpreter ends.

    So the others need not wait for session.timeout.ms. Nothing is committed: whether the records
    of the last poll are done is not known, and a listener's thread may be gone.
    """
    leaving = [(core, left) for core in list(_cores) if (left := core.begin_to_leave()) is not None]
    deadline = time.monotonic() + EXIT_PATIENCE
    for core, left in leaving:
        left.wait(max(0.0, deadline - time.monotonic()))
        warnings.warn(
            f"the interpreter ends with consumer {core.client_id!r} in its group: what was not "
            "committed will be read again; close() it, or use it in a with block",
            ResourceWarning,
            stacklevel=2,
        )


def _mark_forked() -> None:
    for core in list(_cores):
        core.mark_forked()
    _cores.clear()


os.register_at_fork(after_in_child=_mark_forked)
