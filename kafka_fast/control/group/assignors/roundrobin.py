"""Round robin: all partitions of all topics in a row, dealt out to the members in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from kafka_fast.control.group.assignors.interface import GroupMember, GroupTopics
from kafka_fast.control.group.assignors.range import member_order
from kafka_fast.types import TopicPartition


class RoundRobinAssignor:
    """Kafka's `roundrobin`."""

    name = "roundrobin"
    is_cooperative = False

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id."""
        found: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        turn = cycle(sorted(members, key=member_order))
        for topic in sorted(topics):
            if not any(topic in member.topics for member in members):
                continue
            for partition in topics[topic]:
                taker = next(member for member in turn if topic in member.topics)
                found[taker.member_id].append(TopicPartition(topic, partition.partition))
        return found

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return None: only the topics count."""
        return None

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Remember nothing."""
