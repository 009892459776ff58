"""The users of a group's world: each runs one consumer after the other, as people do.

    born ─► subscribe ─► poll, iterate, work, commit, seek, pause … ─► close, or kill -9 ─► absent
      ▲                                                                                       │
      └───────────────────────────────────────────────────────────────────────────────────────┘

What they are given and what they do goes into the ledger. Once everything is whole again they are
orderly: they poll, commit, and wait until they are told to leave.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_fast.consumer.listener import RebalanceListener
from kafka_fast.errors import KafkaError, PositionError, UsageError
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.sim.worlds.actors import Actor
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.groups.group_checker import Ledger, Mark, Wrong
from tests.sim.worlds.groups.group_plan import CONSUMER_SESSION_MS, GroupPlan, UserPlan
from tests.sim.worlds.groups.task_listener import TaskListener
from tests.sim.worlds.groups.virtual_tasks import CallCancelledError, VirtualTasks
from tests.sim.worlds.virtual_consumer import (
    VirtualConsumer,
    VirtualConsumerHost,
    Waiter,
)

if TYPE_CHECKING:
    from kafka_fast.consumer.client import Consumer

POLL_TIMEOUTS = (0.0, 0.02, 0.1, 0.5)
ORDERLY_TIMEOUT = 0.5
"""Whoever is orderly waits for records, and does not look for them again and again."""
BREATH = 0.005
"""Seconds between two calls, at least."""
HOLD_OF_POLL = 0.6
"""Of max.poll.interval.ms, for how much C code keeps the GIL at most."""
LEAVES_BLOCK = 0.1
"""Of all errors of an asyncio consumer's calls: that they end the user's block."""
WORK_FAILS = 0.005
"""Of all steps without such an error: that the user's work on the records ends the block so."""
CLOSE_GRACE = 1.0
"""Seconds that a close may take beyond its timeout."""


