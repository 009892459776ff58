"""Groups by the consumer protocol (KIP-848), on the embedded broker in virtual time."""

from __future__ import annotations

from kafka_fast.control.group.consumer_protocol.consumer_protocol_member import (
    ConsumerProtocolMember,
)
from tests.unit.control.group.world import Member, World

HEARTBEAT = 68
SESSION = 45.0


def make(partitions: int = 4, **given: object) -> World:
    world = World(**{"group_protocol": "consumer", **given})  # type: ignore[arg-type]
    world.cluster.create_topic("t", partitions)
    return world


def inner(member: Member) -> ConsumerProtocolMember:
    """Return the shipped member behind one of the world's."""
    assert member.control.group is not None
    protocol_member = member.control.group.member
    assert isinstance(protocol_member, ConsumerProtocolMember)
    return protocol_member


def two_members(world: World, **given: object) -> tuple[Member, Member]:
    """Return two members that share topic t."""
    one, two = world.join("a", ["t"], **given), world.join("b", ["t"], **given)
    world.run_until(lambda: world.stable("t") and bool(one.owned) and bool(two.owned))
    return one, two
