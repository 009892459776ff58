"""Round robin: all partitions of all topics in a row, dealt out to the members in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_fast.control.group.assignors.interface import GroupMember, GroupTopics
from kafka_fast.control.group.assignors.subscribers import lowest, ordered, subscribers_of
from kafka_fast.types import TopicPartition


class RoundRobinAssignor:
    """Kafka's `roundrobin`."""

    name = "roundrobin"
    is_cooperative = False

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id."""
        members = ordered(members)
        dealt: list[list[TopicPartition]] = [[] for _ in members]
        turn = 0  # the number of the member whose turn is next
        for topic, takers in subscribers_of(topics, members).items():
            for partition in topics[topic]:
                later = takers >> turn
                taker = turn + lowest(later) if later else lowest(takers)
                dealt[taker].append(TopicPartition(topic, partition.partition))
                turn = taker + 1
        return {member.member_id: dealt[number] for number, member in enumerate(members)}

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return None: only the topics count."""
        return None

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Remember nothing."""
