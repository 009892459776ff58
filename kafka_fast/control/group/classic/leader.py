"""The leader's side of the classic protocol: one member works out the assignment for all.

    JoinGroup's answer ──► members ──► topics known? ──► assignor ──► assignments, for SyncGroup
                                           │ no                            │
                                           └── metadata                    └─► basis: what changes
                                                                               asks for another one

What a cooperative assignor moves is withheld until its owner has given it up and joined once more.
A static owner may be replaced before it does: its successor gets the assignment as it is, owns
nothing that it could give up, and the group does not rebalance (KIP-345). Such a partition would be
nobody's until something else happens. So the leader has the group rebalance once the owner must
have done so, or be gone.

Pure but for the metadata that it has the cluster ask for. Thread: control.
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
from kafka_fast.control.instants import NEVER
from kafka_fast.protocol.apis.join_group import JoinGroupResponse
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

Assignments: TypeAlias = Mapping[str, Sequence[TopicPartition]]
"""Partitions by member id."""


class GroupLeader:
    """What a member does while it leads its group. Control thread only."""

    def __init__(
        self,
        assignors: Mapping[str, Assignor],
        subscription: SubscribedTopics,
        cluster: Cluster,
        *,
        patience: float,
    ) -> None:
        """Begin leading nobody.

        Args:
            assignors: that this member understands, by name.
            subscription: keeps the metadata of what the group reads.
            cluster: knows the topics.
            patience: seconds after which an owner has given up what it is to give up, or is gone.
        """
        self._patience = patience
        self._assignors = assignors
        self._subscription = subscription
        self._cluster = cluster
        self._basis: AssignmentBasis | None = None  # of the last assignment that is ours
        self.settled_by = NEVER
        """When a partition that was withheld may be nobody's: if no rebalance has come before."""

    @property
    def is_outdated(self) -> bool:
        """Whether partitions, or the racks of their replicas, have changed since it was made."""
        return self._basis is not None and self._basis.is_outdated(self._cluster)

    def forget(self) -> None:
        """Answer for no assignment: another member may lead."""
        self._basis = None
        self.settled_by = NEVER

    def assign(self, joined: JoinGroupResponse, now: float) -> Assignments | None:
        """Return everybody's partitions; None while metadata are missing that were asked for.

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
                # Whether its former self has withheld anything this leader does not know.
                self._expect_rebalance(assignor.is_cooperative, now)
                return {}
            return self._run_assignor(assignor, members, now)

    def _run_assignor(
        self, assignor: Assignor, members: Sequence[GroupMember], now: float
    ) -> Assignments:
        assignments = assignor.assign(describe_topics(members, self._cluster), members)
        if not assignor.is_cooperative:
            return assignments
        # What moves must be given up by its owner first: nobody gets it in this round.
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
    """What an assignment was made from: a change of it asks for another one."""

    partitions: Mapping[str, tuple[PartitionReplicas, ...]]
    """By topic that any member wants; empty for one that did not exist."""

    @classmethod
    def of(cls, topics: Iterable[str], cluster: Cluster) -> AssignmentBasis:
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


def moving(
    assignments: Assignments, members: Sequence[GroupMember]
) -> dict[TopicPartition, GroupMember]:
    """Return what another member still owns, and who: it has to give it up first (KIP-429)."""
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
