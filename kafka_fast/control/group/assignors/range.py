"""Range: each topic's partitions in a row, cut into as many pieces as there are members.

Topics with the same members are cut the same way. So partition n of one topic goes to the same
member as partition n of another (co-partitioning). If racks are known (KIP-881), a partition goes
to a member in a rack that has a replica, as far as the sizes of the pieces allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from kafka_fast.control.group.assignors.interface import (
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)
from kafka_fast.control.group.assignors.subscribers import each, ordered, subscribers_of
from kafka_fast.types import TopicPartition


class RangeAssignor:
    """Kafka's `range`."""

    name = "range"
    is_cooperative = False

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id."""
        members = ordered(members)
        has_racks = any(member.rack_id for member in members)
        pieces: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        for topic, mask in subscribers_of(topics, members).items():
            partitions, count = topics[topic], mask.bit_count()
            # Without racks only the first ones get anything of a topic with few partitions.
            takers = islice(each(mask), count if has_racks else len(partitions))
            cut = _cut(partitions, [members[number] for number in takers], count)
            for member_id, numbers in cut.items():
                pieces[member_id] += [TopicPartition(topic, number) for number in numbers]
        return pieces

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return None: only the topics count."""
        return None

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Remember nothing."""


def _cut(
    partitions: Sequence[PartitionReplicas], takers: Sequence[GroupMember], count: int
) -> dict[str, list[int]]:
    """Return the numbers of one topic's partitions by member; `count` members want it."""
    size, extra = divmod(len(partitions), count)
    room = [size + (place < extra) for place in range(len(takers))]
    pieces: list[list[int]] = [[] for _ in takers]
    left = partitions
    if _racks_matter(partitions, takers):
        left = _give_near(partitions, takers, room, pieces)
    begin = 0
    for place, count in enumerate(room):
        pieces[place] += [partition.partition for partition in left[begin : begin + count]]
        begin += count
    return {
        taker.member_id: sorted(numbers)
        for taker, numbers in zip(takers, pieces, strict=True)
        if numbers
    }


def _racks_matter(partitions: Sequence[PartitionReplicas], takers: Sequence[GroupMember]) -> bool:
    """Whether racks matter: some partition has no replica in the rack of some taker."""
    racks = {taker.rack_id for taker in takers if taker.rack_id}
    return bool(racks) and any(not racks <= partition.racks for partition in partitions)


def _give_near(
    partitions: Sequence[PartitionReplicas],
    takers: Sequence[GroupMember],
    room: list[int],
    pieces: list[list[int]],
) -> list[PartitionReplicas]:
    """Give partitions to the first taker with room in a rack of theirs; return the others.

    Args:
        partitions: of one topic.
        takers: the members that want it, in order.
        room: how many more each taker gets; counted down.
        pieces: the numbers that each taker has; added to.
    """
    by_rack: dict[str | None, list[int]] = {}  # places of the takers with room, the next one last
    for place in reversed(range(len(takers))):
        if room[place]:
            by_rack.setdefault(takers[place].rack_id, []).append(place)
    left = []
    for partition in partitions:
        near = [places[-1] for rack in partition.racks if (places := by_rack.get(rack))]
        if not near:
            left.append(partition)
            continue
        place = min(near)
        pieces[place].append(partition.partition)
        room[place] -= 1
        if not room[place]:
            by_rack[takers[place].rack_id].pop()
    return left
