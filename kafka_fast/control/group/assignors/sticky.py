"""Sticky: as balanced as can be, and of all such assignments one that moves the least.

    members say what they had ─► the valid claims ─► `balance` ─► who gets what

Two assignors share this code. With `sticky`, members give everything up before they join. With
`cooperative-sticky`, they keep it (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kafka_fast.control.group.assignors.balance import StickyAssignment
from kafka_fast.control.group.assignors.interface import GroupMember, GroupTopics
from kafka_fast.control.group.assignors.subscribers import ordered, subscribers_of
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.errors import MalformedError
from kafka_fast.protocol.consumer import (
    CooperativeStickyUserData,
    StickyTopicAssignment,
    StickyUserData,
)
from kafka_fast.types import TopicPartition

NO_GENERATION = -1


class StickyAssignor:
    """Kafka's `sticky`: members tell what they owned before in their user data."""

    name = "sticky"
    is_cooperative = False

    def __init__(self) -> None:
        self._owned: frozenset[TopicPartition] = frozenset()
        self._generation = NO_GENERATION

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id."""
        claims = {member.member_id: self._claim(member) for member in members}
        return balance(topics, members, claims)

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return what this member had, and when."""
        if not self._owned:
            return None
        return StickyUserData(
            previous_assignment=[
                StickyTopicAssignment(topic=topic, partitions=partitions)
                for topic, partitions in by_topic(sorted(self._owned)).items()
            ],
            generation=self._generation,
        ).encode(1)

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Remember what this member has."""
        self._owned = partitions
        self._generation = generation

    def _claim(self, member: GroupMember) -> tuple[int, frozenset[TopicPartition]]:
        """Return what a member had, and in which generation."""
        if member.user_data is None:
            return member.generation, member.owned
        for version in (1, 0):
            try:
                data = StickyUserData.decode(member.user_data, version)
            except MalformedError:
                continue
            partitions = frozenset(
                TopicPartition(had.topic, partition)
                for had in data.previous_assignment
                for partition in had.partitions
            )
            return data.generation, partitions
        return NO_GENERATION, frozenset()  # another member's bytes: it starts with nothing


class CooperativeStickyAssignor(StickyAssignor):
    """Kafka's `cooperative-sticky`: members say what they own when they join."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return the generation, for leaders that do not read the field of KIP-792."""
        return CooperativeStickyUserData(generation=self._generation).encode(0)

    def _claim(self, member: GroupMember) -> tuple[int, frozenset[TopicPartition]]:
        generation = member.generation
        if generation == NO_GENERATION and member.user_data is not None:
            try:
                generation = CooperativeStickyUserData.decode(member.user_data, 0).generation
            except MalformedError:
                generation = NO_GENERATION
        return generation, member.owned


def balance(
    topics: GroupTopics,
    members: Sequence[GroupMember],
    claims: Mapping[str, tuple[int, Iterable[TopicPartition]]],
) -> dict[str, list[TopicPartition]]:
    """Return a balanced assignment that keeps what can be kept.

    Args:
        topics: the partitions of each topic.
        members: who wants which topics.
        claims: generation and partitions that each member says it had, by member id.
    """
    members = ordered(members)
    subscribers = subscribers_of(topics, members)
    partitions = {
        topic: [TopicPartition(topic, partition.partition) for partition in topics[topic]]
        for topic in subscribers
    }
    owners = _owners(
        members, claims, {partition for group in partitions.values() for partition in group}
    )
    made = StickyAssignment(subscribers, len(members), owners)
    made.give_out(
        {
            topic: [partition for partition in group if partition not in owners]
            for topic, group in partitions.items()
        }
    )
    made.even_out()
    return {member.member_id: made.held_by(number) for number, member in enumerate(members)}


def _owners(
    members: Sequence[GroupMember],
    claims: Mapping[str, tuple[int, Iterable[TopicPartition]]],
    existing: AbstractSet[TopicPartition],
) -> dict[TopicPartition, int]:
    """Return the number of the member that each partition belonged to, as far as claims tell.

    If two members claim a partition, the claim of the later generation counts. With the same
    generation neither claim counts, because at least one of them is wrong.
    """
    best: dict[TopicPartition, tuple[int, int | None]] = {}
    for number, member in enumerate(members):
        generation, owned = claims[member.member_id]
        for partition in owned:
            if partition not in existing or partition.topic not in member.topics:
                continue
            known, _ = best.get(partition, (NO_GENERATION - 1, None))
            if generation > known:
                best[partition] = generation, number
            elif generation == known:
                best[partition] = generation, None
    return {partition: owner for partition, (_, owner) in sorted(best.items()) if owner is not None}
