"""The groups of one broker: those whose partition of the offsets topic it leads.

Who leads may change at any time; `refresh` notices, takes over the groups that are new here and
lets go of those that are not here any longer. Requests for others are answered NOT_COORDINATOR.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from kafka_fast.errors import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    NotCoordinator,
)
from kafka_fast.testing.broker.groups.classic import ClassicGroup
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.host import Action, Reply
from kafka_fast.testing.broker.groups.offsets import GroupOffsets
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC, GroupSettings
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, Topic
from kafka_fast.testing.broker.partitions.coordinating import Leading, deciding_partition
from kafka_fast.testing.broker.state import ClusterState
from kafka_fast.testing.broker.timers import Timers

T = TypeVar("T")
Group = ClassicGroup | ConsumerGroup


class Coordinator:
    """The group coordinator of one broker."""

    def __init__(self, node_id: int, state: ClusterState, timers: Timers) -> None:
        """Coordinate no group before `refresh` has seen what the broker leads.

        Args:
            node_id: of the broker.
            state: where the groups are kept.
            timers: of the broker; keys that are tuples and begin with a group id are ours.
        """
        self._node_id = node_id
        self._state = state
        self._timers = timers
        self._leading = Leading(node_id, OFFSETS_TOPIC)

    # ---- leading ----

    def refresh(self, now: float) -> None:
        """Take over what the broker leads now, let go of what it does not lead any longer."""
        changed = self._leading.take_changes(self._state)
        if not changed:
            return
        for group in list(self._state.groups.values()):
            index = self._leading.partition_of(group.group_id)
            if index not in changed:
                continue
            self._drop_timers(group.group_id)
            if self._leading.leads(index):
                group.load(self, now)
            elif group.host is self:
                group.unload()

    def forget_all(self) -> None:
        """Forget everything, as a broker does that dies: nobody is answered."""
        self._leading.forget_all()

    def check_coordinates(self, group_id: str, now: float) -> None:
        """Refuse a group that is coordinated elsewhere.

        Raises:
            NotCoordinator
        """
        self.refresh(now)
        if not self._leading.coordinates(group_id):
            raise NotCoordinator(f"node {self._node_id} does not coordinate {group_id!r}")

    def check_named(self, group_id: str, now: float) -> None:
        """Refuse also the empty group id, which only simple consumers may use.

        Raises:
            InvalidGroupId, NotCoordinator
        """
        if not group_id:
            raise InvalidGroupId("the group id is empty")
        self.check_coordinates(group_id, now)

    # ---- groups ----

    def find(self, group_id: str) -> Group | None:
        """Return a group, if there is one."""
        return self._state.groups.get(group_id)

    def group(self, group_id: str, *, create: bool = False) -> Group:
        """Return a group of either protocol; a classic one is made with `create`.

        Raises:
            GroupIdNotFound: there is none, and none is to be made.
        """
        return self.find(group_id) or self.classic(group_id, create=create)

    def classic(self, group_id: str, *, create: bool = False) -> ClassicGroup:
        """Return a classic group.

        Raises:
            GroupIdNotFound: there is none, and none is to be made.
        """
        group = self.find(group_id)
        if group is None and create:
            group = self._state.groups[group_id] = ClassicGroup(group_id, self)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a classic group.")
        return group

    def consumer(self, group_id: str, *, create: bool = False) -> ConsumerGroup:
        """Return a KIP-848 group; one that is made with `create` is here when it is kept.

        Raises:
            GroupIdNotFound: there is none, and none is to be made.
        """
        group = self.find(group_id)
        if create and (group is None or (isinstance(group, ClassicGroup) and group.is_empty)):
            self._drop_timers(group_id)
            return ConsumerGroup(group_id, self)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return group

    def keep_group(self, group: ConsumerGroup) -> None:
        """Let a group be, in the place of an empty classic one, now that it has a member."""
        self._state.groups[group.group_id] = group

    def make_room_for_classic(self, group_id: str) -> None:
        """Drop an empty KIP-848 group, which a classic member takes over.

        Raises:
            InconsistentGroupProtocol: the group has members.
        """
        group = self.find(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        if not group.is_empty:
            raise InconsistentGroupProtocol(f"{group_id!r} has members of the other protocol")
        del self._state.groups[group_id]

    def groups_led(self, now: float) -> list[Group]:
        """Return the groups that are coordinated here."""
        self.refresh(now)
        return [
            group
            for group_id, group in self._state.groups.items()
            if self._leading.coordinates(group_id)
        ]

    def delete_group(self, group_id: str) -> None:
        """Forget a group without members, and what it has committed."""
        self._drop_timers(group_id)
        del self._state.groups[group_id]
        self._state.offsets.pop(group_id, None)
        self._state.changes += 1

    def offsets(self, group_id: str) -> GroupOffsets:
        """Return what a group has committed."""
        return self._state.offsets.setdefault(group_id, GroupOffsets())

    # ---- what groups ask for: see GroupHost ----

    @property
    def settings(self) -> GroupSettings:
        """Return the settings of all groups."""
        return self._state.settings.groups

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Return the topics of the cluster, by name."""
        return self._state.topics

    def schedule(self, key: Hashable, due: float, action: Action) -> None:
        """Run `action` at `due`, instead of what was scheduled under `key`."""
        self._timers.schedule(key, due, action)

    def cancel(self, key: Hashable) -> None:
        """Call off what is scheduled under `key`."""
        self._timers.cancel(key)

    def answer(self, reply: Reply[T] | None, response: T) -> None:
        """Give the response to who waits for it, if anybody does."""
        if reply is not None:
            reply.response = response
            self._state.changes += 1

    def new_uuid(self) -> str:
        """Return an id that nobody has."""
        return self._state.new_uuid()

    def _drop_timers(self, group_id: str) -> None:
        self._timers.cancel_where(lambda key: isinstance(key, tuple) and key[0] == group_id)


def coordinator_of(state: ClusterState, group_id: str) -> Partition | None:
    """Return the partition whose leader coordinates a group, None if there is no such topic."""
    return deciding_partition(state.topics, OFFSETS_TOPIC, group_id)
