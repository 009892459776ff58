"""Members by the consumer protocol (KIP-848), on the embedded broker in virtual time."""

from __future__ import annotations

import pytest

from kafka_fast.control.group.consumer_protocol.consumer_protocol_member import (
    ConsumerProtocolMemberState,
)
from kafka_fast.control.group.member import Subscription
from kafka_fast.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    ProtocolError,
    UnsupportedAssignor,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from tests.unit.control.group.consumer_protocol.groups import inner, make, two_members
from tests.unit.control.group.world import World

HEARTBEAT = 68
SESSION = 45.0


def test_one_member_gets_everything() -> None:
    world = make()
    member = world.join("a", ["t"])
    assert world.run_until(lambda: world.stable("t")) < 1.0
    assert member.kinds() == ["assigned"]
    assert inner(member).identity.generation > 0


def test_a_second_member_takes_its_share_and_the_rest_stays() -> None:
    world = make()
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    two = world.join("b", ["t"])
    world.run_until(lambda: world.stable("t") and bool(two.owned))
    assert len(one.owned) == len(two.owned) == 2
    assert [len(partitions) for _, kind, partitions in one.history if kind == "revoked"] == [2]


def test_a_member_without_partitions_hears_so() -> None:
    world = make(1)
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    two = world.join("b", ["t"])
    world.run_until(lambda: two.kinds() == ["assigned"])
    assert one.kinds() == ["assigned"]


def test_a_member_that_leaves_is_replaced_at_the_next_heartbeat() -> None:
    world = make()
    _, two = two_members(world)
    world.leave(two)
    assert world.run_until(lambda: world.stable("t")) < 6.0


def test_a_member_that_was_killed_is_replaced_after_the_session_timeout() -> None:
    world = make()
    _, two = two_members(world)
    world.kill(two)
    took = world.run_until(lambda: world.stable("t"))
    assert SESSION - 10 < took < SESSION + 6


def test_heartbeats_keep_a_member_whose_user_is_slow() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    member.poll_every = 200.0
    member.next_poll = world.now + 200.0
    world.run(400.0)
    assert member.kinds() == ["assigned"]


def test_nobody_gets_what_a_slow_user_has_not_given_up() -> None:
    """Heartbeats go on, and say that the partitions are still owned."""
    world = make()
    one = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    one.next_poll = world.now + 100.0
    two = world.join("b", ["t"])
    world.run(95.0)
    assert len(one.owned) == 4
    assert not two.owned
    world.run_until(lambda: len(two.owned) == 2)
    assert "lost" not in one.kinds()


def test_a_promise_is_kept_until_it_was_carried_out() -> None:
    """What a user was asked to take is not free, although it has not been taken yet."""
    world = make()
    one, two = two_members(world)
    one.next_poll = world.now + 30.0
    world.leave(two)
    world.run(12.0)  # the news waits for the user of `one`
    three = world.join("c", ["t"])
    world.run(12.0)
    assert not three.owned
    world.run_until(lambda: world.stable("t") and bool(three.owned), 30.0)
    assert not one.owned & three.owned


def test_a_user_that_overstays_loses_its_partitions_and_may_return() -> None:
    world = make(max_poll_interval_ms=20_000)
    one, two = two_members(world)
    one.next_poll = world.now + 60.0
    assert world.run_until(lambda: len(two.owned) == 4, 40.0) < 30.0
    world.run_until(lambda: world.stable("t") and bool(one.owned), 60.0)
    assert "lost" in one.kinds()


@pytest.mark.parametrize("code", [110, 25])
def test_a_fenced_member_gives_up_and_joins_again(code: int) -> None:
    world = make()
    one, two = two_members(world)
    before = inner(one).identity
    world.cluster.faults.error(HEARTBEAT, code, count=1)
    world.run_until(lambda: "lost" in one.kinds() + two.kinds(), 10.0)
    fenced = one if "lost" in one.kinds() else two
    world.run_until(
        lambda: world.stable("t") and inner(fenced).state is ConsumerProtocolMemberState.MEMBER
    )
    assert fenced.kinds()[-2:] == ["lost", "assigned"]
    if fenced is one:
        assert inner(one).identity.number == before.number + 1


@pytest.mark.parametrize("code", [14, 15, 16])
def test_the_coordinators_errors_pass(code: int) -> None:
    world = make(nodes=3)
    one, two = two_members(world)
    events = len(one.history) + len(two.history)
    world.cluster.faults.error(HEARTBEAT, code, count=6)
    world.run(60.0)
    assert world.stable("t")
    assert len(one.history) + len(two.history) == events


