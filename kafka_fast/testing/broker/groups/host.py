"""What a group asks of its surroundings: the time to come, ids, settings. Coordinator is one.

An answer may come later, in a `Reply`: a join waits for the other members, a sync for the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, TypeVar

from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.partitions.cluster_topics import Topic

T = TypeVar("T")
Action = Callable[[float], None]  # with the time at which it is run


class Reply(Generic[T]):
    """The place where a response will be."""

    __slots__ = ("response",)

    def __init__(self, response: T | None = None) -> None:
        self.response = response


class GroupHost(Protocol):
    """The broker that coordinates a group."""

    @property
    def settings(self) -> GroupSettings:
        """Return the settings of all groups."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Return the topics of the cluster, by name."""

    def schedule(self, key: Hashable, due: float, action: Action) -> None:
        """Run `action` at `due`, instead of what was scheduled under `key`."""

    def cancel(self, key: Hashable) -> None:
        """Call off what is scheduled under `key`."""

    def answer(self, reply: Reply[T] | None, response: T) -> None:
        """Give the response to who waits for it, if anybody does."""

    def new_uuid(self) -> str:
        """Return an id that nobody has."""
