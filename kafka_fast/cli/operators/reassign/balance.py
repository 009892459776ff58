"""Which brokers get the replicas of partitions: leaders in turn, followers on other racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest

from kafka_fast import TopicPartition
from kafka_fast.errors import UsageError


def balanced(
    counts: Mapping[TopicPartition, int], racks: Mapping[int, str | None]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return brokers for each partition, the preferred leader first.

    Leaders go round over the brokers, with a change of the rack at each step. A follower goes to
    the rack that has the fewest replicas of its partition, and there to the broker that has got the
    fewest of all. If a broker has no rack, racks are not looked at.

    Args:
        counts: how many replicas each partition is to have.
        racks: the rack of each broker that may get replicas.

    Raises:
        UsageError: a partition is to have more replicas than there are brokers, or none.
    """
    rack_of: dict[int, object] = dict(racks)
    if None in rack_of.values():
        rack_of = {broker: broker for broker in racks}
    order = _alternating(rack_of)
    loads: Counter[int] = Counter()
    assignment = {}
    for turn, (partition, count) in enumerate(counts.items()):
        if not 1 <= count <= len(order):
            raise UsageError(
                f"{partition} cannot have {count} replicas: there are {len(order)} brokers"
            )
        first = turn % len(order)
        # Each round shifts the followers, so that the leaders of one broker have different ones.
        shift = 1 + turn // len(order) % max(1, len(order) - 1)
        others = [order[(first + shift + step) % len(order)] for step in range(len(order))]
        chosen = [order[first]]
        while len(chosen) < count:
            used = Counter(rack_of[broker] for broker in chosen)
            chosen.append(
                min(
                    (broker for broker in others if broker not in chosen),
                    key=lambda broker: (used[rack_of[broker]], loads[broker]),
                )
            )
        loads.update(chosen)
        assignment[partition] = tuple(chosen)
    return assignment


def _alternating(racks: Mapping[int, object]) -> list[int]:
    """Return the brokers in an order in which neighbours are on different racks, where possible."""
    by_rack: dict[object, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rows = zip_longest(*(by_rack[rack] for rack in sorted(by_rack, key=str)))
    if all(len(some) == 1 for some in by_rack.values()):
        return sorted(racks)
    return [broker for row in rows for broker in row if broker is not None]
