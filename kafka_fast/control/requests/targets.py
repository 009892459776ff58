"""Where a call goes. Users of the requester name a target; `router.py` finds a link to it.

    Target[K] ┬ AnyNode ──────────────────────────────────── whichever can be asked first
              ├ NodeTarget[K] ────────── node(cluster, key) ─ Controller, OneNode, Leaders, AllNodes
              └ CoordinatorTarget[K] ─── name(key) ────────── Coordinator, CoordinatorOfEach

`K` is the type of the call's items. A target says for each item which node answers. One more target
is one more class here, as long as the metadata or FindCoordinator name its node.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.diagnosis import waiting_reasons
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

__all__ = [
    "AllNodes",
    "AnyNode",
    "Controller",
    "Coordinator",
    "CoordinatorKind",
    "CoordinatorOfEach",
    "CoordinatorTarget",
    "Leaders",
    "NodeTarget",
    "OneNode",
    "Place",
    "Target",
]

K = TypeVar("K")
K_contra = TypeVar("K_contra", contravariant=True)

Place: TypeAlias = int | str | None
"""A node's id, or the name of what has no node yet; None for any node and the controller."""


class AnyNode(Value):
    """Any node that can be asked now: the least busy one."""

    noun: ClassVar[str] = "the broker"


# ---- nodes that the metadata name ----


class NodeTarget(Value, Generic[K_contra]):
    """Nodes that the metadata name."""

    role: ClassVar[str] = ""
    """What the node is to an item, for errors; "" if it is a node like any other."""
    is_found_again: ClassVar[bool] = False
    """Other metadata may name another node for the same item: if the node says that it is not the
    one, or is lost, they are asked for."""

    @property
    def noun(self) -> str:
        """What errors call the node."""
        return self.role or "the node"

    def node(self, cluster: Cluster, key: K_contra) -> int | None:
        """Return the id of the node that answers for an item; None if it is not known."""
        raise NotImplementedError

    def place(self, cluster: Cluster, key: K_contra) -> Place:
        """Return what decides over which link an item goes: items of one place share a link."""
        return self.node(cluster, key)

    def topic(self, key: K_contra) -> str | None:
        """Return the topic whose metadata name the node; None: those of the whole cluster do."""
        return None

    def why_waiting(
        self, cluster: Cluster, connections: Connections, key: K_contra
    ) -> Reason | None:
        """Return what is in the way of an item; None: nothing is known. Any thread."""
        node_id = self.node(cluster, key)
        node = None if node_id is None else cluster.node(node_id)
        if node is None:
            return Reason(f"{self.noun} is not known yet")
        return waiting_reasons.why_waiting_for_node(connections, node, self.role)


class Controller(NodeTarget[object]):
    """The controller that the metadata name. With KRaft this is a broker that forwards requests."""

    role = "the controller"
    is_found_again = True

    def node(self, cluster: Cluster, key: object) -> int | None:
        """Return the controller's id; None if there is none."""
        return cluster.controller_id if cluster.controller_id >= 0 else None


class OneNode(NodeTarget[object]):
    """The node with this id."""

    node_id: int

    @property
    def noun(self) -> str:
        """What errors call the node."""
        return f"node {self.node_id}"

    def node(self, cluster: Cluster, key: object) -> int:
        """Return the id, whether the metadata name it or not."""
        return self.node_id


class AllNodes(NodeTarget[int]):
    """Every node of the cluster. The items are the ids of the nodes that the metadata name."""

    def node(self, cluster: Cluster, key: int) -> int:
        """Return the item itself."""
        return key


class Leaders(NodeTarget[TopicPartition]):
    """The leader of each item."""

    role = "its leader"

    def node(self, cluster: Cluster, key: TopicPartition) -> int | None:
        """Return the leader's id; None if there is none, or its address is not known."""
        leader = cluster.leader(*key)
        return None if leader is None else leader.id

    def place(self, cluster: Cluster, key: TopicPartition) -> int | str:
        """Return the leader's id, or the topic: one refresh is for all of its partitions."""
        node_id = self.node(cluster, key)
        return key.topic if node_id is None else node_id

    def topic(self, key: TopicPartition) -> str:
        """Return the partition's topic."""
        return key.topic

    def why_waiting(
        self, cluster: Cluster, connections: Connections, key: TopicPartition
    ) -> Reason:
        """Return what stands between this client and the partition's leader. Any thread."""
        return waiting_reasons.why_waiting_for_leader(cluster, connections, key)


# ---- nodes that FindCoordinator names ----


class CoordinatorKind(enum.IntEnum):
    """What a coordinator coordinates: the key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class CoordinatorTarget(Value, Generic[K_contra]):
    """Coordinators of one kind."""

    noun: ClassVar[str] = "its coordinator"
    kind: CoordinatorKind
    """What is coordinated."""

    def name(self, key: K_contra) -> str:
        """Return the name of what is coordinated: that is what the node depends on."""
        raise NotImplementedError

    def keys_of(self, name: str, keys: Collection[K]) -> list[K]:
        """Return those of a call's items that depend on the coordinator of this name."""
        raise NotImplementedError


class Coordinator(CoordinatorTarget[object]):
    """The coordinator of one group, transactional id or share group."""

    key: str
    """The name of what is coordinated."""

    def name(self, key: object) -> str:
        """Return the same name for all items."""
        return self.key

    def keys_of(self, name: str, keys: Collection[K]) -> list[K]:
        """Return all items or none."""
        return list(keys) if name == self.key else []


class CoordinatorOfEach(CoordinatorTarget[str]):
    """The coordinator of each item. The items are names of what is coordinated."""

    def name(self, key: str) -> str:
        """Return the item itself."""
        return key

    def keys_of(self, name: str, keys: Collection[Any]) -> list[Any]:
        """Return the one item of this name, without a look at the others: there may be many."""
        return [name] if name in keys else []


Target: TypeAlias = AnyNode | NodeTarget[K] | CoordinatorTarget[K]
"""Where the items of a call go; `K` is their type."""
