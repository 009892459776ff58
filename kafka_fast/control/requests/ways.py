"""Which link leads to a target, and what is in the way of one that none leads to.

    AnyNode ───────► the least busy link, a bootstrap server's at first
    Controller ────► the node that the metadata name ─┐
    Leaders ───────► the leader of each partition ────┼─► that node's link for requests
    OneNode, AllNodes ────────────────────────────────┘
    Coordinator ───► the node that FindCoordinator named ─► its own link

`want` works towards a link that is missing: it has connections opened, metadata refreshed and
coordinators looked up. So it is called again with each tick, until it returns a link.

Thread: control; `silence` may be called from any.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control import silence
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.connection_key import ConnectionKey, Role
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.links import Links
from kafka_fast.control.requests.any_node import AnyNodes
from kafka_fast.control.requests.call import Call
from kafka_fast.control.requests.targets import (
    AllNodes,
    AnyNode,
    Controller,
    Coordinator,
    Leaders,
    OneNode,
    Target,
)
from kafka_fast.control.troubles import Reason
from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from kafka_fast.control.requests.coordinators import Coordinators

__all__ = ["Ways"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

THROTTLE_MAX = 60.0
"""Seconds. No broker has this client wait longer at a time, as in the data plane."""


class Ways:
    """The ways of one client. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        cluster: Cluster,
        links: Links,
        coordinators: Coordinators,
    ) -> None:
        """Begin with what the others know.

        Args:
            settings: the client's configuration.
            cluster: knows leaders, controller and nodes.
            links: the client's connections.
            coordinators: knows, and finds, coordinators.
        """
        self._cluster = cluster
        self._links = links
        self._any = AnyNodes(settings, cluster, links)
        self._coordinators = coordinators
        self._throttled: dict[int, float] = {}  # by node: until when

    # Getters

    def opens_at(self, call: Call[K, V], key: K, now: float) -> float:
        """Return when something can be sent: LONG_AGO: now; NEVER: when something happens."""
        if isinstance(call.target, AnyNode):
            paused = self._paused(now)
            return min(self._any.opens_at(paused.keys()), *paused.values(), NEVER)
        link = self._link(call, key)
        return NEVER if link is None else self._pause_of(link.key.node_id, now)

    def another_opens_at(self, asked: Collection[int]) -> float:
        """Return when one more node can be asked, or connected to, beside these links."""
        return self._any.opens_at(asked)

    def all_nodes(self, now: float) -> list[int]:
        """Return the ids of all nodes; none while no metadata are there, which are asked for."""
        found = [] if self._cluster.needs_bootstrap else [node.id for node in self._cluster.nodes]
        if not found:
            self._cluster.request_refresh("all nodes are to be asked")
        return found

    def _paused(self, now: float) -> dict[int, float]:
        """Return the links over which nothing is to be asked now, and until when."""
        until = {link.id: self._pause_of(link.key.node_id, now) for link in self._links.free}
        return {link_id: it for link_id, it in until.items() if it > now}

    def _pause_of(self, node_id: int, now: float) -> float:
        until = self._throttled.get(node_id, LONG_AGO)
        return until if until > now else LONG_AGO

    def _node_id(self, target: Target, key: object) -> int | None:
        """Return the node behind a target; None if it is not known."""
        match target:
            case OneNode(node_id):
                return node_id
            case AllNodes():
                assert isinstance(key, int)
                return key
            case Controller():
                return self._cluster.controller_id if self._cluster.controller_id >= 0 else None
            case Leaders():
                assert isinstance(key, TopicPartition)
                leader = self._cluster.leader(*key)
                return None if leader is None else leader.id
            case _:
                raise AssertionError(target)

    def _link(self, call: Call[K, V], key: K) -> Link | None:
        """Return the link that leads there; None if there is none now."""
        target = call.target
        if isinstance(target, Coordinator):
            return self._coordinators.link(target.kind, _coordinated(target, key))
        node_id = self._node_id(target, key)
        return None if node_id is None else self._links.link_to(self._key(call, node_id))

    def _key(self, call: Call[K, V], node_id: int) -> ConnectionKey:
        """Return the connection that a call to a node goes over."""
        if call.is_slow:
            return ConnectionKey(Role.SLOW, node_id)
        return self._links.request_key(node_id)

    # Commands

    def want(self, call: Call[K, V], key: K, now: float) -> Link | None:
        """Return the link to send over now; if there is none, work towards one."""
        link = self._seek(call, key, now)
        return None if link is None or self._pause_of(link.key.node_id, now) > now else link

    def _seek(self, call: Call[K, V], key: K, now: float) -> Link | None:
        target = call.target
        if isinstance(target, AnyNode):
            return self._any.want(now, self._paused(now).keys())
        if isinstance(target, Coordinator):
            return self._coordinators.want(target.kind, _coordinated(target, key), now)
        node_id = self._node_id(target, key)
        if node_id is None or self._cluster.node(node_id) is None:
            if isinstance(target, Leaders):
                assert isinstance(key, TopicPartition)
                self._cluster.request_refresh("a partition has no leader", key.topic)
            else:
                self._cluster.request_refresh(f"{self.noun(target, key)} is not known")
            return None
        return self._want_link(self._key(call, node_id), now)

    def want_another(self, asked: Collection[int], now: float) -> Link | None:
        """Return a link beside these that any request may go over; if there is none, open one."""
        return self._any.want(now, asked)

    def want_data(self, node_id: int, now: float) -> Link | None:
        """Return the link for a node's data; if there is none, have one opened."""
        return self._want_link(ConnectionKey(Role.DATA, node_id), now)

    def _want_link(self, key: ConnectionKey, now: float) -> Link | None:
        link = self._links.link_to(key)
        node = self._cluster.node(key.node_id)
        if link is None and node is not None:
            self._links.want(node, key.role, now, self._cluster.cluster_id)
        return link

    def refresh(self, reason: str, topic: str | None) -> None:
        """Have new metadata asked for; of a topic, or of all."""
        self._cluster.request_refresh(reason, topic)

    def handle_moved(
        self, target: Target, key: object, link: Link, reason: str, now: float
    ) -> None:
        """Take note that a node is not, or not any more, what the target names."""
        if isinstance(target, Coordinator):
            name = _coordinated(target, key)
            self._coordinators.handle_moved(target.kind, name, reason, now, by=link.key.node_id)
        elif isinstance(target, Controller):
            self._cluster.request_refresh(reason)

    def handle_throttle(self, link: Link, throttle_ms: int, now: float) -> None:
        """Ask a node nothing for as long as its last answer wants (KIP-219)."""
        if throttle_ms > 0:
            until = now + min(throttle_ms / 1000, THROTTLE_MAX)
            node_id = link.key.node_id
            self._throttled[node_id] = max(until, self._throttled.get(node_id, LONG_AGO))
            self._links.handle_throttled(link.id, throttle_ms, now)

    # Diagnosis

    def noun(self, target: Target, key: object) -> str:
        """Return what to call the node behind a target."""
        match target:
            case AnyNode():
                return "the broker"
            case Controller():
                return "the controller"
            case Leaders():
                return "its leader"
            case Coordinator(kind, _):
                return (
                    f"its coordinator, {self._coordinators.node(kind, _coordinated(target, key))},"
                )
            case OneNode(node_id):
                return f"node {node_id}"
            case _:
                return "the node"

    def silence(self, call: Call[K, V], key: K, *, refused_by: int | None) -> Reason | None:
        """Return what is in the way; None if the node that refused last is asked again. Any thread.

        Args:
            call: that is open.
            key: the item.
            refused_by: the node that refused last.
        """
        match call.target:
            case Leaders():
                assert isinstance(key, TopicPartition)
                leader = self._cluster.leader(*key)
                is_last = leader is not None and leader.id == refused_by
                if is_last and self._link(call, key) is not None:
                    return None
                return silence.reason(self._cluster, self._links, key)
            case Coordinator(kind, _) as target:
                return self._coordinators.silence(kind, _coordinated(target, key))
            case _:
                return None


def _coordinated(target: Coordinator, key: object) -> str:
    """Return the name of what is coordinated."""
    return str(key) if target.key is None else target.key
