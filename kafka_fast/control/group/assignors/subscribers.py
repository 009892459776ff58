"""Which members want which topics, as bit masks: bit i stands for member i of `ordered`.

A mask answers for hundreds of members at once what a loop would ask each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kafka_fast.control.group.assignors.interface import GroupMember, GroupTopics


def member_order(member: GroupMember) -> tuple[bool, str]:
    """Order members: static ones first, by instance id, so that a restart changes nothing."""
    return (member.instance_id is None, member.instance_id or member.member_id)


def ordered(members: Iterable[GroupMember]) -> list[GroupMember]:
    """Return the members in the order in which they have their turns."""
    return sorted(members, key=member_order)


def subscribers_of(topics: GroupTopics, members: Sequence[GroupMember]) -> dict[str, int]:
    """Return the members that want each topic, as masks; topics that nobody wants are left out.

    Args:
        topics: the topics that exist.
        members: in the order that numbers the bits.
    """
    masks = dict.fromkeys(sorted(topics), 0)
    for number, member in enumerate(members):
        bit = 1 << number
        for topic in member.topics:
            if topic in masks:
                masks[topic] |= bit
    return {topic: mask for topic, mask in masks.items() if mask}


def lowest(mask: int) -> int:
    """Return the number of the first member of a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


def each(mask: int) -> Iterator[int]:
    """Yield the numbers of a mask's members, in their order."""
    while mask:
        bit = mask & -mask
        yield bit.bit_length() - 1
        mask ^= bit
