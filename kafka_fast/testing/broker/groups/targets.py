"""What each member of a KIP-848 group shall have: the target assignment of one group epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_fast.testing.broker.groups.assignors import ASSIGNORS, Subscriber, TopicPartition
from kafka_fast.testing.broker.groups.reconciliation import ConsumerMember
from kafka_fast.testing.broker.partitions.cluster_topics import Topic


class Targets:
    """The targets of one group's members."""

    def __init__(self) -> None:
        self.epoch = 0  # of the group, when the targets were made
        self._targets: dict[str, frozenset[TopicPartition]] = {}  # by member id
        self._made_at: float | None = None  # None: there is no reason to wait

    def target_of(self, member_id: str) -> frozenset[TopicPartition]:
        """Return what a member shall have."""
        return self._targets.get(member_id, frozenset())

    def is_younger(self, age: float, now: float) -> bool:
        """Tell whether the targets were made less than `age` seconds ago."""
        return self._made_at is not None and now < self._made_at + age

    def make(
        self,
        assignor: str,
        wanted: Sequence[tuple[ConsumerMember, frozenset[bytes]]],
        topics: Mapping[str, Topic],
        epoch: int,
        now: float,
    ) -> None:
        """Make new targets from the old ones.

        Args:
            assignor: its name.
            wanted: the members, each with the ids of the topics that it wants.
            topics: of the cluster, by name.
            epoch: of the group.
            now: the time.
        """
        subscribers = [
            Subscriber(member.member_id, member.instance_id, ids, self.target_of(member.member_id))
            for member, ids in wanted
        ]
        partitions = {
            topics[name].topic_id: len(topics[name].partitions) for name in sorted(topics)
        }
        made = ASSIGNORS[assignor](subscribers, partitions)
        self._targets = {member_id: frozenset(target) for member_id, target in made.items()}
        self.epoch = epoch
        self._made_at = now

    def hand_over(self, former_id: str, member_id: str) -> None:
        """Give a static member that came back what its former self should have."""
        self._targets[member_id] = self._targets.pop(former_id, frozenset())

    def forget_member(self, member_id: str) -> None:
        """Drop the target of a member that has left."""
        self._targets.pop(member_id, None)

    def restart(self, epoch: int) -> None:
        """Stand at the epoch of a group that has become empty: the next target is made at once."""
        self.epoch = epoch
        self._made_at = None
