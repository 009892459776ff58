"""The assignors that partition.assignment.strategy names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka_fast.control.group.assignors.interface import Assignor
from kafka_fast.control.group.assignors.range import RangeAssignor
from kafka_fast.control.group.assignors.roundrobin import RoundRobinAssignor
from kafka_fast.control.group.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

BUILT_IN: Mapping[str, Callable[[], Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def make_assignors(strategy: Iterable[str | Assignor]) -> list[Assignor]:
    """Return an assignor for each name; a user's own object stays what it is."""
    return [BUILT_IN[choice]() if isinstance(choice, str) else choice for choice in strategy]
