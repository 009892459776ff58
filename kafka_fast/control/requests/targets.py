"""Where a call goes. Users of the requester name a target; `router.py` finds a link to it.

Several nodes may answer one call: a target says for each of the call's items which node that is.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from kafka_fast.values import Value

__all__ = [
    "AllNodes",
    "AnyNode",
    "Controller",
    "Coordinator",
    "CoordinatorKind",
    "Leaders",
    "OneNode",
    "Target",
]


class CoordinatorKind(enum.IntEnum):
    """What a coordinator coordinates: the key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class AnyNode(Value):
    """Any node that can be asked now: the least busy one."""


class Controller(Value):
    """The controller that the metadata name. With KRaft this is a broker that forwards requests."""


class OneNode(Value):
    """The node with this id."""

    node_id: int


class Leaders(Value):
    """The leader of each item; the items are `TopicPartition`s."""


class Coordinator(Value):
    """The coordinator of a group, a transactional id or a share group.

    Attributes:
        kind: what is coordinated.
        key: the name of what is coordinated; None: each item is such a name, and goes to its own
            coordinator.
    """

    kind: CoordinatorKind
    key: str | None = None


class AllNodes(Value):
    """Every node of the cluster. The items are the ids of the nodes that the metadata name."""


Target: TypeAlias = AnyNode | Controller | OneNode | Leaders | Coordinator | AllNodes
