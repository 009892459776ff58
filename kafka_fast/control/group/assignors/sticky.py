"""Sticky: as balanced as can be, and of all such assignments one that moves little.

    owned ─► keep what is valid ─► give out what nobody has ─► move along paths until balanced

A *path* leads from a member to another one that has at least two partitions less. Each member on
the path hands one partition on to the next member, which wants its topic. The cheapest path comes
first, so that little moves. When there is no path, loads are as equal as the subscriptions allow.
If all members want the same topics, which is nearly always so, quotas give the same result at once.

Two assignors share this code. With `sticky`, members give everything up before they join. With
`cooperative-sticky`, they keep it (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_fast.control.group.assignors.interface import GroupMember, GroupTopics
from kafka_fast.control.group.assignors.range import member_order
from kafka_fast.control.metadata import by_topic
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
        owners = {it: name for name, partitions in given.items() for it in partitions}
        _fill_least_loaded(members, given, left)
        _move_along_paths(members, given, owners)
    return {member_id: sorted(partitions) for member_id, partitions in given.items()}


def _kept(
    members: Sequence[GroupMember],
    claims: Mapping[str, tuple[int, Iterable[TopicPartition]]],
    existing: frozenset[TopicPartition],
) -> dict[str, list[TopicPartition]]:
    """Return what each member keeps for now.

    If two members claim a partition, the claim of the later generation counts. With the same
    generation neither claim counts, because at least one of them is wrong.
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
    """Balance members that want the same topics: their counts differ by one at most."""
    each, extra = divmod(total, len(members))
    # The members that have the most keep the most, which saves moves.
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
    """Give each free partition to the member that wants it and has the least."""

    def choice(partition: TopicPartition) -> list[GroupMember]:
        return [member for member in members if partition.topic in member.topics]

    for partition in sorted(left, key=lambda it: (len(choice(it)), it)):
        takers = choice(partition)
        if takers:
            taker = min(takers, key=lambda member: len(given[member.member_id]))
            given[taker.member_id].append(partition)


class _Step(NamedTuple):
    """One member hands one partition on to another."""

    giver: str
    partition: TopicPartition
    taker: str


def _move_along_paths(
    members: Sequence[GroupMember],
    given: dict[str, list[TopicPartition]],
    owners: Mapping[TopicPartition, str],
) -> None:
    """Even the loads out along the cheapest paths, until there is no path any more.

    A step costs 1 if it takes a partition from its former owner, -1 if it gives the partition back,
    and 0 if nobody owned it. Between members whose loads differ by one, a path counts only if it
    saves moves.
    """
    while path := _cheapest_path(members, given, owners):
        for giver, partition, taker in path:
            given[giver].remove(partition)
            given[taker].append(partition)


def _cheapest_path(
    members: Sequence[GroupMember],
    given: Mapping[str, Sequence[TopicPartition]],
    owners: Mapping[TopicPartition, str],
) -> list[_Step]:
    """Return the path that is worth most; an empty one if none is worth anything."""
    steps = _cheapest_steps(members, given, owners)
    best: tuple[int, int] | None = None
    found: list[_Step] = []
    for start in members:
        load = len(given[start.member_id])
        for end, (cost, path) in _paths_from(start.member_id, steps).items():
            gain = load - len(given[end])
            if gain >= 2 or (gain == 1 and cost < 0):
                rank = (cost, -gain)
                if best is None or rank < best:
                    best, found = rank, path
    return found


def _cheapest_steps(
    members: Sequence[GroupMember],
    given: Mapping[str, Sequence[TopicPartition]],
    owners: Mapping[TopicPartition, str],
) -> list[tuple[int, _Step]]:
    """Return the cheapest step, with its cost, from each member to each other one."""
    cheapest: dict[tuple[str, str], tuple[int, _Step]] = {}
    for giver, partitions in given.items():
        for partition in partitions:
            owner = owners.get(partition)
            for taker in members:
                name = taker.member_id
                if name != giver and partition.topic in taker.topics:
                    cost = (giver == owner) - (name == owner)
                    known = cheapest.get((giver, name))
                    if known is None or cost < known[0]:
                        cheapest[giver, name] = cost, _Step(giver, partition, name)
    return list(cheapest.values())


def _paths_from(
    start: str, steps: Sequence[tuple[int, _Step]]
) -> dict[str, tuple[int, list[_Step]]]:
    """Return the cheapest path, with its cost, to each member that can be reached.

    This is Bellman and Ford's algorithm, because costs may be negative. Paths that meet a member
    twice are left out.
    """
    found: dict[str, tuple[int, list[_Step]]] = {start: (0, [])}
    is_settled = False
    while not is_settled:
        is_settled = True
        for cost, step in steps:
            before = found.get(step.giver)
            if before is None or step.taker == start:
                continue
            total, path = before[0] + cost, before[1]
            known = found.get(step.taker)
            if known is not None and known[0] <= total:
                continue
            if all(earlier.taker != step.taker for earlier in path):
                found[step.taker] = total, [*path, step]
                is_settled = False
    return found