class User(RebalanceListener):
    """One user, and the consumer that is running for them now."""

    def __init__(
        self,
        number: int,
        group: GroupPlan,
        clock: Clock,
        ledger: Ledger,
        make_host: Callable[[random.Random], VirtualConsumerHost],
        is_member: Callable[[VirtualConsumer], bool],
        is_known: Callable[[VirtualConsumer], bool],
        is_behind: Callable[[VirtualConsumer, TopicPartition], bool],
        log: Callable[[str], None],
    ) -> None:
        """Plan the first life.

        Args:
            number: of the user.
            group: the plan of the world.
            clock: of the world.
            ledger: takes all that happens.
            make_host: returns a new host.
            is_member: whether the coordinator counts this consumer among the group's members, and
                it knows that.
            is_known: whether the coordinator does, in whatever generation.
            is_behind: whether this consumer knows only a former topic of that name.
            log: takes what happens, for people.
        """
        self._plan: UserPlan = group.users[number]
        self._group = group
        self._number = number
        self._clock = clock
        self._ledger = ledger
        self._make_host = make_host
        self._is_member = is_member
        self._is_known = is_known
        self._is_behind = is_behind
        self._write = log
        self._source = random.Random(f"user/{group.seed}/{number}")
        self._mind = random.Random(f"mind/{group.seed}/{number}")
        self._grip = random.Random(f"grip/{group.seed}/{number}")
        self._tasks = random.Random(f"tasks/{group.seed}/{number}")
        self._all_topics = [topic.name for topic in group.topics]
        self._lives = 0
        self._is_iterating = False
        self._ends_at = 0.0
        self.consumer: VirtualConsumer | None = None
        self.actor: Actor | None = None
        self.host: VirtualConsumerHost | None = None
        self.is_orderly = False
        self.is_leaving = False
        self._plan_life(self._plan.begins)

    # ---- the world's side ----

    @property
    def is_gone(self) -> bool:
        """Whether no consumer runs."""
        return self.consumer is None

    def calm_down(self) -> None:
        """Be orderly from now on."""
        self.is_orderly = True
        if isinstance(self.consumer, VirtualTasks):
            self.consumer.calm_down()
        self._disturb()

    def leave(self) -> None:
        """Close, and do not come back."""
        self.is_leaving = True
        self._disturb()

    def abandon(self) -> None:
        """End whatever still runs: the world is over.

        The consumer of a user who crashed runs still, as nobody has closed it.
        """
        self.is_leaving = True
        if self.actor is not None:
            self._end_by_force()

    # ---- lives ----

    def _log(self, line: str) -> None:
        self._write(f"{self._name}: {line}")

    @property
    def _name(self) -> str:
        return f"user-{self._number}.{self._lives}"

    def _plan_life(self, seconds: float) -> None:
        self._clock.after(seconds, self._be_born)

    def _be_born(self) -> None:
        if self.is_leaving:
            return
        self._lives += 1
        self._ends_at = self._clock.now + self._plan.life * (0.5 + self._source.random())
        self.host = self._make_host(random.Random(self._source.getrandbits(64)))
        self.actor = Actor(self._name, self._live)
        self._waiter = Waiter(self.host, self.actor)
        life = self._lives
        crashes = self._source.random() < self._plan.crashes
        self._clock.at(self._ends_at, lambda: self._reach_end(life, crashes=crashes))
        self.actor.resume()

    def _reach_end(self, life: int, *, crashes: bool) -> None:
        if life != self._lives or self.is_gone or self.is_orderly:
            return
        if crashes:
            self._log("killed")
            self._end_by_force()
            self._plan_life(self._source.random() * self._plan.absence)
        else:
            self._disturb()

    def _end_by_force(self) -> None:
        consumer, self.consumer = self.consumer, None
        if self.actor is not None:
            self.actor.kill()
        if consumer is not None:
            consumer.abandon()
            self._ledger.end(self._reader)

    def _disturb(self) -> None:
        """End an iteration, which else waits forever."""
        if self._is_iterating and self.consumer is not None:
            self.consumer.wakeup()

    def _live(self) -> None:
        self._is_iterating = False
        self._is_committed = False  # all that was taken, since the user is orderly
        self._topics = self._all_topics
        self._cancelled: list[tuple[object, dict[TopicPartition, int], Mark]] = []  # commits
        self._homeless = set[TopicPartition]()  # without a position, and the user has to say one
        config = {**self._group.config, **self._plan.config, "client.id": self._name}
        if self._plan.instance is not None:
            config["group.instance.id"] = self._plan.instance
        consumer = self.consumer = self._make_consumer(config)
        self._listener: Any = self
        if isinstance(consumer, VirtualTasks):
            self._listener = TaskListener(self, consumer.work)
        self._reader = self._ledger.begin(
            self._name,
            lambda: self._is_member(consumer),
            consumer.is_ousted,
            lambda partition: self._is_behind(consumer, partition),
        )
        self._log("subscribes")
        self._subscribe()
        is_interrupted = False
        while not (self._is_at_its_end or is_interrupted):
            often = WORK_FAILS if self._try(self._step) else LEAVES_BLOCK
            is_interrupted = self._leaves_block(consumer, often)
            self._waiter.sleep(BREATH + self._source.random() * self._work())
            if not self.is_orderly and self._grip.random() < self._group.holds_gil:
                self._hold_gil()
        self._try(partial(self._say_goodbye, is_interrupted=is_interrupted))
        if self._host_is_ours():
            self._ledger.end(self._reader)
            self.consumer = None
            if not self.is_leaving:
                self._plan_life(self._source.random() * self._plan.absence)

    def _leaves_block(self, consumer: object, often: float) -> bool:
        """Whether an error ends the `async with` block of a user of asyncio."""
        may = isinstance(consumer, VirtualTasks) and not self.is_orderly
        return may and self._tasks.random() < often

    def _make_consumer(self, config: dict[str, object]) -> Any:
        """Return a blocking consumer, or one of asyncio's with the same methods."""
        misjudged = partial(self._ledger.note, Wrong.MISJUDGED)
        cancels = self._plan.cancels
        if cancels is None:
            return VirtualConsumer(config, self._waiter, self._log, misjudged)
        return VirtualTasks(
            config,
            self._waiter,
            self._log,
            misjudged,
            cancels=0.0 if self.is_orderly else cancels,
            source=self._tasks,
        )

    def _host_is_ours(self) -> bool:
        return self.actor is not None and not self.actor.is_killed

    @property
    def _is_at_its_end(self) -> bool:
        return self.is_leaving or (self._clock.now >= self._ends_at and not self.is_orderly)

    def _work(self) -> float:
        if self.is_orderly:
            return 0.02
        if self._source.random() < self._plan.slow:
            return 2.5 * float(self._group.config["max.poll.interval.ms"]) / 1000
        return self._plan.work

    def _hold_gil(self) -> None:
        """Call C code that keeps the GIL for two session timeouts, if max.poll.interval.ms allows.

        Whatever the others do meanwhile, this one is a member still. That interval begins with a
        poll; the records of a loop may come from an earlier one.
        """
        if not self._try(lambda: self._poll_once(0.0, None)):
            return
        consumer, config = self._running, self._group.config
        session = float(config.get("session.timeout.ms", CONSUMER_SESSION_MS)) / 1000
        seconds = min(2.1 * session, HOLD_OF_POLL * float(config["max.poll.interval.ms"]) / 1000)
        # While its assignor is at work a member has yet to join, and its thread needs the GIL.
        was_member = self._is_member(consumer) and not self._waiter.host.calls_aside
        self._log(f"holds the GIL for {seconds} s")
        self._waiter.host.hold_gil(seconds)
        self._waiter.sleep(seconds)
        if self._group.is_calm and was_member and not self._is_known(consumer):
            self._ledger.note(Wrong.EXPELLED, self._name)

    def _say_goodbye(self, *, is_interrupted: bool) -> None:
        consumer: Any = self._running
        if self.is_orderly:  # a close does not commit what the last poll has returned
            self._try(self._cover_all if self._plan.commits == "auto" else self._commit_sync)
        self._log("leaves its block" if is_interrupted else "closes")
        began = self._clock.now
        timeout = self._source.choice((None, None, 0.1))
        try:
            if is_interrupted:
                consumer.leave_block()
            else:
                consumer.close(timeout if not self.is_orderly else None)
        finally:
            limit = float(self._group.config["default.api.timeout.ms"]) / 1000 + CLOSE_GRACE
            if self._clock.now - began > limit:
                self._ledger.note(
                    Wrong.STUCK, f"{self._name} closed for {self._clock.now - began} s"
                )
        self._log("closed")
        self._ledger.leave(self._reader)

    # ---- what users do ----

    @property
    def _running(self) -> VirtualConsumer:
        assert self.consumer is not None
        return self.consumer

    def _try(self, what: Callable[[], object]) -> bool:
        """Do something that may fail as calls may; return whether it did not."""
        with self._trying():
            what()
            return True
        return False

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Do something in this block that may fail as calls may."""
        try:
            yield
        except UsageError as error:
            self._ledger.note(Wrong.CRASHED, f"{self._name}: {error!r}")
        except KafkaError as error:
            self._log(f"{type(error).__name__}: {error}")
            if isinstance(error, PositionError):
                self._homeless.add(TopicPartition(error.topic, error.partition))

    def _settle_down(self) -> None:
        """Say where to go on, as auto.offset.reset=none asks of its users: where the log begins."""
        for partition in sorted(self._homeless & self._running.assignment()):
            offset = self._running.beginning_offsets([partition], 0.5)[partition]
            self._log(f"goes on at {offset} in {partition}")
            self._running.seek(partition, offset)
            self._ledger.seek(self._reader, partition, offset)
            self._homeless.discard(partition)

    def _subscribe(self) -> None:
        plan, consumer = self._group, self._running
        if plan.pattern is None:
            consumer.subscribe(self._topics, listener=self._listener)
        else:
            pattern = plan.pattern if plan.broker_side else re.compile(plan.pattern)
            consumer.subscribe(pattern=pattern, listener=self._listener)

    def _step(self) -> None:
        plan, source = self._plan, self._source
        if self._homeless:
            self._settle_down()
        if self.is_orderly:
            self._want(self._all_topics)
            self._resume_all()
            self._poll()
            return
        if self._mind.random() < self._group.changes_mind:
            count = self._mind.randint(1, len(self._all_topics))
            self._want(sorted(self._mind.sample(self._all_topics, count)))
        for habit, often in plan.habits.items():
            if source.random() < often:
                self._log(habit)
                getattr(self, f"_do_{habit}")()
        if self.is_orderly:
            return  # since a habit took its time
        weights = list(plan.ways.values())
        way = source.choices(list(plan.ways), weights)[0] if any(weights) else "poll"
        getattr(self, f"_{way}")()

    def _poll(self) -> None:
        most = self._source.choice((None, None, 3))
        timeout = ORDERLY_TIMEOUT if self.is_orderly else self._source.choice(POLL_TIMEOUTS)
        self._commit(list(self._poll_once(timeout, most)))

    def _poll_once(self, timeout: float, most: int | None) -> ConsumerRecords:
        self._ledger.do(self._reader)
        records = self._running.poll(timeout, most)
        self._take(records)
        return records

    def _cover_all(self) -> None:
        while self._poll_once(0.0, None):
            pass

    def _iterate(self) -> None:
        left = self._source.randrange(1, 8)
        taken = []
        self._ledger.do(self._reader)
        iterator = iter(self._running)
        self._is_iterating = True
        try:
            while left and not self._is_at_its_end:
                left -= 1
                self._ledger.do(self._reader)
                record = next(iterator)
                self._take([record])
                taken.append(record)
        finally:
            self._is_iterating = False
        self._commit(taken)

    def _batches(self) -> None:
        self._is_iterating = True
        self._ledger.do(self._reader)
        try:
            records = next(self._running.batches(self._source.choice((None, 2))))
        finally:
            self._is_iterating = False
        self._take(records)
        self._commit(list(records))

    def _take(self, records: Iterable[ConsumerRecord]) -> None:
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            self._log(f"reads {partition} at {record.offset}")
            self._ledger.hand_over(self._reader, partition, record.offset, record.value)

    # ---- commits ----

    def _commit(self, taken: list[ConsumerRecord]) -> None:
        if self.is_orderly and self._plan.commits != "auto":
            if taken or not self._is_committed:
                self._is_committed = False  # until it has come through
                self._commit_sync()
                self._is_committed = True
            return
        match self._plan.commits:
            case "sync":
                self._commit_sync()
            case "async":
                self._commit_async()
            case "record" if taken:
                self._commit_record(self._source.choice(taken))

    def _commit_sync(self) -> None:
        with self._confirming():
            self._running.commit()

    @contextmanager
    def _confirming(self) -> Iterator[None]:
        """All that is done is committed in this block, if it does not raise."""
        self._ledger.do(self._reader)
        offsets = _plain(self._running.handed_over())
        mark, member = self._ledger.mark(self._reader), self._identity()
        try:
            yield
        except (CallCancelledError, asyncio.CancelledError):
            self._cancelled.append((member, offsets, mark))
            raise
        self._log(f"committed {offsets}")
        self._ledger.confirm(self._reader, offsets, mark)
        self._confirm_cancelled()

    def _confirm_cancelled(self) -> None:
        """A commit has come through, so those that were cancelled before have ended.

        Where nothing breaks, a member's commits are all stored, in their order.
        """
        cancelled, self._cancelled = self._cancelled, []
        for member, offsets, mark in cancelled:
            if self._group.is_calm and member == self._identity():
                self._ledger.confirm(self._reader, offsets, mark)

    def _identity(self) -> object:
        """Return who the consumer is in its group now: with another generation, another one."""
        group = self._running.core.control.group
        return None if group is None else group.member.identity

    def _commit_async(self) -> None:
        self._ledger.do(self._reader)
        mark, reader = self._ledger.mark(self._reader), self._reader

        def done(
            offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None
        ) -> None:
            self._log(f"committed {_plain(offsets)} later: {error}")
            if error is None:
                self._ledger.confirm(reader, _plain(offsets), mark)

        self._running.commit(sync=False, callback=done)

    def _commit_record(self, record: ConsumerRecord) -> None:
        partition = TopicPartition(record.topic, record.partition)
        holds = self._ledger.logs[partition].holds(record.offset, record.value)
        if not holds and not self._is_behind(self._running, partition):
            return  # of a topic that is gone: whoever names it now commits for the new one
        offsets = {partition: record.offset + 1}
        self._ledger.do(self._reader, offsets)
        mark = self._ledger.mark(self._reader)
        self._running.commit(record)
        self._ledger.confirm(self._reader, offsets, mark)

    # ---- habits ----

    def _choose_partition(self) -> TopicPartition | None:
        owned = sorted(self._running.assignment())
        return self._source.choice(owned) if owned else None

    def _do_seek(self) -> None:
        """Go back, for going ahead would leave records out."""
        partition = self._choose_partition()
        if partition is not None:
            position = self._running.position(partition, 0.5)
            offset = self._source.randint(0, position)
            self._log(f"seeks to {offset} in {partition}, from {position}")
            self._running.seek(partition, offset)
            self._ledger.seek(self._reader, partition, offset)

    def _do_pause(self) -> None:
        partition = self._choose_partition()
        if partition is not None:
            paused = self._source.random() < 0.5
            act = self._running.pause if paused else self._running.resume
            act(partition)
            self._ledger.pause(self._reader, partition, paused=paused)

    def _resume_all(self) -> None:
        for partition in sorted(self._running.paused()):
            self._running.resume(partition)
            self._ledger.pause(self._reader, partition, paused=False)

    def _do_ask(self) -> None:
        consumer = self._running
        partition = self._choose_partition()
        if partition is not None:
            consumer.committed([partition], 0.5)
            consumer.end_offsets([partition], 0.5)
            consumer.current_lag(partition)

    def _do_rebalance(self) -> None:
        self._running.enforce_rebalance()

    def _do_resubscribe(self) -> None:
        self._running.unsubscribe()
        self._ledger.leave(self._reader)
        self._waiter.sleep(self._source.random() * self._plan.absence)
        self._subscribe()

    def _want(self, topics: list[str]) -> None:
        """Read these topics from now on; what is not among them is given up in a rebalance."""
        if topics != self._topics:
            self._log(f"wants {topics}")
            self._topics = topics
            self._subscribe()

    # ---- the listener ----

    def on_partitions_assigned(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        """Log the partitions, and assign them to this reader in the ledger."""
        self._log(f"gets {sorted(partitions)}")
        self._ledger.assign(self._reader, sorted(partitions))

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        """Revoke the partitions in the ledger; commit before that, if the plan says so."""
        with self.giving_up(partitions):
            if self.commits_when_revoked:
                self._try(self._commit_sync)

    @property
    def commits_when_revoked(self) -> bool:
        """Whether the listener commits."""
        return self._plan.commits == "listener"

    @contextmanager
    def giving_up(self, partitions: Collection[TopicPartition]) -> Iterator[None]:
        """Partitions are gone at the end of this block."""
        self._log(f"gives up {sorted(partitions)}")
        self._homeless.difference_update(partitions)
        try:
            yield
        finally:
            self._ledger.revoke(self._reader, partitions)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """All that is done is committed in this block, if that does not fail."""
        with self._trying(), self._confirming():
            yield

    def on_partitions_lost(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        """Log the partitions, and revoke them in the ledger without a commit."""
        self._log(f"has lost {sorted(partitions)}")
        self._homeless.difference_update(partitions)
        self._ledger.revoke(self._reader, partitions)


def _plain(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, int]:
    return {partition: at.offset for partition, at in offsets.items()}
