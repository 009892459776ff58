"""Groups by the classic protocol, on the embedded broker in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafka_fast.consumer import Assignor, GroupMember, GroupTopics
from kafka_fast.control.group.classic.classic_member import ClassicMember, ClassicMemberState
from kafka_fast.control.group.member import RevokeWanted, Subscription
from kafka_fast.errors import CommitFailedError, FencedInstanceId
from kafka_fast.testing.broker.versions import HEARTBEAT, JOIN_GROUP
from kafka_fast.types import TopicPartition
from tests.unit.control.group.world import Member, World


def make(partitions: int = 4, **given: object) -> World:
    world = World(**given)  # type: ignore[arg-type]
    world.cluster.create_topic("t", partitions)
    return world


def test_one_member_gets_everything() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    assert member.kinds() == ["assigned"]
    assert len(member.owned) == 4


def test_a_second_member_takes_its_share() -> None:
    world = make(partition_assignment_strategy="range")
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    two = world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(two.owned))
    assert len(one.owned) == len(two.owned) == 2
    assert one.kinds() == ["assigned", "revoked", "assigned"]
    assert one.history[1][2] == {TopicPartition("t", n) for n in range(4)}  # eager: all of it


def test_cooperative_members_keep_what_stays() -> None:
    world = make(partition_assignment_strategy="cooperative-sticky")
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    two = world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(two.owned))
    assert len(one.owned) == len(two.owned) == 2
    revoked = [partitions for _, kind, partitions in one.history if kind == "revoked"]
    assert [len(partitions) for partitions in revoked] == [2]
    assert one.owned == {TopicPartition("t", n) for n in range(4)} - revoked[0]


class EverythingToTheFirst(Assignor):
    """A user's own assignor: what it does not say is inherited."""

    name = "first"
    is_cooperative = False

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> dict[str, list[TopicPartition]]:
        first = min(members, key=lambda member: member.member_id)
        return {
            first.member_id: [
                TopicPartition(topic, partition.partition)
                for topic in topics
                for partition in topics[topic]
            ]
        }


def test_a_users_own_assignor() -> None:
    world = make(partition_assignment_strategy=[EverythingToTheFirst()])
    one, two = world.join("a", ["t"]), world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and len(one.history) + len(two.history) >= 3)
    assert {len(one.owned), len(two.owned)} == {0, 4}


class BrokenAssignor(EverythingToTheFirst):
    """One whose other methods have mistakes."""

    name = "broken"

    def __init__(self, method: str) -> None:
        self.method = method

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        if self.method == "user_data":
            raise ZeroDivisionError(self.method)
        return None

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        if self.method == "handle_assignment":
            raise ZeroDivisionError(self.method)


@pytest.mark.parametrize("method", ["user_data", "handle_assignment"])
def test_an_assignor_that_fails_ends_the_membership(method: str) -> None:
    """Regression: the exception came up in the control thread, and ended that."""
    world = make(partition_assignment_strategy=[BrokenAssignor(method)])
    member = world.join("a", ["t"])
    world.run_until(lambda: bool(member.errors))
    assert "the assignor 'broken' has failed: ZeroDivisionError" in str(member.errors[0])
    assert isinstance(member.errors[0].__cause__, ZeroDivisionError)
    assert not member.owned


def test_an_assignor_may_take_longer_than_a_session_lasts() -> None:
    """Its member sends heartbeats, and nobody is expelled."""
    world = make(session_timeout_ms=10_000, partition_assignment_strategy="sticky")
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    joins: list[float] = []
    world.cluster.faults.script(JOIN_GROUP, lambda response, node: joins.append(world.now))
    two = world.join("b", ["t"])
    for member in (one, two):
        member.host.assignment_takes = 15.0  # before the join, the assignment, and after it
    took = world.run_until(lambda: world.stable("t") and bool(two.owned), 120.0)
    assert took > 30.0
    assert len(joins) == 3, "a new member gets its id by the first one"
    assert one.kinds() == ["assigned", "revoked", "assigned"]


def test_a_plan_that_nobody_waits_for_is_dropped() -> None:
    world = make(partition_assignment_strategy="range")
    one = world.join("a", ["t"])
    one.host.assignment_takes = 1.0
    world.run_until(lambda: isinstance(one.group.member, ClassicMember) and is_assigning(one))
    one.host.assignment_takes = 0.0
    one.group.member.rejoin("the test wants it", world.now)
    one.group.leave(world.now, lambda: None)
    one.group.member.subscribe(Subscription(frozenset({"t"})), world.now)
    world.run_until(lambda: world.stable("t"))
    assert one.kinds() == ["assigned"]


def is_assigning(member: Member) -> bool:
    waiting = member.group.member.why_waiting()
    return waiting is not None and "its assignor 'range' has yet to return" in waiting.text


