"""The leader's side of the classic protocol: one member works out the assignment for all.

    JoinGroup's answer ──► members ──► topics known? ──► assignor ──► assignments, for SyncGroup
                                           │ no                            │
                                           └── metadata                    └─► basis: what changes
                                                                               asks for another one

Pure but for the metadata that it has the cluster ask for. Thread: control.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafka_fast.control.cluster import Cluster
from kafka_fast.control.group.assignors import (
    Assignor,
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)
from kafka_fast.control.group.assignors.guard import calling
from kafka_fast.control.group.classic import messages
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.protocol.apis.join_group import JoinGroupResponse
from kafka_fast.types import TopicPartition

Assignments: TypeAlias = Mapping[str, Sequence[TopicPartition]]
"""Partitions by member id."""


class Leader:
    """What a member does while it leads its group. Control thread only."""

    def __init__(
        self, assignors: Mapping[str, Assignor], subscription: SubscribedTopics, cluster: Cluster
    ) -> None:
        """Begin leading nobody.

        Args:
            assignors: that this member understands, by name.
            subscription: keeps the metadata of what the group reads.
            cluster: knows the topics.
        """
        self._assignors = assignors
        self._subscription = subscription
        self._cluster = cluster
        self._basis: Basis | None = None  # of the last assignment that is ours

    @property
    def is_outdated(self) -> bool:
        """Whether partitions, or the racks of their replicas, have changed since it was made."""
        return self._basis is not None and self._basis.is_outdated(self._cluster)

    def forget(self) -> None:
        """Answer for no assignment: another member may lead."""
        self._basis = None

    def assign(self, joined: JoinGroupResponse, now: float) -> Assignments | None:
        """Return everybody's partitions; None while metadata are missing that were asked for.

        Raises:
            KafkaError: a member's metadata cannot be read, or the assignor has failed.
        """
        members = messages.read_members(joined)
        wanted = frozenset(topic for member in members for topic in member.topics)
        if not self._subscription.follow(wanted, now):
            return None
        self._basis = Basis.of(wanted, self._cluster)
        if joined.skip_assignment:
            return {}
        name = joined.protocol_name or ""
        with calling(name):
            return self._run_assignor(self._assignors[name], members)

    def _run_assignor(self, assignor: Assignor, members: Sequence[GroupMember]) -> Assignments:
        assignments = assignor.assign(describe_topics(members, self._cluster), members)
        if assignor.is_cooperative:
            # What moves must be given up by its owner first: nobody gets it in this round.
            assignments = without_moving(assignments, members)
        return assignments


@dataclass(frozen=True, slots=True)
class Basis:
    """What an assignment was made from: a change of it asks for another one."""

    partitions: Mapping[str, tuple[PartitionReplicas, ...]]
    """By topic that any member wants; empty for one that did not exist."""

    @classmethod
    def of(cls, topics: Iterable[str], cluster: Cluster) -> Basis:
        """Return the present state of these topics."""
        return cls({topic: _replicas(topic, cluster) for topic in topics})

    def is_outdated(self, cluster: Cluster) -> bool:
        """Whether partitions, or the racks of their replicas, have changed since."""
        return any(_replicas(topic, cluster) != then for topic, then in self.partitions.items())


def describe_topics(members: Sequence[GroupMember], cluster: Cluster) -> GroupTopics:
    """Return the topics that members want, as far as they exist."""
    wanted = sorted({topic for member in members for topic in member.topics})
    found = {topic: _replicas(topic, cluster) for topic in wanted}
    return {topic: partitions for topic, partitions in found.items() if partitions}


def without_moving(
    assignments: Assignments, members: Sequence[GroupMember]
) -> dict[str, list[TopicPartition]]:
    """Take out what another member still owns: it has to give it up first (KIP-429)."""
    owners = {
        partition: member.member_id for member in members for partition in sorted(member.owned)
    }
    return {
        member_id: [it for it in partitions if owners.get(it, member_id) == member_id]
        for member_id, partitions in assignments.items()
    }


def _replicas(topic: str, cluster: Cluster) -> tuple[PartitionReplicas, ...]:
    def racks(node_ids: Iterable[int]) -> frozenset[str]:
        nodes = (cluster.node(node_id) for node_id in node_ids)
        return frozenset(node.rack for node in nodes if node is not None and node.rack)

    return tuple(
        PartitionReplicas(partition.id, racks(partition.replicas))
        for partition in cluster.partitions(topic)
    )
