"""The checker of groups is checked: bugs planted into the shipped code must be found within seeds.

Each of them is a mistake that a client for Kafka groups has been known to make.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import aio
from kafka_fast.consumer.group.membership import Membership
from kafka_fast.consumer.reading.fetch_buffer import FetchBuffer
from kafka_fast.consumer.reading.reading_side import ReadingSide
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.consumer.reading.user_cursor import UserCursor
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.consumer.consumer_messages import StartStream
from kafka_fast.control.consumer.diagnosis import Diagnosis
from kafka_fast.control.consumer.fetch_routes import FetchRoutes
from kafka_fast.control.consumer.partition import Position
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.consumer.restarts import Restarts
from kafka_fast.control.group.classic import classic_member as classic
from kafka_fast.control.group.classic.classic_member import ClassicMember
from kafka_fast.control.group.classic.ownership import Ownership
from kafka_fast.control.group.commits import Commit
from kafka_fast.control.group.consumer_protocol.reconciliation import Reconciliation
from kafka_fast.control.group.heartbeats import Heartbeats
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.net.waiting.steps import Steps, YieldToLoop
from kafka_fast.types import OffsetAndMetadata
from tests.sim.worlds.groups.group_checker import Wrong
from tests.sim.worlds.groups.group_plan import GroupPlan, make_group_plan
from tests.sim.worlds.groups.group_world import GroupWorld
from tests.sim.worlds.host import VirtualHost
from tests.sim.worlds.virtual_consumer import VirtualConsumer

pytestmark = [
    pytest.mark.slow,  # many worlds each; what is on trial here is the checker
    pytest.mark.timeout(600),  # half a minute of CPU, beside five others that want it too
]

WORLDS = 200


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def show(*kinds: Wrong, among: Callable[[GroupPlan], bool] = lambda plan: True) -> None:
    """Run worlds until one has a fault of these kinds."""
    plans = filter(among, (make_group_plan(seed) for seed in itertools.count()))
    for plan in itertools.islice(plans, WORLDS):
        if any(fault.kind in kinds for fault in GroupWorld(plan).run().faults):
            return
    raise AssertionError(f"{WORLDS} worlds have not shown it")


def speaks_consumer_protocol(plan: GroupPlan) -> bool:
    return plan.config.get("group.protocol") == "consumer"


def test_committing_what_a_poll_is_about_to_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    take = VirtualConsumer._take

    def commit_after(self: Any, handover: RecordHandover, *how: Any) -> None:
        take(self, handover, *how)
        handover.settle()  # what nobody has got yet is in no commit
        self._membership.commit_in_background()

    monkeypatch.setattr(VirtualConsumer, "_take", commit_after)
    show(Wrong.COMMIT_AHEAD)


def test_keeping_partitions_over_an_eager_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(self: Any) -> None:
        self._state = classic.ClassicMemberState.PREPARING

    monkeypatch.setattr(ClassicMember, "_prepare", keep)
    show(Wrong.DOUBLE_OWNER)


def test_calling_partitions_free_that_the_user_still_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mistake by the newer protocol, where each heartbeat says what a member has."""
    step = Reconciliation.step

    def step_and_forget(self: Any, epoch: int) -> Any:
        steps = step(self, epoch)
        if self._target is not None:
            self._owned &= self._target
        return steps

    monkeypatch.setattr(Reconciliation, "step", step_and_forget)
    show(Wrong.DOUBLE_OWNER, among=speaks_consumer_protocol)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_reading_on_what_was_revoked(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    assign = ReadingSide.assign

    def assign_more(self: Any, partitions: Any, **how: Any) -> None:
        assign(self, dict.fromkeys([*self.buffer.partitions, *partitions]), **how)

    monkeypatch.setattr(ReadingSide, "assign", assign_more)
    is_newer = protocol == "consumer"
    show(Wrong.NOT_OWNED, among=lambda plan: speaks_consumer_protocol(plan) == is_newer)


@pytest.mark.parametrize("kind", [Wrong.SKIPPED, Wrong.UNREAD])
def test_losing_an_answer_to_fetch_on_the_way(monkeypatch: pytest.MonkeyPatch, kind: Wrong) -> None:
    feed, numbers = FetchBuffer._feed, itertools.count(1)

    def feed_most(self: Any, chunk: Any) -> None:
        stream = self._by_id.get(chunk.stream_id)
        if stream is None or stream.fed < 0 or next(numbers) % 10:
            feed(self, chunk)

    monkeypatch.setattr(FetchBuffer, "_feed", feed_most)
    show(kind)


def test_taking_a_refused_commit_for_a_confirmed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Commit.read

    def believe(self: Any, answer: Any, *rest: Any) -> Any:
        for part in itertools.chain(*(topic.partitions for topic in answer.topics)):
            part.error_code = 0
        return read(self, answer, *rest)

    monkeypatch.setattr(Commit, "read", believe)
    show(Wrong.COMMIT_LOST)


def test_handing_over_what_was_fetched_before_a_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_fast.consumer.reading.fetch_buffer.seeks_of", lambda generation: 0)
    monkeypatch.setattr(FetchBuffer, "move", lambda self, partition, offset: 0)
    show(Wrong.FALSE_START, Wrong.REPEATED, Wrong.STUCK)


def test_beginning_where_the_log_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    set_committed = Positions.set_committed
    monkeypatch.setattr(
        Positions,
        "set_committed",
        lambda self, assigned, committed, now: set_committed(self, assigned, None, now),
    )
    show(Wrong.FALSE_START)


def commits_by_itself(plan: GroupPlan) -> bool:
    return any(user.commits == "auto" for user in plan.users)


def test_not_committing_when_a_consumer_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Membership, "_commit_before_revocation", lambda self, owned, deadline: ())
    show(Wrong.UNCOMMITTED, among=commits_by_itself)


