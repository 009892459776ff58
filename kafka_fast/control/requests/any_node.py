"""Links to any node: which of them to use, and when to open one more.

A node may hang and still accept connections, even requests. So if a connection is not made within a
second, another one is begun. A call may also ask another node beside a silent one.

    known nodes ── all have failed, or none lets us in for 3 s ──► bootstrap.servers as well

All nodes may come back at other addresses, as containers do, and then nobody but bootstrap.servers
knows them (KIP-899). The known nodes are kept and tried meanwhile: perhaps the cluster was only
down for a moment, and what bootstrap.servers names is gone for good. The answer of a bootstrap
server says which nodes there are now.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.connection_key import BOOTSTRAP, SECOND_BOOTSTRAP, ConnectionKey
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.links import Link
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import get_logger

__all__ = ["SILENT_CLUSTER_PATIENCE", "SILENT_NODE_PATIENCE", "AnyNodes"]

logger = get_logger("kafka_fast.connection")

SILENT_NODE_PATIENCE = 1.0
"""Seconds without a link, or without an answer, after which another node is tried as well."""

SILENT_CLUSTER_PATIENCE = 3.0
"""Seconds without a link, or without an answer, after which bootstrap.servers are tried as well,
even if some known node has not been tried yet. There may be a hundred nodes, and all may hang."""


class AnyNodes:
    """The links of one client to any node. Control thread only."""

    def __init__(
        self, settings: CommonSettings, cluster: Cluster, connections: Connections
    ) -> None:
        """Take what knows nodes and opens connections; `want_link` opens the first one.

        Args:
            settings: the client's configuration.
            cluster: knows the nodes, once there are metadata.
            connections: the client's.
        """
        self._has_several_servers = len(set(settings.bootstrap_servers)) > 1
        self._can_rebootstrap = settings.metadata_recovery_strategy == "rebootstrap"
        self._cluster = cluster
        self._connections = connections
        self._links = connections.links
        self._more_at = NEVER  # when one more node is connected to; NEVER: none is needed yet
        self._lacking_since = NEVER  # since when there is no link that may be used
        self._asks_servers = False  # bootstrap.servers as well; the log has it

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
                self._connections.requests.waiting_on(link),
                link.key.is_bootstrap,
                link.id,
            ),
            default=None,
        )

    def opens_at(
        self, now: float, silent: Collection[int] = (), paused: Collection[int] = ()
    ) -> float:
        """Return when a link may be used, or one more is to be opened.

        NEVER: every possible link is being made. Connections have their own deadlines. A deadline
        in the past, returned here, would keep the thread busy.
        """
        if self.link((*silent, *paused)) is not None:
            return LONG_AGO
        servers_at = self._servers_at(silent)
        candidates = self._candidates(with_servers=now >= servers_at)
        idle = self._idle(candidates)
        opens_at = servers_at if now < servers_at else NEVER
        if not idle:
            return opens_at
        retry_at = min(map(self._connections.retry_at, idle))
        patient = self._is_connecting(candidates) and self._more_at != NEVER
        return min(opens_at, max(retry_at, self._more_at) if patient else retry_at)

    def want_link(
        self, now: float, silent: Collection[int] = (), paused: Collection[int] = ()
    ) -> Link | None:
        """Return a link; if there is none, have one opened.

        Args:
            now: the time.
            silent: ids of links that have the request already.
            paused: ids of links on which a broker wants no request for now.
        """
        link = self.link((*silent, *paused))
        if link is None:
            self._connect(now, silent)
        else:
            self._more_at = self._lacking_since = NEVER
            self._asks_servers = False
        return link

    def _connect(self, now: float, silent: Collection[int]) -> None:
        """Open a link; while another one is being made, only after SILENT_NODE_PATIENCE."""
        self._lacking_since = min(self._lacking_since, now)
        is_first = self._more_at == NEVER
        if is_first:
            self._more_at = now + SILENT_NODE_PATIENCE
        candidates = self._candidates(with_servers=now >= self._servers_at(silent))
        idle = self._idle(candidates)
        if not idle or (self._is_connecting(candidates) and (is_first or now < self._more_at)):
            return
        self._more_at = now + SILENT_NODE_PATIENCE
        first = min(idle, key=self._connections.retry_at)
        node = self._cluster.node(first.node_id)
        if node is not None:
            self._connections.want_link(node, first.role, now, self._cluster.cluster_id)
        else:
            self._tell_of_servers()
            self._connections.want_bootstrap(now, first)

    def _tell_of_servers(self) -> None:
        """Log, once for each row of failures, that the known nodes do not help."""
        if not self._asks_servers and not self._cluster.needs_bootstrap:
            self._asks_servers = True
            logger.info("no known node can be reached: asking bootstrap.servers as well")

    def _servers_at(self, silent: Collection[int]) -> float:
        """Return when bootstrap.servers are asked as well as the known nodes; NEVER: not at all.

        LONG_AGO if every known node has failed, or is silent. A link on which a broker has
        announced a pause is a good link.
        """
        if self._cluster.needs_bootstrap:
            return LONG_AGO
        if not self._can_rebootstrap or any(link.id not in silent for link in self._links.ready):
            return NEVER
        missing = [key for key in self._nodes() if self._links.link_to(key) is None]
        if all(map(self._connections.has_failed, missing)):
            return LONG_AGO
        return self._lacking_since + SILENT_CLUSTER_PATIENCE

    def _candidates(self, *, with_servers: bool) -> list[ConnectionKey]:
        """Return the connections that requests to any node may go over, the best ones first."""
        keys = [] if self._cluster.needs_bootstrap else self._nodes()
        if with_servers:
            keys += [BOOTSTRAP, SECOND_BOOTSTRAP] if self._has_several_servers else [BOOTSTRAP]
        return keys

    def _nodes(self) -> list[ConnectionKey]:
        return [self._links.request_key(node.id) for node in self._cluster.nodes]

    def _idle(self, candidates: Iterable[ConnectionKey]) -> list[ConnectionKey]:
        """Return the candidates that have no link and are not making one."""
        return [
            key
            for key in candidates
            if self._links.link_to(key) is None and not self._connections.is_connecting(key)
        ]

    def _is_connecting(self, candidates: Iterable[ConnectionKey]) -> bool:
        return any(map(self._connections.is_connecting, candidates))