def test_static_members_keep_their_partitions_over_a_restart() -> None:
    world = make()
    one = world.join("a", ["t"], group_instance_id="one")
    two = world.join("b", ["t"], group_instance_id="two")
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    before, events = two.owned, len(one.history)
    world.leave(two)
    world.run(10.0)
    two = world.join("b", ["t"], group_instance_id="two")
    world.run_until(lambda: bool(two.owned))
    assert two.owned == before
    world.run(60.0)
    assert len(one.history) == events  # nobody else noticed


def test_a_static_member_that_was_killed_waits_for_its_session_and_returns() -> None:
    world = make()
    one = world.join("a", ["t"], group_instance_id="same")
    world.run_until(lambda: world.stable("t"))
    world.kill(one)
    two = world.join("b", ["t"], group_instance_id="same")
    took = world.run_until(lambda: world.stable("t"), 60.0)
    assert SESSION - 10 < took < SESSION + 6
    assert not two.errors


def test_a_static_member_whose_join_got_lost_frees_itself() -> None:
    """The answer is lost: the coordinator has a member of our instance id, which is ourselves."""
    world = make()
    world.cluster.faults.drop(api=HEARTBEAT, applied=True, close=True, count=1)
    member = world.join("a", ["t"], group_instance_id="one")
    assert world.run_until(lambda: world.stable("t")) < 5.0
    assert not member.errors


def test_a_fenced_static_member_comes_back() -> None:
    world = make()
    member = world.join("a", ["t"], group_instance_id="one")
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.error(HEARTBEAT, 110, count=1)
    world.run_until(lambda: "lost" in member.kinds(), 10.0)
    world.run_until(lambda: world.stable("t"), 5.0)


def test_an_instance_id_that_was_taken_over_ends_the_first() -> None:
    world = make()
    one = world.join("a", ["t"], group_instance_id="same")
    world.run_until(lambda: world.stable("t"))
    world.cluster.faults.error(HEARTBEAT, 82, count=1)
    world.run_until(lambda: bool(one.errors), 10.0)
    assert isinstance(one.errors[0], FencedInstanceId)
    assert not one.owned
    world.run(30.0)
    assert len(one.errors) == 1  # it does not fight for the name
    assert inner(one).state is ConsumerProtocolMemberState.OUT


def test_the_coordinator_moves() -> None:
    world = make(nodes=3)
    one, two = two_members(world)
    node = one.control.group.coordinator.node  # type: ignore[union-attr]
    assert node is not None
    events = len(one.history) + len(two.history)
    world.cluster.kill(node.id)
    world.run(20.0)
    assert world.stable("t"), world.describe()
    assert len(one.history) + len(two.history) == events
    assert one.control.group.coordinator.node != node  # type: ignore[union-attr]


def test_a_pattern_that_the_broker_matches() -> None:
    world = World(group_protocol="consumer")
    for topic in ("in-1", "out"):
        world.cluster.create_topic(topic, 2)
    member = world.join("a", [])
    inner(member).subscribe(Subscription(regex="in-.*"), world.now)
    world.run_until(lambda: world.stable("in-1"), 20.0)
    world.cluster.create_topic("in-2", 2)
    world.run_until(lambda: world.stable("in-1", "in-2"), 40.0)
    inner(member).subscribe(Subscription(frozenset({"out"})), world.now)
    world.run_until(lambda: world.stable("out"), 20.0)


def test_a_pattern_that_the_client_matches() -> None:
    world = World(group_protocol="consumer", metadata_max_age_ms=5_000)
    for topic in ("in-1", "out"):
        world.cluster.create_topic(topic, 2)
    member = world.join("a", "in-(?=.).*")  # no RE2
    world.run_until(lambda: world.stable("in-1"))
    world.cluster.create_topic("in-2", 2)
    world.run_until(lambda: world.stable("in-1", "in-2"), 20.0)
    assert not member.errors


def test_a_pattern_that_is_none() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    inner(member).subscribe(Subscription(regex="in-("), world.now)
    world.run_until(lambda: bool(member.errors))
    assert isinstance(member.errors[0], InvalidRegularExpression)
    assert "in-(" in str(member.errors[0])
    world.run_until(lambda: not member.owned)


def test_an_assignor_that_nobody_has() -> None:
    world = make(group_remote_assignor="best")
    member = world.join("a", ["t"])
    world.run_until(lambda: bool(member.errors))
    assert isinstance(member.errors[0], UnsupportedAssignor)
    assert "best" in str(member.errors[0])