def test_never_telling_that_a_partition_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassicMember, "handle_revoked", lambda self, partitions, now: None)
    show(Wrong.STUCK)


def resets_to(policy: str) -> Callable[[GroupPlan], bool]:
    """Return what finds the worlds where retention strikes under a policy."""
    return lambda plan: plan.trims > 0 and plan.config["auto.offset.reset"].startswith(policy)


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_going_to_the_end_when_records_were_deleted(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    def jump(self: Any, assigned: Any, now: float, *, out_of_range: int | None = None) -> None:
        self.look_up(assigned, "latest", now)

    monkeypatch.setattr(Positions, "apply_policy", jump)
    show(Wrong.SKIPPED, Wrong.FALSE_START, Wrong.UNREAD, among=resets_to(policy))


@pytest.mark.parametrize("policy", ["latest", "by_duration"])
def test_going_on_behind_where_a_reset_says(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    handle = Positions._handle_offset

    def overshoot(self: Any, partition: Any, timestamp: int, answer: Any, now: float) -> None:
        offset = answer.offset + 1 if answer.offset >= 0 else answer.offset
        handle(self, partition, timestamp, answer._replace(offset=offset), now)

    monkeypatch.setattr(Positions, "_handle_offset", overshoot)
    show(Wrong.SKIPPED, Wrong.FALSE_START, among=resets_to(policy))


def test_never_seeing_a_topic_that_appears(monkeypatch: pytest.MonkeyPatch) -> None:
    refresh = SubscribedTopics.refresh

    def refresh_once(self: Any, now: float) -> bool:
        return self._matched is None and refresh(self, now)

    monkeypatch.setattr(SubscribedTopics, "refresh", refresh_once)
    show(Wrong.STUCK, among=lambda plan: plan.pattern is not None and not plan.broker_side)


def test_staying_a_member_that_overstays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who works for longer than max.poll.interval.ms goes on with what others may have by then."""
    monkeypatch.setattr(Ownership, "lose", lambda self, reason: None)
    show(Wrong.OUSTED, among=lambda plan: any(user.slow for user in plan.users))


def test_committing_what_was_read_of_a_topic_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_again = ConsumerControl.begin_again

    def commit_first(self: Any, partition: Any, seeks: int, now: float) -> None:
        offsets = {partition: OffsetAndMetadata(50)}
        self.group.commits.commit(offsets, lambda error: None, deadline=now + 9.0)
        begin_again(self, partition, seeks, now)

    monkeypatch.setattr(ConsumerControl, "begin_again", commit_first)
    show(Wrong.COMMIT_AHEAD, among=lambda plan: plan.recreations > 0)


def test_going_on_in_a_topic_that_was_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_on(self: Any, assigned: Any, now: float) -> None:
        self.move(assigned, assigned.position or Position(1), now)

    monkeypatch.setattr(Positions, "begin_again", go_on)
    show(Wrong.SKIPPED, Wrong.FALSE_START, among=lambda plan: plan.recreations > 0)


def test_saying_that_what_has_stopped_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Restarts, "handle_stopped", lambda self, row, now: None)
    show(Wrong.MISJUDGED)


def test_never_telling_the_data_plane_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    poll, numbers = FetchRoutes.poll_command, itertools.count(1)

    def poll_most(self: Any) -> Any:
        command = poll(self)
        is_lost = isinstance(command, StartStream) and not next(numbers) % 10
        return poll(self) if is_lost else command

    monkeypatch.setattr(FetchRoutes, "poll_command", poll_most)
    show(Wrong.MISJUDGED)


def test_finding_nothing_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Diagnosis, "is_fetched", lambda self, partition, now: True)
    show(Wrong.MISJUDGED)


def test_beating_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Heartbeats.keep_sending

    def beat(self: Any, link: Any, body: Any, expected: Any, *, period: float, **more: Any) -> None:
        keep(self, link, body, expected, period=period / 1000, **more)

    monkeypatch.setattr(Heartbeats, "keep_sending", beat)
    show(Wrong.BUSY)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_heartbeats_that_need_the_gil(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    turn = VirtualHost._turn_data

    def turn_with_gil(self: Any, due: float) -> None:
        if self.clock.now < self._gil_held_until:
            self.clock.at(self._gil_held_until, lambda: turn_with_gil(self, due))
        else:
            turn(self, due)

    monkeypatch.setattr(VirtualHost, "_turn_data", turn_with_gil)
    is_newer = protocol == "consumer"
    show(
        Wrong.EXPELLED,
        among=lambda plan: plan.is_calm and speaks_consumer_protocol(plan) == is_newer,
    )


def test_trusting_that_what_is_assigned_has_a_position(monkeypatch: pytest.MonkeyPatch) -> None:
    lag = FetchBuffer.lag

    def lag_of(self: Any, partition: Any, done: int | None = None) -> int | None:
        return lag(self, partition, done or self.position(partition).offset)

    monkeypatch.setattr(FetchBuffer, "lag", lag_of)

    def may_show(plan: GroupPlan) -> bool:
        return plan.recreations > 0 and any(user.habits["ask"] for user in plan.users)

    show(Wrong.CRASHED, among=may_show)


def cancels(plan: GroupPlan) -> bool:
    return any(user.cancels for user in plan.users)


def yield_to_loop() -> Steps[None]:
    yield YieldToLoop()


def test_a_cancelled_poll_that_loses_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped poll waits for nothing once it has records; this one may be cancelled there."""

    async def poll(self: Any, timeout: float = 1.0, max_records: int | None = None) -> Any:
        handover = RecordHandover()
        await self._take(handover, timeout, max_records)
        await self._driver.run(yield_to_loop())
        return self._cursor.settle(handover)

    monkeypatch.setattr(aio.Consumer, "poll", poll)
    show(Wrong.SKIPPED, Wrong.UNREAD, among=cancels)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_cancelled_commit_that_never_began(
    monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    """The shipped one begins before it waits: it goes on if it is cancelled, and so it is done."""
    commit = aio.Consumer.commit

    async def yield_and_commit(self: Any, *args: Any, **named: Any) -> None:
        try:
            await self._driver.run(yield_to_loop())
            await commit(self, *args, **named)
        except asyncio.CancelledError:
            if is_told:
                raise

    monkeypatch.setattr(aio.Consumer, "commit", yield_and_commit)
    show(Wrong.COMMIT_LOST, among=lambda plan: cancels(plan) and plan.is_calm)


def test_a_listener_that_does_not_hear_after_a_cancelled_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = Membership._commit_before_revocation

    def commit_and_forget(self: Any, owned: Any, deadline: float) -> Steps[None]:
        try:
            yield from commit(self, owned, deadline)
        except asyncio.CancelledError:
            self._listener = None
            raise

    monkeypatch.setattr(Membership, "_commit_before_revocation", commit_and_forget)
    show(Wrong.UNTOLD, Wrong.DOUBLE_OWNER, among=cancels)


def test_a_close_commits_what_is_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UserCursor, "_first_in_hand", lambda self, **how: {})
    show(Wrong.COMMIT_AHEAD, among=commits_by_itself)