def test_more_members_than_partitions_leaves_the_rest_idle() -> None:
    world = make(2, partition_assignment_strategy="range")
    members = [world.join(name, ["t"]) for name in "abc"]

    def all_in() -> bool:
        groups = [member.control.group for member in members]
        return all(
            group is not None and group.member.state is ClassicMemberState.STABLE  # type: ignore[attr-defined]
            for group in groups
        )

    world.run_until(lambda: world.stable("t") and all_in())
    assert sorted(len(member.owned) for member in members) == [0, 1, 1]


def test_a_member_that_leaves_is_replaced_at_once() -> None:
    world = make()
    one, two = world.join("a", ["t"]), world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    world.leave(two)
    assert world.run_until(lambda: world.stable("t")) < 4.0  # a heartbeat tells the other one


MOMENTS = (*range(8, 12), *range(94, 106))
"""Milliseconds after subscribing, about when a coordinator that is known, or is not, is asked."""


def leave_early(others: int, seconds: float) -> tuple[ClassicMemberState, bool]:
    """Leave so soon after subscribing; return how far the member was, and whether it had an id."""
    world = make(session_timeout_ms=40_000)
    for n in range(others):
        world.join(f"other {n}", ["t"])
        world.run_until(lambda: world.stable("t"))
    early = world.join("early", ["t"])
    world.run(seconds)
    assert early.control.group is not None
    member = early.control.group.member
    assert isinstance(member, ClassicMember)
    was = (member.state, bool(member.identity.member_id))
    told: list[bool] = []
    early.control.group.leave(world.now, lambda: told.append(True))
    early.poll_every = early.next_poll = 1e9
    world.run(1.0)
    assert told == [True]
    world.members.remove(early)
    late = world.join("late", ["t"])
    took = world.run_until(lambda: bool(late.owned) and world.stable("t"), 60.0)
    assert took < 10.0, (seconds, was)
    return was


@pytest.mark.parametrize("others", [0, 1])
def test_a_member_that_leaves_while_it_joins_holds_nobody_up(others: int) -> None:
    """Whether it has no id yet, or one that it has not joined by, or waits for the others."""
    left = {leave_early(others, ms / 1000) for ms in MOMENTS}
    assert {(ClassicMemberState.JOINING, False), (ClassicMemberState.JOINING, True)} <= left


def test_a_member_that_was_killed_is_replaced_after_the_session_timeout() -> None:
    world = make(session_timeout_ms=10_000)
    one, two = world.join("a", ["t"]), world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    world.kill(two)
    took = world.run_until(lambda: world.stable("t"))
    assert 5.0 < took < 14.0


def test_heartbeats_keep_a_member_whose_user_is_slow() -> None:
    world = make(session_timeout_ms=10_000)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    member.poll_every = 60.0
    world.run(120.0)
    assert member.kinds() == ["assigned"]


def test_the_first_heartbeat_comes_an_interval_after_the_join() -> None:
    """Regression: at once, it made a member join in a circle whose group always rebalances."""
    world = make(heartbeat_interval_ms=500)
    joins: list[float] = []
    beats: list[float] = []
    world.cluster.faults.script(JOIN_GROUP, lambda response, node: joins.append(world.now))
    world.cluster.faults.script(HEARTBEAT, lambda response, node: beats.append(world.now))
    world.join("a", ["t"])
    world.run_until(lambda: len(beats) == 2)
    assert beats[0] - joins[-1] == pytest.approx(0.5, abs=0.01)
    assert beats[1] - beats[0] == pytest.approx(0.5, abs=0.01)


def test_a_user_that_overstays_loses_its_partitions_and_may_return() -> None:
    world = make(max_poll_interval_ms=20_000, session_timeout_ms=10_000)
    one, two = world.join("a", ["t"]), world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    one.next_poll = world.now + 60.0
    taken_over = world.run_until(lambda: len(two.owned) == 4, 30.0)
    assert taken_over < 25.0
    world.run_until(lambda: world.stable("t") and bool(one.owned), 60.0)
    assert "lost" in one.kinds()


def test_a_pattern_follows_the_topics() -> None:
    world = World(metadata_max_age_ms=5_000)
    world.cluster.create_topic("in-1", 2)
    world.cluster.create_topic("out", 2)
    member = world.join("a", "in-.*")
    world.run_until(lambda: world.stable("in-1"))
    world.cluster.create_topic("in-2", 2)
    world.run_until(lambda: world.stable("in-1", "in-2"), 20.0)
    assert {partition.topic for partition in member.owned} == {"in-1", "in-2"}


