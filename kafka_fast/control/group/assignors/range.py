"""Range: each topic's partitions in a row, cut into as many pieces as there are members.

Topics with the same members are cut the same way. So partition n of one topic goes to the same
member as partition n of another (co-partitioning). If racks are known (KIP-881), a partition goes
to a member in a rack that has a replica, as far as the sizes of the pieces allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_fast.control.group.assignors.interface import (
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)
from kafka_fast.types import TopicPartition


class RangeAssignor:
    """Kafka's `range`."""

    name = "range"
    is_cooperative = False

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id."""
        found: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        for topic in sorted(topics):
            takers = sorted((it for it in members if topic in it.topics), key=member_order)
            for member_id, numbers in _cut(topics[topic], takers).items():
                found[member_id] += [TopicPartition(topic, number) for number in numbers]
        return found

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return None: only the topics count."""
        return None

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Remember nothing."""


def member_order(member: GroupMember) -> tuple[bool, str]:
    """Order members: static ones first, by instance id, so that a restart changes nothing."""
    return (member.instance_id is None, member.instance_id or member.member_id)


def _cut(
    partitions: Sequence[PartitionReplicas], takers: Sequence[GroupMember]
) -> dict[str, list[int]]:
    """Return the numbers of one topic's partitions by member."""
    if not takers:
        return {}
    each, extra = divmod(len(partitions), len(takers))
    room = {taker.member_id: each + (i < extra) for i, taker in enumerate(takers)}
    given: dict[str, list[int]] = {taker.member_id: [] for taker in takers}
    left = list(partitions)
    if _racks_matter(partitions, takers):
        for partition in partitions:
            near = next(
                (
                    taker.member_id
                    for taker in takers
                    if taker.rack_id in partition.racks and room[taker.member_id] > 0
                ),
                None,
            )
            if near is not None:
                given[near].append(partition.partition)
                room[near] -= 1
                left.remove(partition)
    for taker in takers:
        count = room[taker.member_id]
        given[taker.member_id] += [partition.partition for partition in left[:count]]
        left = left[count:]
    return {member_id: sorted(numbers) for member_id, numbers in given.items()}


def _racks_matter(partitions: Sequence[PartitionReplicas], takers: Sequence[GroupMember]) -> bool:
    """Whether racks matter: some partition has no replica in the rack of some taker."""
    racks = {taker.rack_id for taker in takers if taker.rack_id}
    return bool(racks) and any(not racks <= partition.racks for partition in partitions)
