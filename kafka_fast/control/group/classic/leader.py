"""The group leader of the classic protocol: one member computes the assignment for all.

    JoinGroup's answer ──► members ──► topics known? ──► assignor ──► assignments, for SyncGroup
                                           │ no                            │
                                           └── metadata                    └─► basis: if it changes,
                                                                               assign again

A cooperative assignor may move a partition. The leader withholds that partition until its owner has
given it up and joined again. But a static owner may be replaced before. Its successor gets the
unchanged assignment, owns no partition that it could give up, and the group does not rebalance
(KIP-345). Then no member would own the withheld partition. So the leader makes the group rebalance
after the time in which the owner must have given it up, or left.

The leader asks the cluster for metadata, and is pure otherwise. Thread: control.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.join_group import JoinGroupResponse
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

Assignments: TypeAlias = Mapping[str, Sequence[TopicPartition]]
"""Partitions by member id."""


class GroupLeader:
    """One member's work as the leader of its group. Control thread only."""

    def __init__(
        self,
        assignors: Mapping[str, Assignor],
        subscription: SubscribedTopics,
        cluster: Cluster,
        *,
        patience: float,
    ) -> None:
        """Begin without an assignment.

        Args:
            assignors: this member's assignors, by name.
            subscription: keeps the metadata of the group's topics.
            cluster: knows the topics.
            patience: seconds within which an owner gives up a partition that moves, or is gone.
        """
        self._patience = patience
        self._assignors = assignors
        self._subscription = subscription
        self._cluster = cluster
        self._basis: AssignmentBasis | None = None  # of this leader's last assignment
        self.settled_by = NEVER
        """When the group must have rebalanced: after that, a withheld partition has no owner."""

    @property
    def is_outdated(self) -> bool:
        """Whether partitions or replicas' racks have changed since the last assignment."""
        return self._basis is not None and self._basis.is_outdated(self._cluster)

    def forget(self) -> None:
        """Forget the last assignment: another member may lead now."""
        self._basis = None
        self.settled_by = NEVER

    def assign(self, joined: JoinGroupResponse, now: float) -> Assignments | None:
        """Return all members' partitions; None while the metadata for that are missing.

        Raises:
            KafkaError: a member's metadata cannot be read, or the assignor has failed.
        """
        members = messages.read_members(joined)
        wanted = frozenset(topic for member in members for topic in member.topics)
        if not self._subscription.follow(wanted, now):
            return None
        self._basis = AssignmentBasis.of(wanted, self._cluster)
        name = joined.protocol_name or ""
        with calling(name):
            assignor = self._assignors[name]
            if joined.skip_assignment:
                # A restarted leader does not know whether it has withheld anything before.
                self._expect_rebalance(assignor.is_cooperative, now)
                return {}
            return self._run_assignor(assignor, members, now)

    def _run_assignor(
        self, assignor: Assignor, members: Sequence[GroupMember], now: float
    ) -> Assignments:
        assignments = assignor.assign(describe_topics(members, self._cluster), members)
        if not assignor.is_cooperative:
            return assignments
        # The owner of a partition that moves must give it up first. No member gets it now.
        withheld = moving(assignments, members)
        self._expect_rebalance(any(owner.instance_id for owner in withheld.values()), now)
        return {
            member_id: [
                it for it in partitions if it not in withheld or withheld[it].member_id == member_id
            ]
            for member_id, partitions in assignments.items()
        }

    def _expect_rebalance(self, is_expected: bool, now: float) -> None:
        self.settled_by = now + self._patience if is_expected else NEVER


class AssignmentBasis(Value):
    """The topics as an assignment was made for them. If they change, assign again."""

    partitions: Mapping[str, tuple[PartitionReplicas, ...]]
    """By topic that any member wants; empty for a topic that did not exist."""

    @classmethod
    def of(cls, topics: Iterable[str], cluster: Cluster) -> AssignmentBasis:
        """Return the basis for these topics as they are now."""
        return cls({topic: _replicas(topic, cluster) for topic in topics})

    def is_outdated(self, cluster: Cluster) -> bool:
        """Whether partitions, or the racks of their replicas, differ from the cluster's now."""
        return any(_replicas(topic, cluster) != then for topic, then in self.partitions.items())


def describe_topics(members: Sequence[GroupMember], cluster: Cluster) -> GroupTopics:
    """Return the existing topics that members want."""
    wanted = sorted({topic for member in members for topic in member.topics})
    found = {topic: _replicas(topic, cluster) for topic in wanted}
    return {topic: partitions for topic, partitions in found.items() if partitions}


def moving(
    assignments: Assignments, members: Sequence[GroupMember]
) -> dict[TopicPartition, GroupMember]:
    """Return the assigned partitions that another member still owns, and that member."""
    owners = {partition: member for member in members for partition in member.owned}
    return {
        partition: owners[partition]
        for member_id, partitions in assignments.items()
        for partition in partitions
        if partition in owners and owners[partition].member_id != member_id
    }


def _replicas(topic: str, cluster: Cluster) -> tuple[PartitionReplicas, ...]:
    def racks(node_ids: Iterable[int]) -> frozenset[str]:
        nodes = (cluster.node(node_id) for node_id in node_ids)
        return frozenset(node.rack for node in nodes if node is not None and node.rack)

    return tuple(
        PartitionReplicas(partition.id, racks(partition.replicas))
        for partition in cluster.partitions(topic)
    )
