"""The assignors of KIP-848 groups: `uniform` balances and moves little, `range` keeps neighbours.

Each takes the members in the order in which they came, and the topics by name with the number of
their partitions. With the same subscription for all, `uniform` follows Kafka's algorithm step by
step, `range` always does; with different subscriptions `uniform` is as balanced and as sticky, but
need not choose the same partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

TopicPartition = tuple[bytes, int]  # topic id and partition


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What an assignor knows of a member."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]  # topic ids
    target: frozenset[TopicPartition]  # of the assignment before


Partitions = Mapping[bytes, int]  # topic id -> number of partitions
Targets = dict[str, set[TopicPartition]]  # member id -> partitions
Assignor = Callable[[Sequence[Subscriber], Partitions], Targets]


def assign_range(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    """Cut each topic into one range for each subscriber, static members first."""
    targets: Targets = {member.member_id: set() for member in members}
    ordered = sorted(
        members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id)
    )
    for topic, count in partitions.items():
        subscribed = [member for member in ordered if topic in member.topics]
        start = 0
        for place, member in enumerate(subscribed):
            size = count // len(subscribed) + (place < count % len(subscribed))
            targets[member.member_id].update((topic, i) for i in range(start, start + size))
            start += size
    return targets


def assign_uniform(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    """Balance the number of partitions, and move as few as that takes."""
    if len({member.topics for member in members}) <= 1:
        return _uniform_alike(members, partitions)
    return _uniform_mixed(members, partitions)


def _all(partitions: Partitions) -> Iterator[TopicPartition]:
    return ((topic, index) for topic, count in partitions.items() for index in range(count))


def _uniform_alike(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    wanted = [one for one in _all(partitions) if members and one[0] in members[0].topics]
    quota, extras = divmod(len(wanted), len(members)) if members else (0, 0)
    targets: Targets = {}
    unfilled: list[tuple[str, int]] = []
    for place, member in enumerate(members):
        has_extra = extras > 0
        most = quota + has_extra
        kept = [one for one in wanted if one in member.target][:most]
        missing = most - len(kept)
        if missing and has_extra and len(members) - place > extras:
            missing -= 1  # somebody behind may have one more already
            has_extra = False
        if missing:
            unfilled.append((member.member_id, missing))
        extras -= has_extra
        targets[member.member_id] = set(kept)
    taken = {one for target in targets.values() for one in target}
    free = iter([one for one in wanted if one not in taken])
    for member_id, missing in unfilled:
        targets[member_id].update(one for _, one in zip(range(missing), free, strict=False))
    return targets


def _uniform_mixed(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    subscribed = {
        topic: [member.member_id for member in members if topic in member.topics]
        for topic in partitions
    }
    targets: Targets = {member.member_id: set() for member in members}
    taken: set[TopicPartition] = set()
    for member in members:
        for one in sorted(member.target):
            if one not in taken and one[1] < partitions.get(one[0], 0) and one[0] in member.topics:
                targets[member.member_id].add(one)
                taken.add(one)
    free = [one for one in _all(partitions) if one not in taken and subscribed[one[0]]]
    for one in sorted(free, key=lambda one: len(subscribed[one[0]])):
        targets[min(subscribed[one[0]], key=lambda m: len(targets[m]))].add(one)
    while _move_one(targets, subscribed):
        pass
    return targets


def _move_one(targets: Targets, subscribed: Mapping[bytes, list[str]]) -> bool:
    """Move a partition to a member that has at least two less; False: it is balanced."""
    for owner in sorted(targets, key=lambda m: -len(targets[m])):
        for one in sorted(targets[owner]):
            least = min(subscribed[one[0]], key=lambda m: len(targets[m]))
            if len(targets[least]) + 1 < len(targets[owner]):
                targets[owner].remove(one)
                targets[least].add(one)
                return True
    return False


DEFAULT_ASSIGNOR = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