def test_static_members_keep_their_partitions_over_a_restart() -> None:
    world = make(partition_assignment_strategy="range")
    one = world.join("a", ["t"], group_instance_id="one")
    two = world.join("b", ["t"], group_instance_id="two")
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    before = two.owned
    events = len(one.history)
    world.leave(two)
    two = world.join("b", ["t"], group_instance_id="two")
    world.run_until(lambda: bool(two.owned))
    assert two.owned == before
    world.run(10.0)
    assert len(one.history) == events  # nobody else noticed


@pytest.mark.parametrize("leads", [True, False])
def test_a_static_member_is_replaced_before_it_has_given_up_what_moves(*, leads: bool) -> None:
    """Regression: what it was to give up was nobody's until the group's next rebalance."""
    world = make(
        partition_assignment_strategy="cooperative-sticky",
        max_poll_interval_ms=20_000,
        session_timeout_ms=10_000,
    )
    if not leads:
        world.cluster.create_topic("u", 1)
        world.join("leader", ["u"])
        world.run_until(lambda: world.stable("u"))
    one = world.join("a", ["t"], group_instance_id="one")
    world.run_until(lambda: len(one.owned) == 4)
    two = world.join("b", ["t"])
    world.run_until(lambda: isinstance(one.wanted, RevokeWanted))
    world.kill(one)
    one = world.join("a", ["t"], group_instance_id="one")
    world.run_until(lambda: bool(one.owned))
    world.run(10.0)
    assert (len(one.owned), len(two.owned)) == (2, 0), "they wait for a member that is gone"
    topics = ("t",) if leads else ("t", "u")
    world.run_until(lambda: world.stable(*topics), 15.0)
    assert (len(one.owned), len(two.owned)) == (2, 2)
    settled = two.control.group.member.identity.generation  # type: ignore[union-attr]
    world.run(100.0)
    assert two.control.group.member.identity.generation == settled  # type: ignore[union-attr]


def test_an_instance_id_that_is_used_twice_fences_the_first() -> None:
    world = make()
    one = world.join("a", ["t"], group_instance_id="same")
    world.run_until(lambda: world.stable("t"))
    two = world.join("b", ["t"], group_instance_id="same")
    world.run_until(lambda: bool(two.owned) and bool(one.errors))
    assert isinstance(one.errors[0], FencedInstanceId)
    assert not one.owned
    world.run(30.0)
    assert len(one.errors) == 1  # it does not fight for the name


def test_commits_are_refused_once_others_own_the_partitions() -> None:
    world = make(max_poll_interval_ms=20_000, session_timeout_ms=10_000)
    one, two = world.join("a", ["t"]), world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    mine = next(iter(one.owned))
    good = world.commit(one, {mine: 5})
    world.run(1.0)
    assert good == [None]
    one.next_poll = world.now + 100.0
    one.core.plane.set_alive_until(world.now)  # stuck: heartbeats end, the group moves on
    world.run_until(lambda: len(two.owned) == 4, 40.0)
    late = world.commit(one, {mine: 6})
    world.run(5.0)
    assert isinstance(late[0], CommitFailedError) or "UNKNOWN_MEMBER" in str(late[0])


def test_commits_keep_their_order_through_a_coordinators_errors() -> None:
    world = make(nodes=3)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    partition = TopicPartition("t", 0)
    world.cluster.faults.error(8, 14, count=3)
    outcomes = [world.commit(member, {partition: at}) for at in (1, 2, 3)]
    world.run(5.0)
    assert outcomes == [[None], [None], [None]]
    assert world.cluster.committed("g") == {("t", 0): 3}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_coordinator_moves(strategy: str) -> None:
    world = make(nodes=3, partition_assignment_strategy=strategy)
    one, two = world.join("a", ["t"]), world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    node = one.control.group.coordinator.node  # type: ignore[union-attr]
    assert node is not None
    world.cluster.kill(node.id)
    world.run(20.0)
    assert world.stable("t"), world.describe()
    assert one.control.group.coordinator.node != node  # type: ignore[union-attr]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(5))
def test_churn(strategy: str, seed: int) -> None:
    """Members come, go and die: no partition ever has two owners, and all find one in the end."""
    world = make(
        6, nodes=3, seed=seed, partition_assignment_strategy=strategy, session_timeout_ms=10_000
    )
    world.join("m0", ["t"])
    for step in range(12):
        what = world.random.random()
        if what < 0.45 and len(world.members) < 6:
            world.join(f"m{step + 1}", ["t"])
        elif what < 0.7 and len(world.members) > 1:
            world.leave(world.random.choice(world.members))
        elif what < 0.85 and len(world.members) > 1:
            world.kill(world.random.choice(world.members))
        world.run(world.random.uniform(0.05, 4.0))
        owned = [partition for member in world.members for partition in member.owned]
        assert len(owned) == len(set(owned)), world.describe()
    world.run_until(lambda: world.stable("t"), 40.0)
