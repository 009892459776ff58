"""Sticky: as balanced as can be, and of all such assignments one that moves little.

    owned ─► keep what is valid ─► give out what nobody has ─► move along paths until balanced

A *path* leads from a member to one that has at least two partitions less: each member on it hands
one partition on to the next, who wants its topic. When there is no such path, no assignment is more
balanced (loads are as equal as the subscriptions allow). Where all members want the same topics,
which is nearly always, quotas give the same result at once.

Two assignors share this: `sticky`, under which members give everything up before they join, and
`cooperative-sticky`, under which they keep it (KIP-429).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from kafka_fast.control.group.assignors.interface import GroupMember, GroupTopics
from kafka_fast.control.group.assignors.range import member_order
from kafka_fast.control.leader_query import by_topic
from kafka_fast.errors import MalformedError
from kafka_fast.protocol.consumer import (
    CooperativeStickyUserData,
    StickyTopicAssignment,
    StickyUserData,
)
from kafka_fast.types import TopicPartition

NO_GENERATION = -1


class StickyAssignor:
    """Kafka's `sticky`: what was owned travels as user data, for it was given up before."""

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
        """Return the generation, for members that do not read it where KIP-792 put it."""
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
    members = sorted(members, key=member_order)
    wanted = frozenset(topic for member in members for topic in member.topics)
    every = [
        TopicPartition(topic, it.partition)
        for topic in sorted(wanted & topics.keys())
        for it in topics[topic]
    ]
    given = _kept(members, claims, frozenset(every))
    taken = {partition for partitions in given.values() for partition in partitions}
    left = [partition for partition in every if partition not in taken]
    if len({frozenset(member.topics & topics.keys()) for member in members}) == 1:
        _fill_quotas(members, given, left, len(every))
    else:
        _fill_least_loaded(members, given, left)
        _move_along_paths(members, given)
    return {member_id: sorted(partitions) for member_id, partitions in given.items()}


def _kept(
    members: Sequence[GroupMember],
    claims: Mapping[str, tuple[int, Iterable[TopicPartition]]],
    existing: frozenset[TopicPartition],
) -> dict[str, list[TopicPartition]]:
    """Return what each member keeps for now.

    Of two that claim a partition the one from the later generation has it; of the same generation
    neither does, for at least one of them is wrong.
    """
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        generation, owned = claims[member.member_id]
        for partition in owned:
            if partition not in existing or partition.topic not in member.topics:
                continue
            known, _ = best.get(partition, (NO_GENERATION - 1, None))
            if generation > known:
                best[partition] = generation, member.member_id
            elif generation == known:
                best[partition] = generation, None
    given: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for partition in sorted(best):
        owner = best[partition][1]
        if owner is not None:
            given[owner].append(partition)
    return given


def _fill_quotas(
    members: Sequence[GroupMember],
    given: dict[str, list[TopicPartition]],
    left: list[TopicPartition],
    total: int,
) -> None:
    """Where everybody wants the same: nobody gets more than one above anybody else."""
    each, extra = divmod(total, len(members))
    # Who has the most keeps the most: those are the moves that are saved.
    order = sorted(members, key=lambda member: -len(given[member.member_id]))
    for place, member in enumerate(order):
        kept = given[member.member_id]
        quota = each + (place < extra)
        left += kept[quota:]
        del kept[quota:]
    left.sort(reverse=True)
    for place, member in enumerate(order):
        kept = given[member.member_id]
        while len(kept) < each + (place < extra):
            kept.append(left.pop())


def _fill_least_loaded(
    members: Sequence[GroupMember],
    given: dict[str, list[TopicPartition]],
    left: Iterable[TopicPartition],
) -> None:
    """Give what nobody has to whoever wants it and has the least."""

    def choice(partition: TopicPartition) -> list[GroupMember]:
        return [member for member in members if partition.topic in member.topics]

    for partition in sorted(left, key=lambda it: (len(choice(it)), it)):
        takers = choice(partition)
        if takers:
            taker = min(takers, key=lambda member: len(given[member.member_id]))
            given[taker.member_id].append(partition)


def _move_along_paths(
    members: Sequence[GroupMember], given: dict[str, list[TopicPartition]]
) -> None:
    """Shorten the longest rows until none can be shortened."""
    while True:
        order = sorted(members, key=lambda member: -len(given[member.member_id]))
        path = next(
            (found for member in order if (found := _find_path(member, members, given))), None
        )
        if path is None:
            return
        for giver, partition, taker in path:
            given[giver].remove(partition)
            given[taker].append(partition)


def _find_path(
    start: GroupMember, members: Sequence[GroupMember], given: dict[str, list[TopicPartition]]
) -> list[tuple[str, TopicPartition, str]] | None:
    """Return the moves of the shortest path to a member that has at least two less; or None."""
    load = len(given[start.member_id])
    came_from: dict[str, tuple[str, TopicPartition]] = {}
    seen = {start.member_id}
    queue = deque([start])
    while queue:
        giver = queue.popleft()
        # The newest first: what a member has had for long stays.
        for partition in reversed(given[giver.member_id]):
            for taker in members:
                if taker.member_id in seen or partition.topic not in taker.topics:
                    continue
                seen.add(taker.member_id)
                came_from[taker.member_id] = giver.member_id, partition
                if len(given[taker.member_id]) <= load - 2:
                    return _trace(start.member_id, taker.member_id, came_from)
                queue.append(taker)
    return None


def _trace(
    start: str, end: str, came_from: Mapping[str, tuple[str, TopicPartition]]
) -> list[tuple[str, TopicPartition, str]]:
    moves = []
    while end != start:
        giver, partition = came_from[end]
        moves.append((giver, partition, end))
        end = giver
    return moves
