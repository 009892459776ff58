"""Lag of all groups: each is described by the API of the type that was listed."""

from __future__ import annotations

from typing import Any

from kafka_fast.admin.workflows.lag import _described_as_listed
from kafka_fast.control.admin.operations.groups.descriptions import (
    DescribeClassicGroups,
    DescribeConsumerGroups,
)
from kafka_fast.control.admin.types.groups.listings import GroupListing, GroupState, GroupType
from tests.unit.admin.workflows.scripted import ScriptedSteps, finish


class Name(str):
    """A group's id that counts how often it is looked for."""

    __slots__ = ()
    looked_for = 0

    def __hash__(self) -> int:
        Name.looked_for += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


def listing(name: str, kind: GroupType) -> GroupListing:
    return GroupListing(name, kind, GroupState.STABLE, "consumer")


def test_groups_are_described_as_they_are_listed() -> None:
    steps = ScriptedSteps(lambda operation: dict.fromkeys(operation.items, "described"))
    listings = {
        "new": listing("new", GroupType.CONSUMER),
        "old": listing("old", GroupType.CLASSIC),
        "any": listing("any", GroupType.UNKNOWN),
    }
    results = finish(_described_as_listed(steps, listings, 60.0))
    assert results.keys == ["new", "old", "any"]
    assert results.values == dict.fromkeys(results.keys, "described")
    assert [(type(one), one.items) for one in steps.carried_out] == [
        (DescribeConsumerGroups, ["new"]),
        (DescribeClassicGroups, ["old"]),
        (DescribeConsumerGroups, ["any"]),
    ]


def test_many_groups_are_not_compared_with_each_other() -> None:
    def hashes(count: int) -> int:
        names = [Name(f"g-{number}") for number in range(count)]
        listings: dict[str, Any] = {name: listing(name, GroupType.CONSUMER) for name in names}
        steps = ScriptedSteps(lambda operation: dict.fromkeys(operation.items, "described"))
        Name.looked_for = 0
        finish(_described_as_listed(steps, listings, 60.0))
        return Name.looked_for

    assert hashes(400) < 6 * hashes(100)
