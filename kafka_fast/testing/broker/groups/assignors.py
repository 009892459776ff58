"""The assignors of KIP-848 groups: `uniform` balances and moves little, `range` keeps neighbours.

Each takes the members in the order in which they came, and the topics by name with the number of
their partitions. With the same subscription for all, `uniform` follows Kafka's algorithm step by
step, `range` always does; with different subscriptions `uniform` is as balanced and as sticky, but
need not choose the same partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

TopicPartition = tuple[bytes, int]  # topic id and partition


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What an assignor knows of a member."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    """Topic ids."""
    target: frozenset[TopicPartition]
    """Of the assignment before."""


Partitions = Mapping[bytes, int]  # topic id -> number of partitions
Targets = dict[str, set[TopicPartition]]  # member id -> partitions
Assignor = Callable[[Sequence[Subscriber], Partitions], Targets]


def assign_range(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    """Cut each topic into one range for each subscriber, static members first."""
    targets: Targets = {member.member_id: set() for member in members}
    ordered = sorted(
        members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id)
    )
    subscribed = _subscribed(ordered, partitions)
    for topic, count in partitions.items():
        members_of_it = subscribed[topic]
        start = 0
        for place, member_id in enumerate(members_of_it):
            size = count // len(members_of_it) + (place < count % len(members_of_it))
            targets[member_id].update((topic, i) for i in range(start, start + size))
            start += size
    return targets


def _subscribed(members: Sequence[Subscriber], partitions: Partitions) -> dict[bytes, list[str]]:
    """Return the ids of the members that want each topic, in their order."""
    subscribed: dict[bytes, list[str]] = {topic: [] for topic in partitions}
    for member in members:
        for topic in member.topics & partitions.keys():
            subscribed[topic].append(member.member_id)
    return subscribed


def assign_uniform(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    """Balance the number of partitions, and move as few as that takes."""
    if len({member.topics for member in members}) <= 1:
        return _uniform_alike(members, partitions)
    return _uniform_mixed(members, partitions)


def _all(partitions: Partitions) -> Iterator[TopicPartition]:
    return ((topic, index) for topic, count in partitions.items() for index in range(count))


def _uniform_alike(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    subscribed = [one for one in _all(partitions) if members and one[0] in members[0].topics]
    quota, extras = divmod(len(subscribed), len(members)) if members else (0, 0)
    places = {one: place for place, one in enumerate(subscribed)}
    targets: Targets = {}
    unfilled: list[tuple[str, int]] = []
    for place, member in enumerate(members):
        has_extra = extras > 0
        most = quota + has_extra
        kept = sorted(member.target & places.keys(), key=places.__getitem__)[:most]
        missing = most - len(kept)
        if missing and has_extra and len(members) - place > extras:
            missing -= 1  # somebody behind may have one more already
            has_extra = False
        if missing:
            unfilled.append((member.member_id, missing))
        extras -= has_extra
        targets[member.member_id] = set(kept)
    taken = {one for target in targets.values() for one in target}
    free = iter([one for one in subscribed if one not in taken])
    for member_id, missing in unfilled:
        targets[member_id].update(one for _, one in zip(range(missing), free, strict=False))
    return targets


def _uniform_mixed(members: Sequence[Subscriber], partitions: Partitions) -> Targets:
    subscribed = _subscribed(members, partitions)
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
    held: dict[bytes, dict[str, list[TopicPartition]]] = {topic: {} for topic in partitions}
    for member_id, target in targets.items():
        for one in sorted(target, reverse=True):
            held[one[0]].setdefault(member_id, []).append(one)
    topics = sorted(partitions)
    while sum(_level(held[topic], subscribed[topic], targets) for topic in topics):
        pass
    return targets


def _level(
    held: dict[str, list[TopicPartition]], subscribed: Sequence[str], targets: Targets
) -> bool:
    """Move a topic's partitions to members that have at least two less; False: none had to move.

    Args:
        held: the partitions of the topic that each member has; changed.
        subscribed: the members that want the topic.
        targets: all partitions of all members; changed.
    """
    rich = [(-len(targets[member_id]), member_id) for member_id in held]
    poor = [(len(targets[member_id]), member_id) for member_id in subscribed]
    heapify(rich)
    heapify(poor)
    has_moved = False
    while rich and poor:
        least, to = poor[0]
        most, giver = rich[0]
        if least != len(targets[to]):
            heapreplace(poor, (len(targets[to]), to))
        elif not held[giver]:
            heappop(rich)
        elif -most != len(targets[giver]):
            heapreplace(rich, (-len(targets[giver]), giver))
        elif -most < least + 2:
            break
        else:
            one = held[giver].pop()
            targets[giver].remove(one)
            targets[to].add(one)
            if to not in held:
                held[to] = []
                heappush(rich, (-len(targets[to]), to))
            held[to].append(one)
            has_moved = True
    return has_moved


DEFAULT_ASSIGNOR = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