@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_remote_assignors(assignor: str) -> None:
    world = make(group_remote_assignor=assignor)
    one, two = two_members(world)
    assert len(one.owned) == len(two.owned) == 2


def test_a_full_group() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.cluster.faults.error(HEARTBEAT, 81, count=1)
    world.run_until(lambda: bool(member.errors))
    assert isinstance(member.errors[0], GroupMaxSizeReached)
    world.run_until(lambda: world.stable("t"))  # the user polls again, and there is room


def test_brokers_that_have_it_switched_off() -> None:
    world = make()
    world.cluster.faults.error(HEARTBEAT, 35, count=1)
    member = world.join("a", ["t"])
    world.run_until(lambda: bool(member.errors))
    assert "group.protocol=classic" in str(member.errors[0])


def test_a_topic_that_was_made_anew_is_read_anew() -> None:
    world = make(2)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.cluster.delete_topic("t")
    world.cluster.create_topic("t", 3)
    world.run_until(lambda: world.stable("t"), 20.0)
    assert member.kinds() == ["assigned", "revoked", "assigned", "assigned"]
    assert [len(partitions) for _, _, partitions in member.history] == [2, 2, 0, 3]


def test_a_subscription_that_changes_is_told_by_the_next_heartbeat() -> None:
    world = make(2)
    world.cluster.create_topic("u", 2)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    inner(member).subscribe(Subscription(frozenset({"u"})), world.now)
    world.run_until(lambda: world.stable("u"), 10.0)
    assert "lost" not in member.kinds()


def test_leaving_and_coming_back() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    left: list[bool] = []
    inner(member).leave(world.now, lambda: left.append(True))
    member.owned = frozenset()
    world.run(1.0)
    assert left == [True]
    assert inner(member).identity.generation == -1
    inner(member).subscribe(Subscription(frozenset({"t"})), world.now)
    world.run_until(lambda: world.stable("t"))


@pytest.mark.parametrize(("epoch", "interval"), [(0, 5000), (-1, 5000), (3, 0), (3, -5)])
def test_answers_that_make_no_sense_end_the_membership(epoch: int, interval: int) -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))

    def script(response: ConsumerGroupHeartbeatResponse, node: int) -> None:
        response.member_epoch, response.heartbeat_interval_ms = epoch, interval
        world.cluster.faults.clear()

    world.cluster.faults.script(HEARTBEAT, script)
    world.run_until(lambda: bool(member.errors), 10.0)
    assert isinstance(member.errors[0], ProtocolError)
    world.run_until(lambda: world.stable("t"), 10.0)


def test_a_topic_that_nobody_knows_yet_comes_later() -> None:
    """The assignment names an id that is in no metadata: what else is assigned is read."""
    world = make(2)
    strange = bytes(range(16))
    added = ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=strange, partitions=[0, 0, 1])
    asked: list[bytes] = []

    def add(response: ConsumerGroupHeartbeatResponse, node: int) -> None:
        if isinstance(response.assignment, Assignment):
            response.assignment.topic_partitions.append(added)

    def name(response: MetadataResponse, node: int) -> None:
        for topic in response.topics:
            if topic.topic_id == strange:
                asked.append(strange)
                if len(asked) > 3:
                    topic.error_code, topic.name = 0, "late"

    world.cluster.faults.script(HEARTBEAT, add)
    world.cluster.faults.script_metadata(name)
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    assert {partition.topic for partition in member.owned} == {"t"}
    world.run_until(lambda: len(member.owned) == 4, 10.0)
    assert {partition.topic for partition in member.owned} == {"t", "late"}
    assert len(asked) == 4


@pytest.mark.parametrize("seed", range(5))
def test_churn(seed: int) -> None:
    """Members come, go and die, users are slow: no partition ever has two owners."""
    world = make(6, nodes=3, seed=seed)
    world.join("m0", ["t"])
    for step in range(14):
        what = world.random.random()
        if what < 0.45 and len(world.members) < 6:
            world.join(f"m{step + 1}", ["t"])
        elif what < 0.65 and len(world.members) > 1:
            world.leave(world.random.choice(world.members))
        elif what < 0.8 and len(world.members) > 1:
            world.kill(world.random.choice(world.members))
        elif what < 0.9:
            slow = world.random.choice(world.members)
            slow.next_poll = world.now + world.random.uniform(1.0, 20.0)
        world.run(world.random.uniform(0.05, 8.0))
        owned = [partition for member in world.members for partition in member.owned]
        assert len(owned) == len(set(owned)), world.describe()
    world.run_until(lambda: world.stable("t"), 120.0)
