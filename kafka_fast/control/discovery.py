"""Finding the cluster and keeping its picture fresh: who asks for metadata, over which link, when.

    cluster (what is due) ─┐
                           ├─► Discovery ─► Metadata requests over any link, connections for them
    links (what is there) ─┘        └─────► on_changes: what an answer changed

Every client has one. It knows nothing of partitions that are produced to or consumed from: what
depends on the picture hears of changes through `on_changes`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka_fast.config import CommonSettings
from kafka_fast.control import link_events
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.links import BOOTSTRAP, Link, Links
from kafka_fast.control.metadata import ClusterChanges
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.protocol.apis.metadata import MetadataResponse

logger = logging.getLogger("kafka_fast.metadata")

NEVER = float("inf")


class Discovery:
    """The metadata of one client. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        cluster: Cluster,
        links: Links,
        *,
        on_changes: Callable[[ClusterChanges, float], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Begin with nothing known.

        Args:
            settings: the client's configuration.
            cluster: takes the answers in.
            links: the client's connections.
            on_changes: called with what an answer changed.
            on_fatal: called when no broker will ever answer this client.
        """
        self._settings = settings
        self._cluster = cluster
        self._links = links
        self._on_changes = on_changes
        self._on_fatal = on_fatal

    # Getters

    def any_link(self) -> Link | None:
        """Return a link for a question to any broker: a node's rather than bootstrap's."""
        links = sorted(self._links.ready, key=lambda link: (link.node_id == BOOTSTRAP, link.id))
        return links[0] if links else None

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        deadline = self._cluster.rebootstrap_deadline()
        due = self._cluster.request_deadline()
        if due == NEVER:
            return deadline
        if any(True for _ in self._links.ready):
            return min(deadline, due)
        return min(deadline, max(due, self._next_connect()))

    def _next_connect(self) -> float:
        """Return when to connect for metadata; never while that is under way.

        What is under way has its own deadlines: another one, long past, would keep the thread busy.
        """
        candidates = self._candidates()
        if any(self._links.is_connecting(node_id) for node_id in candidates):
            return NEVER
        return min(self._links.retry_at(node_id) for node_id in candidates)

    def _candidates(self) -> list[int]:
        """Return the nodes that a connection for metadata may lead to."""
        if self._cluster.needs_bootstrap:
            return [BOOTSTRAP]
        return [node.id for node in self._cluster.nodes]

    # Commands

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._cluster.poll_rebootstrap(now):
            trigger = self._settings.metadata_recovery_rebootstrap_trigger
            self.rebootstrap(f"no broker answered for {trigger} s", now)
        if self._cluster.request_deadline() <= now:
            self._ask(now)

    def want_node(self, node_id: int, now: float) -> Link | None:
        """Return the link to a node; if there is none, have one opened."""
        link = self._links.link_to(node_id)
        node = self._cluster.node(node_id)
        if link is None and node is not None:
            self._links.want_node(node, now, self._cluster.cluster_id)
        return link

    def rebootstrap(self, reason: str, now: float) -> None:
        """Forget the nodes and begin again at bootstrap.servers (KIP-899)."""
        logger.warning("beginning again at bootstrap.servers: %s", reason)
        changes = self._cluster.rebootstrap()
        for node in changes.nodes_removed:
            self._links.forget(node.id, "beginning again at bootstrap.servers", now)
        self._links.want_bootstrap(now)

    # In

    def handle_lost(self, link: Link) -> None:
        """Take note that a link is gone: what it led to may have moved."""
        self._cluster.request_refresh(f"link to node {link.node_id} was lost")

    def handle_connect_failed(self, node_id: int, failed: link_events.Failed, now: float) -> None:
        """Take note that a node cannot be reached."""
        logger.warning("%s", failed.error)
        if failed.rebootstrap and self._settings.metadata_recovery_strategy == "rebootstrap":
            self.rebootstrap(str(failed.error), now)
        elif node_id != BOOTSTRAP:
            self._cluster.request_refresh(f"node {node_id} cannot be reached")

    def _ask(self, now: float) -> None:
        """Send the metadata request that is due, or see to it that there is a link for it."""
        link = self.any_link()
        if link is None:
            self._connect(now)
            return
        request = self._cluster.poll_request(now)
        if request is None:
            return
        versions: list[int] = []  # known once it is sent
        try:
            versions.append(
                self._links.ask(
                    link,
                    request,
                    MetadataResponse,
                    lambda response, then: self._handle_answer(response, versions[0], then),
                    lambda error, then: self._cluster.handle_failure(then),
                    timeout=self._settings.request_timeout,
                )
            )
        except UnsupportedVersionError as error:
            self._cluster.handle_failure(now)
            self._on_fatal(error)

    def _connect(self, now: float) -> None:
        candidates = self._candidates()
        if candidates == [BOOTSTRAP]:
            self._links.want_bootstrap(now)
        elif not any(self._links.is_connecting(node_id) for node_id in candidates):
            self.want_node(min(candidates, key=self._links.retry_at), now)

    def _handle_answer(self, response: MetadataResponse, version: int, now: float) -> None:
        self.apply(self._cluster.handle_response(response, now, version), now)

    def apply(self, changes: ClusterChanges, now: float) -> None:
        """Bring connections in line with what changed in the cluster, and tell the client."""
        if changes.rebootstrap:
            self.rebootstrap("a broker asked for it", now)
            return
        for old, _ in changes.nodes_readdressed:
            self._links.forget(old.id, "it moved to another address", now)
        for node in changes.nodes_removed:
            self._links.forget(node.id, "it left the cluster", now)
        self._on_changes(changes, now)
