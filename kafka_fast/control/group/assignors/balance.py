"""Even loads at the price of the fewest moves: a minimum-cost flow between members.

    what members own ─► kept ─► free partitions are given out ─► steps from rich to poor, until even

A *step* hands one partition on to a member that wants its topic. It costs 1 if it takes the
partition from its owner, -1 if it gives the partition back to its owner, and 0 otherwise. Along a
*path* of steps the first member loses a partition and the last one gains one. If only cheapest
paths are taken, no assignment with the same loads moves less. Enough of them lead to even loads.

To search for the cheapest path again and again would take minutes in a large group. *Prices*, the
potentials of the flow, spare that. They hold

    price of the taker - price of the giver <= cost        for every step that is possible

and a path of steps that cost no more than this difference is a cheapest path. Searching such steps
needs no sums. If they lead from no rich member to a poor one, the prices of the members that were
not reached rise by one, which opens more steps. If no step at all leads out of the members that
were reached, they are richer than the others and cannot share: both sides are evened by themselves.

At last all loads of such a side differ by one at most. Who has one more is free, so paths of a
negative cost from these members to the others save moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from kafka_fast.control.group.assignors.subscribers import each, lowest
from kafka_fast.types import TopicPartition

_Group: TypeAlias = dict[TopicPartition, None]
"""Partitions of one member, in the order in which they came. Tables hold no empty groups."""

_Place: TypeAlias = tuple[dict[Any, _Group], Any]
"""A table, and the topic or the owner under which a group is in it."""


class _Step(NamedTuple):
    """One member hands one partition on to another."""

    giver: int
    partition: TopicPartition
    taker: int


class StickyAssignment:
    """The sticky assignor's assignment as it grows. A member is a number, a set of them a mask."""

    def __init__(
        self, subscribers: Mapping[str, int], count: int, owners: Mapping[TopicPartition, int]
    ) -> None:
        """Let each owner keep what it owns.

        Args:
            subscribers: the members that want each topic.
            count: the number of members.
            owners: the member that owns a partition, and wants its topic.
        """
        self._subscribers = subscribers
        self._owners = owners
        self._loads = [0] * count
        self._prices = [0] * count
        # What each member holds. All steps of a group have one cost, except those that give a
        # partition back to its owner: `_lent` has these partitions once more, by owner.
        self._owned: list[dict[str, _Group]] = [{} for _ in range(count)]
        self._other: list[dict[str, _Group]] = [{} for _ in range(count)]
        self._lent: list[dict[int, _Group]] = [{} for _ in range(count)]
        for partition, owner in owners.items():
            self._put(partition, owner)

    def held_by(self, member: int) -> list[TopicPartition]:
        """Return the partitions of a member, sorted."""
        tables = (self._owned[member], self._other[member])
        return sorted(
            partition for table in tables for group in table.values() for partition in group
        )

    def _put(self, partition: TopicPartition, member: int) -> None:
        for table, key in self._places_of(partition, member):
            table.setdefault(key, {})[partition] = None
        self._loads[member] += 1

    def _take(self, partition: TopicPartition, member: int) -> None:
        for table, key in self._places_of(partition, member):
            del table[key][partition]
            if not table[key]:
                del table[key]
        self._loads[member] -= 1

    def _places_of(self, partition: TopicPartition, member: int) -> Sequence[_Place]:
        """Return where the tables have a partition of a member."""
        owner = self._owners.get(partition)
        if owner == member:
            return ((self._owned[member], partition.topic),)
        if owner is None:
            return ((self._other[member], partition.topic),)
        return ((self._other[member], partition.topic), (self._lent[member], owner))

    # ---- partitions without an owner ----

    def give_out(self, partitions: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Give each of these partitions to the member that wants its topic and has the least.

        Topics that few members want come first. Those that many want can even the loads out then.
        """
        by_load: dict[int, int] = {}  # the members with each load
        for member, load in enumerate(self._loads):
            by_load[load] = by_load.get(load, 0) | 1 << member
        least = min(by_load, default=0)
        for topic in sorted(
            partitions, key=lambda name: (self._subscribers[name].bit_count(), name)
        ):
            for partition in partitions[topic]:
                load = least
                while not (takers := self._subscribers[topic] & by_load.get(load, 0)):
                    load += 1
                taker = lowest(takers)
                self._put(partition, taker)
                by_load[load] ^= 1 << taker
                by_load[load + 1] = by_load.get(load + 1, 0) | 1 << taker
                while not by_load.get(least):
                    least += 1

    # ---- even loads ----

    def even_out(self) -> None:
        """Make the loads as equal as the subscriptions allow, with the fewest moves."""
        sides = [(1 << len(self._loads)) - 1]
        while sides:
            side = sides.pop()
            low = sum(self._loads[member] for member in each(side)) // side.bit_count()
            richer = self._level(side, low) or self._level(side, low + 1)
            if richer:
                sides += [richer, side & ~richer]
            else:
                self._save_moves(side, low)

    def _level(self, side: int, load: int) -> int:
        """Let the members of a side that have more than `load` give to those that have less.

        Returns:
            0 if nobody has more, or nobody has less. Otherwise those who still have more, with all
            members that they could give to: nobody among these has less.
        """
        while True:
            rich = self._members(side, lambda its: its > load)
            poor = self._members(side, lambda its: its < load)
            if not rich or not poor:
                return 0
            reached = self._move(side, rich, poor, load, load)
            if reached and not self._can_give(reached, side & ~reached):
                return reached
            if reached:
                self._raise_prices(side & ~reached)

    def _save_moves(self, side: int, low: int) -> None:
        """Let members with `low + 1` partitions give to those with `low`, while that saves moves.

        The path with the lowest cost begins at the highest price. The cost is negative if the path
        ends at a lower one.
        """
        while full := self._members(side, lambda its: its > low):
            top = max(self._prices[member] for member in each(full))
            others = each(self._members(side, lambda its: its == low))
            takers = sum(1 << member for member in others if self._prices[member] < top)
            if not takers:
                return
            givers = sum(1 << member for member in each(full) if self._prices[member] == top)
            reached = self._move(side, givers, takers, low, low + 1)
            if reached:
                self._raise_prices(side & ~reached)

    def _members(self, side: int, has: Callable[[int], bool]) -> int:
        """Return the members of a side whose load has some property."""
        return sum(1 << member for member in each(side) if has(self._loads[member]))

    def _raise_prices(self, members: int) -> None:
        for member in each(members):
            self._prices[member] += 1

    def _can_give(self, givers: int, takers: int) -> bool:
        """Tell whether any step, at whatever cost, leads from some members to others."""
        return any(
            self._subscribers[topic] & takers
            for member in each(givers)
            for table in (self._owned[member], self._other[member])
            for topic in table
        )

    # ---- cheapest paths ----

    def _move(self, side: int, givers: int, takers: int, low: int, high: int) -> int:
        """Move partitions along cheapest paths that have the fewest steps.

        Args:
            side: the members that may be on a path.
            givers: where paths begin; each gives until it has `low` partitions.
            takers: where paths end; each takes until it has `high`.
            low: see above.
            high: see above.

        Returns:
            0 if there is such a path. Otherwise all members that steps of the cheapest kind reach.
        """
        by_price: dict[int, int] = {}
        for member in each(side):
            by_price[self._prices[member]] = by_price.get(self._prices[member], 0) | 1 << member
        layers = [givers]  # the members that are so many steps away
        reached = givers
        while not layers[-1] & takers:
            ahead = 0
            for member in each(layers[-1]):
                for _, mask in self._openings(member, by_price):
                    ahead |= mask
            ahead &= ~reached
            if not ahead:
                return reached
            reached |= ahead
            layers.append(ahead)
        layers[-1] &= takers
        ways: dict[int, Iterator[_Step]] = {}
        for giver in each(givers):
            while self._loads[giver] > low and (path := self._path(giver, layers, ways, by_price)):
                for step in path:
                    self._take(step.partition, step.giver)
                    self._put(step.partition, step.taker)
                last = path[-1].taker
                if self._loads[last] >= high:
                    layers[-1] ^= 1 << last
        return 0

    def _path(
        self,
        start: int,
        layers: list[int],
        ways: dict[int, Iterator[_Step]],
        by_price: Mapping[int, int],
    ) -> list[_Step]:
        """Return a path through all layers; an empty one if there is none any more.

        Members from which no path leads on are removed from their layers.
        """
        path: list[_Step] = []
        member = start
        while len(path) < len(layers) - 1:
            if member not in ways:
                ways[member] = self._steps(member, layers, len(path) + 1, by_price)
            step = next(ways[member], None)
            if step is not None:
                path.append(step)
                member = step.taker
            elif path:
                layers[len(path)] &= ~(1 << member)
                member = path.pop().giver
            else:
                break
        return path

    def _steps(
        self, giver: int, layers: Sequence[int], depth: int, by_price: Mapping[int, int]
    ) -> Iterator[_Step]:
        """Yield the cheapest steps into a layer, each one for as long as it is possible."""
        for (table, key), mask in self._openings(giver, by_price):
            while (group := table.get(key)) and (takers := mask & layers[depth]):
                yield _Step(giver, next(iter(group)), lowest(takers))

    def _openings(self, giver: int, by_price: Mapping[int, int]) -> Iterator[tuple[_Place, int]]:
        """Yield the groups of a member's partitions, and who can take them by a cheapest step."""
        price = self._prices[giver]
        for table, cost in ((self._other[giver], 0), (self._owned[giver], 1)):
            if peers := by_price.get(price + cost):
                for topic in list(table):
                    yield (table, topic), self._subscribers[topic] & peers
        if peers := by_price.get(price - 1):
            for owner in list(self._lent[giver]):
                yield (self._lent[giver], owner), peers & 1 << owner
