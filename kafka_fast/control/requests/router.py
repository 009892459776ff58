"""Which link leads to a target; if there is none, what is in the way.

    AnyNode ───────────► the least busy link, a bootstrap server's at first
    NodeTarget ────────► the node that the metadata name ──► that node's link for requests
    CoordinatorTarget ─► the node that FindCoordinator named ─► its own link

If a link is missing, `want_link` works towards it: it opens connections, refreshes metadata and
looks up coordinators. The requester calls it with each tick until it returns a link.

Thread: control; `why_waiting` may be called from any.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.links import Link
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.messages import pause_seconds
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.requests.any_node import AnyNodes
from kafka_fast.control.requests.call import Call
from kafka_fast.control.requests.targets import (
    AnyNode,
    CoordinatorTarget,
    NodeTarget,
    Place,
    Target,
)
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.values import assert_never

if TYPE_CHECKING:
    from kafka_fast.control.requests.coordinators import Coordinators

__all__ = ["Router"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Router:
    """Finds the links to the targets of one client's calls. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        cluster: Cluster,
        connections: Connections,
        coordinators: Coordinators,
    ) -> None:
        """Take what knows nodes, links and coordinators.

        Args:
            settings: the client's configuration.
            cluster: knows leaders, controller and nodes.
            connections: the client's.
            coordinators: finds and keeps coordinators.
        """
        self._cluster = cluster
        self._connections = connections
        self._links = connections.links
        self._any = AnyNodes(settings, cluster, connections)
        self._coordinators = coordinators
        self._throttled: dict[int, float] = {}  # node id -> until when

    # ---- getters ----

    def place_of(self, call: Call[K, V], key: K) -> Place:
        """Return what decides over which link an item goes: items of one place share a link."""
        target = call.target
        match target:
            case AnyNode():
                return None
            case NodeTarget():
                return target.place(self._cluster, key)
            case CoordinatorTarget():
                return target.name(key)
            case _:
                return assert_never(target)

    def opens_at(self, call: Call[K, V], key: K, now: float) -> float:
        """Return when an item can be sent. LONG_AGO: now; NEVER: after some event."""
        if isinstance(call.target, AnyNode):
            paused = self._paused(now)
            return min(self._any.opens_at(now, paused=paused.keys()), *paused.values(), NEVER)
        link = self._link(call, key)
        return NEVER if link is None else self._pause_of(link, now)

    def another_opens_at(self, asked: Collection[int], now: float) -> float:
        """Return when one more node, beside these links, can be asked or connected to."""
        return self._any.opens_at(now, asked)

    def all_nodes(self, now: float) -> list[int]:
        """Return the ids of all nodes; if the metadata name none yet, ask for metadata."""
        node_ids = (
            [] if self._cluster.needs_bootstrap else [node.id for node in self._cluster.nodes]
        )
        if not node_ids:
            self._cluster.request_refresh("all nodes are to be asked")
        return node_ids

    def _paused(self, now: float) -> dict[int, float]:
        """Return the ids of throttled connections, and until when they are throttled."""
        until = {link.id: self._pause_of(link, now) for link in self._links.free}
        return {link_id: end for link_id, end in until.items() if end > now}

    def _pause_of(self, link: Link, now: float) -> float:
        """Return until when no call goes over a link; LONG_AGO: it may go now.

        A broker that throttles a call means its client: no other call goes to it over any link. One
        that throttles Produce or Fetch reads nothing from that one link.
        """
        of_node = self._throttled.get(link.key.node_id, LONG_AGO)
        until = max(of_node, self._connections.paused_until(link.key))
        return until if until > now else LONG_AGO

    def _link(self, call: Call[K, V], key: K) -> Link | None:
        """Return the ready link to the node behind an item; None if there is none.

        Items that any node may answer have no node behind them.
        """
        target = call.target
        match target:
            case AnyNode():
                return None
            case NodeTarget():
                node_id = target.node(self._cluster, key)
                return None if node_id is None else self._links.link_to(self._key(call, node_id))
            case CoordinatorTarget():
                return self._coordinators.link(target.kind, target.name(key))
            case _:
                return assert_never(target)

    def _key(self, call: Call[K, V], node_id: int) -> ConnectionKey:
        """Return the connection that a call to a node goes over."""
        if call.is_slow:
            return ConnectionKey(Role.SLOW, node_id)
        return self._links.request_key(node_id)

    # ---- commands ----

    def want_link(self, call: Call[K, V], key: K, now: float) -> Link | None:
        """Return the link to send an item over now. If there is none, work towards one."""
        link = self._seek(call, key, now)
        return None if link is None or self._pause_of(link, now) > now else link

    def _seek(self, call: Call[K, V], key: K, now: float) -> Link | None:
        target = call.target
        match target:
            case AnyNode():
                return self._any.want_link(now, paused=self._paused(now).keys())
            case NodeTarget():
                return self._seek_node(target, call, key, now)
            case CoordinatorTarget():
                return self._coordinators.want_link(target.kind, target.name(key), now)
            case _:
                return assert_never(target)

    def _seek_node(
        self, target: NodeTarget[K], call: Call[K, V], key: K, now: float
    ) -> Link | None:
        node_id = target.node(self._cluster, key)
        if node_id is None or self._cluster.node(node_id) is None:
            topic = target.topic(key)
            what = "a partition has no leader" if topic else f"{target.noun} is not known"
            self._cluster.request_refresh(what, topic)
            return None
        return self._want_link(self._key(call, node_id), now)

    def want_another(self, asked: Collection[int], now: float) -> Link | None:
        """Return a link beside these, to any node. If there is none, open one."""
        return self._any.want_link(now, asked)

    def want_data(self, node_id: int, now: float) -> Link | None:
        """Return the link of `Role.DATA` to a node. If there is none, open one."""
        return self._want_link(ConnectionKey(Role.DATA, node_id), now)

    def _want_link(self, key: ConnectionKey, now: float) -> Link | None:
        link = self._links.link_to(key)
        node = self._cluster.node(key.node_id)
        if link is None and node is not None:
            self._connections.want_link(node, key.role, now, self._cluster.cluster_id)
        return link

    def refresh(self, reason: str, topic: str | None) -> None:
        """Have metadata refreshed, of one topic or of all."""
        self._cluster.request_refresh(reason, topic)

    def handle_moved(self, target: Target[K], key: K, link: Link, reason: str, now: float) -> None:
        """Have the coordinator or controller found again: this node may not be it any more."""
        match target:
            case AnyNode():
                pass
            case NodeTarget():
                if target.is_found_again:
                    self._cluster.request_refresh(reason)
            case CoordinatorTarget():
                name, by = target.name(key), link.key.node_id
                self._coordinators.handle_moved(target.kind, name, reason, now, by=by)
            case _:
                assert_never(target)

    def handle_throttle(self, link: Link, throttle_ms: int, now: float) -> None:
        """Send no request to a node for as long as its answer asks (KIP-219)."""
        if throttle_ms > 0:
            until = now + pause_seconds(throttle_ms)
            node_id = link.key.node_id
            self._throttled[node_id] = max(until, self._throttled.get(node_id, LONG_AGO))

    # ---- diagnosis ----

    def noun(self, target: Target[K], key: K) -> str:
        """Return what errors call the node behind a target."""
        if isinstance(target, CoordinatorTarget):
            return f"{target.noun}, {self._coordinators.node(target.kind, target.name(key))},"
        return target.noun

    def why_waiting(self, call: Call[K, V], key: K, *, refused_by: int | None) -> Reason | None:
        """Return why an item cannot be sent; None if nothing is in the way. Any thread.

        Args:
            call: an open call.
            key: the item.
            refused_by: the node that refused the last try.
        """
        target = call.target
        match target:
            case AnyNode():
                return None
            case NodeTarget():
                node_id = target.node(self._cluster, key)
                is_last = node_id is not None and node_id == refused_by
                if is_last and self._link(call, key) is not None:
                    return None
                return target.why_waiting(self._cluster, self._connections, key)
            case CoordinatorTarget():
                return self._coordinators.why_waiting(target.kind, target.name(key))
            case _:
                return assert_never(target)
