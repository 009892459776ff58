"""In which order a member hears what its user's thread has done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka_fast.control.group.member import AssignWanted, RevokeWanted
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.control.group.world import World

PARTITION = TopicPartition("t", 0)
REVOKED = RevokeWanted(frozenset({PARTITION}), False, "a test", 0)
LOST = RevokeWanted(frozenset({PARTITION}), True, "a test", 0)
ASSIGNED = AssignWanted(frozenset({PARTITION}), 1, "a test", 0)


def with_a_commit_in_flight() -> tuple[World, Any, list[str]]:
    """Return a world, a group whose coordinator stands still, and what its member hears."""
    world = World()
    world.cluster.create_topic("t", 1)
    group: Any = world.join("m", ["t"]).control.group
    world.run_until(lambda: world.stable("t"))
    world.cluster.pause(1)
    offsets = {PARTITION: OffsetAndMetadata(0)}
    group.commits.commit(offsets, lambda error: None, deadline=world.now + 60)
    heard: list[str] = []
    member = group.member
    group.member = SimpleNamespace(
        handle_revoked=lambda partitions, now: heard.append("revoked"),
        handle_assigned=lambda now: heard.append("assigned"),
        leave=lambda now, done: heard.append("left"),
        is_between_generations=False,
        tick=member.tick,
        next_deadline=member.next_deadline,
        poll_news=member.poll_news,
        identity=member.identity,
        is_paused=False,
    )
    return world, group, heard


def test_what_was_assigned_is_told_after_what_was_given_up_before() -> None:
    """Regression: it was told at once, and a member by KIP-848 never took another step."""
    world, group, heard = with_a_commit_in_flight()
    group.handle_revoked(REVOKED, world.now)
    group.handle_assigned(ASSIGNED, world.now)
    group.handle_revoked(LOST, world.now)
    group.handle_revoked(LOST, world.now)  # once more, after a Ctrl-C
    assert heard == []
    world.cluster.resume(1, world.now)
    world.run(1.0)
    assert heard == ["revoked", "assigned", "revoked"]


def test_after_the_member_has_left_it_hears_nothing_more() -> None:
    """Regression: a classic member counted an answer too many, and never joined again."""
    world, group, heard = with_a_commit_in_flight()
    group.handle_revoked(REVOKED, world.now)
    group.leave(world.now, lambda: None)
    world.cluster.resume(1, world.now)
    world.run(1.0)
    assert heard == ["left"]
    group.handle_assigned(ASSIGNED, world.now)
    assert heard == ["left", "assigned"]
