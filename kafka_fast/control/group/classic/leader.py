"""The group leader of the classic protocol: one member computes the assignment for all.

    JoinGroup's answer ──► plan ──► members ──► topics known? ──► assignor ──► assignments
                            ▲                       │ no                           │
                            └────── metadata ◄──────┘                              ▼
                                       basis: if it changes, assign again ◄── take ──► SyncGroup

A cooperative assignor may move a partition. The leader withholds that partition until its owner has
given it up and joined again. But a static owner may be replaced before. Its successor gets the
unchanged assignment, owns no partition that it could give up, and the group does not rebalance
(KIP-345). Then no member would own the withheld partition. So the leader makes the group rebalance
after the time in which the owner must have given it up, or left.

In a large group a plan takes long, so it is made in another thread. Metadata may change meanwhile.
The plan holds the immutable records by which it was made, so `is_outdated` notices.

Thread: control, except for what `planning` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from kafka_fast.control.group.assignors import (
    Assignor,
    GroupMember,
    PartitionReplicas,
)
from kafka_fast.control.group.assignors.guard import calling
from kafka_fast.control.group.classic import classic_messages
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import Topic
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequestAssignment
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
        """Start without an assignment; `take_plan` keeps the basis of the last one.

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

    def forget_assignment(self) -> None:
        """Forget the last assignment: another member may lead now."""
        self._basis = None
        self.settled_by = NEVER

    def planning(self, joined: JoinGroupResponse) -> Callable[[], LeaderPlan]:
        """Return a function that makes the plan for a generation. Any thread may call it.

        It raises a KafkaError if a member's metadata cannot be read, or the assignor has failed.
        """
        return partial(_make_plan, joined, self._assignors, self._subscription, self._cluster)

    def take_plan(self, plan: LeaderPlan, now: float) -> bool:
        """Take a plan.

        Returns:
            Whether it holds the assignments. If not, metadata that it lacks have been asked for.
        """
        self._subscription.follow(plan.basis.topics, now)
        if plan.assignments is None:
            return False
        self._basis = plan.basis
        self.settled_by = now + self._patience if plan.expects_rebalance else NEVER
        return True

    def knows_topics_of(self, plan: LeaderPlan) -> bool:
        """Tell whether the metadata are there that a plan lacked."""
        return self._subscription.knows(plan.basis.topics)


class LeaderPlan(Value):
    """What a leader has planned for a generation."""

    basis: AssignmentBasis
    """The topics by which it was made."""
    assignments: Sequence[SyncGroupRequestAssignment] | None
    """What each member gets, for SyncGroup; None: metadata of some topics are missing."""
    expects_rebalance: bool = False
    """A static member must give up a partition, or be gone, before another member gets it."""


def _make_plan(
    joined: JoinGroupResponse,
    assignors: Mapping[str, Assignor],
    subscription: SubscribedTopics,
    cluster: Cluster,
) -> LeaderPlan:
    """Make the plan for a generation. Any thread."""
    members = classic_messages.read_members(joined)
    basis = AssignmentBasis.of({topic for member in members for topic in member.topics}, cluster)
    if not subscription.knows(basis.topics):
        return LeaderPlan(basis, None)
    name = joined.protocol_name or ""
    with calling(name):
        assignor = assignors[name]
        if joined.skip_assignment:
            # A restarted leader does not know whether it has withheld anything before.
            return LeaderPlan(basis, [], assignor.is_cooperative)
        assignments = assignor.assign(basis.described(), members)
        strangers = assignments.keys() - {member.member_id for member in members}
        if strangers:
            raise ValueError(f"no members of the group: {sorted(strangers, key=repr)}")
        withheld: Mapping[TopicPartition, GroupMember] = {}
        if assignor.is_cooperative:
            # The owner of a partition that moves must give it up first. No member gets it now.
            withheld = moving(assignments, members)
            assignments = {
                member_id: [
                    partition
                    for partition in partitions
                    if partition not in withheld or withheld[partition].member_id == member_id
                ]
                for member_id, partitions in assignments.items()
            }
        return LeaderPlan(
            basis,
            classic_messages.encode_assignments(assignments),
            any(owner.instance_id for owner in withheld.values()),
        )


class AssignmentBasis(Value):
    """The topics as an assignment was made for them. If they change, assign again."""

    topics: Mapping[str, Topic | None]
    """By name, all that any member wants; None for one that did not exist."""
    racks: Mapping[int, str]
    """The racks of the nodes that have one."""

    @classmethod
    def of(cls, topics: Iterable[str], cluster: Cluster) -> AssignmentBasis:
        """Return the basis for these topics as they are now. Any thread."""
        racks = cluster.racks()
        return cls({topic: cluster.topic(topic) for topic in sorted(topics)}, racks)

    def described(self) -> dict[str, tuple[PartitionReplicas, ...]]:
        """Return the existing topics, as an assignor gets them."""
        near = _Racks(self.racks)
        return {
            name: tuple(
                PartitionReplicas(partition.id, near[partition.replicas])
                for partition in topic.partitions
            )
            for name, topic in self.topics.items()
            if topic is not None and topic.partitions
        }

    def is_outdated(self, cluster: Cluster) -> bool:
        """Whether partitions, or the racks of their replicas, differ from the cluster's now."""
        racks = cluster.racks()
        then, now = _Racks(self.racks), _Racks(racks)
        return any(
            _differ(topic, then, cluster.topic(name), now)
            for name, topic in self.topics.items()
            if racks != self.racks or topic is not cluster.topic(name)
        )


class _Racks(dict[tuple[int, ...], frozenset[str]]):
    """The racks of replicas, by the ids of their nodes. Many partitions have the same replicas."""

    def __init__(self, racks: Mapping[int, str]) -> None:
        super().__init__()
        self._racks = racks

    def __missing__(self, replicas: tuple[int, ...]) -> frozenset[str]:
        racks = frozenset(self._racks[node_id] for node_id in replicas if node_id in self._racks)
        self[replicas] = racks
        return racks


def _differ(before: Topic | None, then: _Racks, after: Topic | None, now: _Racks) -> bool:
    """Tell whether the partitions of a topic, or the racks of their replicas, have changed."""
    old = () if before is None else before.partitions
    new = () if after is None else after.partitions
    return len(old) != len(new) or any(
        then[was.replicas] != now[its.replicas] for was, its in zip(old, new, strict=True)
    )


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
