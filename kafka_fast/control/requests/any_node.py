"""Links to any node: which of them to use, and when to open one more.

A node may hang and still accept connections, even requests. So if a connection is not made within a
second, another one is begun. A call may also ask another node beside a silent one.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka_fast.config import CommonSettings
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.connection_key import BOOTSTRAP, SECOND_BOOTSTRAP, ConnectionKey
from kafka_fast.control.connections import Connections
from kafka_fast.control.links import Link
from kafka_fast.instants import LONG_AGO, NEVER

__all__ = ["SILENT_NODE_PATIENCE", "AnyNodes"]

SILENT_NODE_PATIENCE = 1.0
"""Seconds without a link, or without an answer, after which another node is tried as well."""


class AnyNodes:
    """The links of one client to any node. Control thread only."""

    def __init__(
        self, settings: CommonSettings, cluster: Cluster, connections: Connections
    ) -> None:
        """Begin without links.

        Args:
            settings: the client's configuration.
            cluster: knows the nodes, once there are metadata.
            connections: the client's.
        """
        self._has_several_servers = len(set(settings.bootstrap_servers)) > 1
        self._cluster = cluster
        self._connections = connections
        self._links = connections.links
        self._more_at = NEVER  # when one more node is connected to; NEVER: none is needed yet

    def link(self, asked: Collection[int] = ()) -> Link | None:
        """Return the link that most likely answers soonest: the one with the fewest requests.

        Args:
            asked: ids of links that have the request already.
        """
        return self.least_busy(link for link in self._links.free if link.id not in asked)

    def least_busy(self, links: Iterable[Link]) -> Link | None:
        """Return the link with the fewest requests; among equals, not a bootstrap link."""
        return min(
            links,
            key=lambda link: (
                self._connections.requests.load(link),
                link.key.is_bootstrap,
                link.id,
            ),
            default=None,
        )

    def opens_at(self, asked: Collection[int] = ()) -> float:
        """Return when a link may be used, or one more is to be opened.

        NEVER: every possible link is being made. Connections have their own deadlines. A deadline
        in the past, returned here, would keep the thread busy.
        """
        if self.link(asked) is not None:
            return LONG_AGO
        idle = self._idle()
        if not idle:
            return NEVER
        retry_at = min(map(self._connections.retry_at, idle))
        patient = self._is_connecting and self._more_at != NEVER
        return max(retry_at, self._more_at) if patient else retry_at

    def want(self, now: float, asked: Collection[int] = ()) -> Link | None:
        """Return a link; if there is none, have one opened."""
        link = self.link(asked)
        if link is None:
            self._connect(now)
        else:
            self._more_at = NEVER
        return link

    def _connect(self, now: float) -> None:
        """Open a link; while another one is being made, only after SILENT_NODE_PATIENCE."""
        is_first = self._more_at == NEVER
        if is_first:
            self._more_at = now + SILENT_NODE_PATIENCE
        idle = self._idle()
        if not idle or (self._is_connecting and (is_first or now < self._more_at)):
            return
        self._more_at = now + SILENT_NODE_PATIENCE
        first = min(idle, key=self._connections.retry_at)
        node = self._cluster.node(first.node_id)
        if node is not None:
            self._connections.want(node, first.role, now, self._cluster.cluster_id)
        else:
            self._connections.want_bootstrap(now, first)

    def _candidates(self) -> list[ConnectionKey]:
        """Return the connections that requests to any node may go over."""
        if not self._cluster.needs_bootstrap:
            return [self._links.request_key(node.id) for node in self._cluster.nodes]
        return [BOOTSTRAP, SECOND_BOOTSTRAP] if self._has_several_servers else [BOOTSTRAP]

    def _idle(self) -> list[ConnectionKey]:
        """Return the candidates that have no link and are not making one."""
        return [
            key
            for key in self._candidates()
            if self._links.link_to(key) is None and not self._connections.is_connecting(key)
        ]

    @property
    def _is_connecting(self) -> bool:
        return any(map(self._connections.is_connecting, self._candidates()))
