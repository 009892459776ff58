"""What an assignor gets and gives; a user's own one has this shape too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from kafka_fast.types import TopicPartition
from kafka_fast.values import Value


class PartitionReplicas(NamedTuple):
    """One partition of a topic."""

    partition: int
    racks: frozenset[str] = frozenset()
    """Of the nodes that hold it; empty where they have none, or nobody knows."""


GroupTopics: TypeAlias = Mapping[str, Sequence[PartitionReplicas]]
"""The partitions of each topic that any member wants; a topic that does not exist is not there."""


class GroupMember(Value):
    """One member as the others know it.

    Attributes:
        member_id: of this membership.
        topics: that it wants.
        instance_id: of a static member, which keeps it over a restart; else None.
        owned: partitions that it had in `generation`; assignors that move little look at it.
        generation: that `owned` belongs to; -1 if it does not say.
        rack_id: where it runs, or None.
        user_data: what its assignor's `user_data` returned, or None.
    """

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    rack_id: str | None = None
    user_data: bytes | None = None


@runtime_checkable
class Assignor(Protocol):
    """Decides, on the group's leader, who reads what.

    Attributes:
        name: that all members must agree on, such as "range".
        is_cooperative: whether members keep what they have while the group rebalances (KIP-429).
    """

    name: str
    is_cooperative: bool

    def assign(
        self, topics: GroupTopics, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member, by member id.

        Every partition of every topic goes to at most one member, and only to one that wants its
        topic.
        """

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return what the other side of this assignor is to know of this member; None: nothing."""

    def handle_assignment(
        self, partitions: frozenset[TopicPartition], generation: int, user_data: bytes | None
    ) -> None:
        """Take note of what this member got."""
