"""Users of an admin client: tasks that create, describe and delete topics, each its own.

    play ─► call, call, … ── all is healed ──► settle: what is known, the brokers have

Names of topics begin with their user's. Everybody reads everybody's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from kafka_fast.admin import AdminResult, NewTopic
from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.topics import CreateTopics
from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition
from tests.sim.worlds.admins.admin_checker import AdminChecker
from tests.sim.worlds.admins.admin_plan import NO_SUCH_NAME, AdminPlan
from tests.sim.worlds.admins.admin_records import (
    AdminKind,
    CallRecord,
    Findings,
    Key,
    Kind,
)
from tests.sim.worlds.admins.admin_watch import AdminWatch, VirtualAdmin
from tests.sim.worlds.admins.topic_history import FIRST_MARK, MARK, RECORDS
from tests.sim.worlds.plan import TopicPlan
from tests.sim.worlds.virtual_loop import LATEST_CANCEL, VirtualLoop

SETTLED_TIMEOUT = 30.0
"""Seconds for a call when all is healed: much more than it takes."""


class CreateOnce(CreateTopics):
    """Creates topics, and never asks twice: for users who must know what they have done."""

    is_repeatable = False


class AdminUsers:
    """All users of one world."""

    def __init__(
        self,
        plan: AdminPlan,
        loop: VirtualLoop,
        admin: VirtualAdmin,
        watch: AdminWatch,
        checker: AdminChecker,
        findings: Findings,
    ) -> None:
        """Make users who do nothing before `start`.

        Args:
            plan: of the world.
            loop: runs their tasks.
            admin: the client that they share.
            watch: looks over its shoulder.
            checker: judges their calls.
            findings: take what is wrong.
        """
        self.settled_at = float("inf")
        """When all is healed, and the client has recovered."""
        self._plan = plan
        self._loop = loop
        self._admin = admin
        self._watch = watch
        self._checker = checker
        self._findings = findings
        self._clock = findings.clock
        self._calls = 0
        self._ids: list[str] = []  # of all topics that were created, as far as users were told
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def unfinished(self) -> int:
        """How many users have not ended."""
        return sum(not task.done() for task in self._tasks)

    def start(self) -> None:
        """Let all of them go."""
        self._tasks = [self._loop.create_task(self._play(n)) for n in range(self._plan.users)]

    def raise_errors(self) -> None:
        """Raise what has ended a user that nobody expected."""
        for task in self._tasks:
            if task.done():
                task.result()

    # ---- a user's life ----

    async def _play(self, number: int) -> None:
        source = random.Random(f"admin/user/{self._plan.seed}/{number}")
        own = [one for one in self._plan.topics if one.name.startswith(f"user-{number}.")]
        pause = 2 * self._plan.duration / self._plan.calls
        for _ in range(self._plan.calls):
            await asyncio.sleep(source.random() * pause)
            if self._clock.now > self.settled_at or self._admin.is_closed:
                break
            await self._call_something(source, own)
        await asyncio.sleep(max(0.0, self.settled_at - self._clock.now))
        if not self._admin.is_closed:
            await self._settle(own, f"user-{number}")

    async def _call_something(self, source: random.Random, own: Sequence[TopicPlan]) -> None:
        timeout = source.choice((None, None, None, 0.02, 0.3, 1.0, 5.0))
        some = source.sample(own, source.randint(1, len(own)))
        match source.choice((*Kind, Kind.CREATE, Kind.CREATE, Kind.DELETE)):
            case Kind.CREATE:
                await self._create(source, some, timeout)
            case Kind.DELETE:
                names = [one.name for one in some]
                if source.random() < 0.1:
                    names.append(f"{own[0].name} {NO_SUCH_NAME}")
                await self._delete(source, names, timeout)
            case Kind.DESCRIBE:
                topics = source.sample(self._plan.topics, min(3, len(self._plan.topics)))
                names = [one.name for one in topics]
                if source.random() < 0.1:
                    names.append(f"{own[0].name} {NO_SUCH_NAME}")
                if self._ids and source.random() < 0.2:
                    ids = source.sample(self._ids, min(2, len(self._ids)))
                    await self._describe(ids, timeout, source, by_id=True)
                else:
                    await self._describe(names, timeout, source)
            case Kind.LIST:
                await self._list(timeout, source)
            case Kind.RECORDS:
                await self._delete_records(source, some, timeout)

    async def _settle(self, own: Sequence[TopicPlan], user: str) -> None:
        """Find everything as it is known, and change it once more."""
        names, clock = [one.name for one in own], self._clock
        await self._describe(names, SETTLED_TIMEOUT)
        self._look_at(names)
        source = random.Random(user)
        await self._create(source, own[:1], SETTLED_TIMEOUT, is_plain=True)
        await self._create(source, own[1:2], SETTLED_TIMEOUT, is_plain=True)
        offsets = {TopicPartition(name, 0): -1 for name in names[:2]}
        await self._cut(offsets, SETTLED_TIMEOUT)
        await self._delete(source, names[1:2], SETTLED_TIMEOUT)
        offsets[TopicPartition(names[0], own[0].partitions)] = 0
        await self._cut(offsets, SETTLED_TIMEOUT)
        await self._list(SETTLED_TIMEOUT)
        self._look_at(names)
        self._findings.log(f"{user} has settled at {clock.now}")

    def _look_at(self, names: Iterable[str]) -> None:
        for name in names:
            if self._checker.contradicts(name):
                self._findings.add(AdminKind.UNTRUE, f"{name}: known to be otherwise at the end")

    # ---- calls ----

    async def _create(
        self,
        source: random.Random,
        topics: Sequence[TopicPlan],
        timeout: float | None,
        *,
        is_plain: bool = False,
    ) -> None:
        mark = str(FIRST_MARK + self._calls + 1)  # the number that the call will have
        planned = [self._new_topic(source, one, mark, is_plain=is_plain) for one in topics]
        new_topics = {one.name: one for one in planned}
        call = self._begin(Kind.CREATE, list(new_topics), timeout)
        call.new_topics = new_topics
        if not is_plain:
            call.validate_only = source.random() < 0.1
            call.retry_on_quota = source.random() < 0.8
            call.is_repeatable = source.random() < 0.8
        await self._run(call, self._created(call, timeout), None if is_plain else source)

    async def _created(self, call: CallRecord, timeout: float | None) -> object:
        topics = list(call.new_topics.values())
        if call.is_repeatable:
            return await self._admin.create_topics(
                topics,
                validate_only=call.validate_only,
                retry_on_quota=call.retry_on_quota,
                timeout=timeout,
            )
        operation = CreateOnce(
            topics, validate_only=call.validate_only, retry_on_quota=call.retry_on_quota
        )
        return await self._admin.run_operation(operation, timeout)

    def _new_topic(
        self, source: random.Random, topic: TopicPlan, mark: str, *, is_plain: bool
    ) -> NewTopic:
        name, configs = topic.name, {MARK: mark}
        partitions, replicas = topic.partitions, topic.replication_factor
        match source.randrange(20):
            case _ if is_plain:
                pass
            case 0:
                name = f"{name} {NO_SUCH_NAME}"
            case 1:
                partitions = 0
            case 2:
                replicas = self._plan.nodes + 1
            case 3:
                configs["no.such.setting"] = "1"
            case 4:
                partitions = replicas = -1
            case _:
                pass
        return NewTopic(name, partitions, replicas, configs=configs)

    async def _delete(
        self, source: random.Random, names: Sequence[str], timeout: float | None
    ) -> None:
        call = self._begin(Kind.DELETE, names, timeout)
        call.retry_on_quota = source.random() < 0.8
        deleted = self._admin.delete_topics(
            names, retry_on_quota=call.retry_on_quota, timeout=timeout
        )
        await self._run(call, deleted, None if call.is_settled else source)

    async def _describe(
        self,
        names: Sequence[str],
        timeout: float | None,
        source: random.Random | None = None,
        *,
        by_id: bool = False,
    ) -> None:
        call = self._begin(Kind.DESCRIBE, names, timeout)
        call.by_id = by_id
        described = self._admin.describe_topics(names, by_id=by_id, timeout=timeout)
        await self._run(call, described, source)

    async def _list(self, timeout: float | None, source: random.Random | None = None) -> None:
        call = self._begin(Kind.LIST, [ONLY], timeout)
        await self._run(call, self._admin.list_topics(timeout=timeout), source)

    async def _delete_records(
        self, source: random.Random, topics: Sequence[TopicPlan], timeout: float | None
    ) -> None:
        offsets = {}
        for topic in topics:
            for partition in range(source.randint(1, topic.partitions + 1)):
                offset = source.choice((-1, 0, 3, RECORDS, RECORDS, RECORDS + 5))
                offsets[TopicPartition(topic.name, partition)] = offset
        await self._cut(offsets, timeout, source)

    async def _cut(
        self,
        offsets: Mapping[TopicPartition, int],
        timeout: float | None,
        source: random.Random | None = None,
    ) -> None:
        call = self._begin(Kind.RECORDS, list(offsets), timeout)
        call.offsets = offsets
        await self._run(call, self._admin.delete_records(offsets, timeout=timeout), source)

    # ---- what all calls have ----

    def _begin(self, kind: Kind, keys: Sequence[Key], timeout: float | None) -> CallRecord:
        self._calls += 1
        now = self._clock.now
        deadline = self._admin.deadline(timeout)
        call = CallRecord(self._calls, kind, keys, now, deadline)
        call.is_settled = now >= self.settled_at
        self._checker.note_beginning(call)
        self._findings.log(f"{call} begins: {list(map(str, keys))} until {deadline:.3f}")
        return call

    async def _run(
        self, call: CallRecord, coroutine: Coroutine[Any, Any, object], source: random.Random | None
    ) -> None:
        """Run a call in a task of its own, and have it judged.

        Args:
            call: what is written down of it.
            coroutine: the call.
            source: decides whether it is cancelled; None: it is not.
        """
        task = self._loop.create_task(coroutine, name=str(call.number))
        self._watch.calls[task.get_name()] = call
        if source is not None and source.random() < self._plan.cancels:
            after = source.random() ** 3 * source.choice((1.0, 10.0)) * LATEST_CANCEL
            self._clock.after(after, lambda: self._cancel(call, task))
        outcome: object
        try:
            outcome = await task
        except KafkaError as error:
            outcome = error
        except asyncio.CancelledError as error:
            if not call.is_cancelled:
                raise
            outcome = error
        del self._watch.calls[task.get_name()]
        if call.kind is Kind.CREATE and isinstance(outcome, AdminResult):
            self._ids += [one.topic_id for one in outcome.succeeded.values() if one.topic_id]
        self._checker.judge(call, outcome)

    def _cancel(self, call: CallRecord, task: asyncio.Task[object]) -> None:
        if not task.done():
            call.is_cancelled = True
            self._findings.log(f"{call} is cancelled")
            task.cancel()
