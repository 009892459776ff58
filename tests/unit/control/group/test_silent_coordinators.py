"""A coordinator that dies without a word: nothing waits for it longer than the session lasts."""

from __future__ import annotations

import pytest

from kafka_fast.errors import KafkaConnectionError
from kafka_fast.testing.broker.versions import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from tests.unit.control.group.world import Member, World

SESSION_MS = 12_000


@pytest.fixture(name="world")
def three_nodes() -> World:
    world = World(nodes=3, session_timeout_ms=SESSION_MS, request_timeout_ms=600_000)
    world.cluster.create_topic("t", 4)
    return world


def fall_silent(world: World) -> int:
    """Let the coordinator stand still for good, and another node take its place; return that."""
    old = world.cluster.coordinator("g")
    new = old % 3 + 1
    world.cluster.pause(old)
    world.cluster.move_coordinator("g", new)
    for partition in range(4):
        world.cluster.move_leader("t", partition, new)
    return new


def coordinator_of(member: Member) -> int | None:
    node = member.group.coordinator.node
    return None if node is None else node.id


def test_heartbeats_find_the_next_coordinator_before_the_session_ends(world: World) -> None:
    """Regression: request.timeout.ms passed first, even if it is longer than the session."""
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    new = fall_silent(world)
    beats: list[float] = []
    world.cluster.faults.script(HEARTBEAT, lambda response, node: beats.append(world.now))
    took = world.run_until(lambda: bool(beats))
    assert coordinator_of(member) == new
    assert took < SESSION_MS / 1000
    assert member.kinds() == ["assigned"]


@pytest.mark.parametrize("api", [JOIN_GROUP, SYNC_GROUP], ids=["JoinGroup", "SyncGroup"])
def test_a_join_does_not_wait_for_a_dead_coordinator(world: World, api: int) -> None:
    """Regression: it waited for max.poll.interval.ms + 5 s, 305 s by default."""
    world.cluster.faults.drop(api=api)
    member = world.join("a", ["t"])
    world.run_until(lambda: member.group.member.state.name == "JOINING")
    world.run(2.0)
    world.cluster.faults.clear()
    new = fall_silent(world)
    assert world.run_until(lambda: world.stable("t")) < SESSION_MS / 1000
    assert coordinator_of(member) == new


def test_a_join_goes_on_waiting_for_a_coordinator_that_is_still_the_one(world: World) -> None:
    first = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    first.next_poll = world.now + 100.0  # it is slow to give its partitions up
    second = world.join("b", ["t"])
    world.run(90.0)
    assert second.group.member.state.name == "JOINING"
    assert coordinator_of(second) == world.cluster.coordinator("g")
    world.run_until(lambda: world.stable("t") and bool(second.owned))


def test_a_coordinator_that_lets_nobody_in_is_looked_up_again(world: World) -> None:
    """Regression: socket.connection.setup.timeout.ms passed first."""
    world.given["socket_connection_setup_timeout_ms"] = 600_000
    earlier = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    world.leave(earlier)
    world.cluster.move_coordinator("g", 2)
    world.cluster.pause(2)
    member = world.join("b", ["t"])
    world.run_until(lambda: coordinator_of(member) == 2)
    world.run(5.0)
    new = fall_silent(world)
    assert world.run_until(lambda: world.stable("t")) < 10.0
    assert coordinator_of(member) == new


def test_a_coordinator_that_is_down_for_long_is_looked_up_now_and_then(world: World) -> None:
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    old = world.cluster.coordinator("g")
    world.cluster.pause(old)
    error = KafkaConnectionError("gone")
    before = member.requests
    member.group.coordinator.handle_moved(str(error), world.now)
    world.run(60.0)
    assert member.requests - before < 400
