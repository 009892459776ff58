"""Which items of a call depend on a coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.control.requests.targets import Coordinator, CoordinatorKind, CoordinatorOfEach


class ManyKeys(dict[str, None]):
    """The items of a call that may have ten thousand."""

    def __iter__(self) -> Iterator[str]:
        return pytest.fail("all items are looked at, for each of them")


def test_the_item_of_a_coordinator_is_found_without_a_look_at_the_others() -> None:
    target = CoordinatorOfEach(CoordinatorKind.GROUP)
    keys = ManyKeys(a=None, b=None)
    assert target.keys_of("b", keys) == ["b"]
    assert target.keys_of("c", keys) == []


def test_all_items_or_none_depend_on_one_coordinator() -> None:
    target = Coordinator(CoordinatorKind.GROUP, "g")
    assert target.keys_of("g", {"a": None, "b": None}) == ["a", "b"]
    assert target.keys_of("h", {"a": None, "b": None}) == []
