"""The interface of assignors, built-in or written by users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from kafka_fast.types import TopicPartition
from kafka_fast.values import Value


class PartitionReplicas(NamedTuple):
    """One partition of a topic."""

    partition: int
    racks: frozenset[str] = frozenset()
    """The racks of its replicas' nodes; empty if they have none, or none is known."""


GroupTopics: TypeAlias = Mapping[str, Sequence[PartitionReplicas]]
"""The partitions of each existing topic that any member wants."""


class GroupMember(Value):
    """One member as the others know it."""

    member_id: str
    """Its id in this membership."""
    topics: frozenset[str]
    """The topics that it wants."""
    instance_id: str | None = None
    """The group.instance.id of a static member, which survives restarts; else None."""
    owned: frozenset[TopicPartition] = frozenset()
    """The partitions that it had in `generation`. Sticky assignors use them."""
    generation: int = -1
    """The generation of `owned`; -1 if unknown."""
    rack_id: str | None = None
    """The rack in which it runs, or None."""
    user_data: bytes | None = None
    """What its assignor's `user_data` returned, or None."""


@runtime_checkable
class Assignor(Protocol):
    """Decides on the group's leader which member reads which partitions.

    One consumer calls these methods one at a time, each in a thread that does nothing else. The
    member sends heartbeats while they are at work, and its group waits for them. What they raise is
    the error of the next poll.
    """

    name: str
    """The name on which all members must agree, such as "range"."""
    is_cooperative: bool
    """Whether members keep what they have while the group rebalances (KIP-429)."""

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id.

        Every partition of every topic goes to at most one member, and only to one that wants its
        topic.
        """

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return bytes about this member for the assignor on the group's leader, or None."""

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Remember this member's new assignment, if later calls need it."""
