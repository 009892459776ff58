"""Finding the cluster and keeping its picture fresh: who asks for metadata, over which link, when.

    cluster (what is due) ─┐
                           ├─► Discovery ─► Metadata requests over any link, connections for them
    links (what is there) ─┘        └─────► on_changes: what an answer changed

Every client has one. It knows nothing of partitions that are produced to or consumed from: what
depends on the picture hears of changes through `on_changes`.

A node may hang and still accept connections, even requests: whoever has not answered a question
within a second, or not let us in, is asked beside others from then on, and the first answer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kafka_fast.config import CommonSettings
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.connection import ConnectionFailed
from kafka_fast.control.connection_key import BOOTSTRAP, SECOND_BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.instants import NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.links import Links
from kafka_fast.control.metadata import ClusterChanges
from kafka_fast.control.troubles import About
from kafka_fast.errors import BrokerError, KafkaError, UnsupportedVersionError, broker_error
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.metadata import MetadataRequest, MetadataResponse

logger = get_logger("kafka_fast.metadata")


PATIENCE = 1.0
"""Seconds without an answer, or without a link, after which another node is tried as well."""


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
        self._request: MetadataRequest | None = None  # that waits for its first answer
        self._number = 0  # of the request: answers to earlier ones come too late
        self._tried: set[int] = set()  # links that it was sent over
        self._unanswered = 0  # how many of them may still answer
        self._beside_at = NEVER  # when it is sent over one more
        self._more_at = NEVER  # when one more node is connected to; NEVER: none is needed yet

    # Getters

    def any_link(self) -> Link | None:
        """Return a link for a question to any broker: where the fewest other questions wait."""
        return self.least_loaded(self._links.free)

    def least_loaded(self, links: Iterable[Link]) -> Link | None:
        """Return the link that answers soonest, most likely; a node's rather than bootstrap's."""
        return min(
            links,
            key=lambda link: (self._links.questions.load(link), link.key.is_bootstrap, link.id),
            default=None,
        )

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        due = self._beside_at if self._is_asking else self._cluster.request_deadline()
        if next(self._untried(), None) is None:
            due = max(due, self._next_connect())
        return min(due, self._cluster.rebootstrap_deadline())

    @property
    def _is_asking(self) -> bool:
        """Whether a request is in flight; a rebootstrap makes the cluster forget it."""
        return self._request is not None and self._cluster.request_deadline() == NEVER

    def _untried(self) -> Iterator[Link]:
        """Yield the links that may carry the request that is in flight, or the next one."""
        tried = self._tried if self._is_asking else ()
        return (link for link in self._links.free if link.id not in tried)

    def _next_connect(self) -> float:
        """Return when to connect for metadata; never if all that can be done is under way.

        What is under way has its own deadlines: another one, long past, would keep the thread busy.
        """
        idle = self._idle()
        if not idle:
            return NEVER
        retry_at = min(map(self._links.retry_at, idle))
        patient = self._is_connecting and self._more_at != NEVER
        return max(retry_at, self._more_at) if patient else retry_at

    def _candidates(self) -> list[ConnectionKey]:
        """Return the connections that metadata may be asked for over."""
        if not self._cluster.needs_bootstrap:
            return [self._links.request_key(node.id) for node in self._cluster.nodes]
        several = len(set(self._settings.bootstrap_servers)) > 1
        return [BOOTSTRAP, SECOND_BOOTSTRAP] if several else [BOOTSTRAP]

    def _idle(self) -> list[ConnectionKey]:
        """Return the candidates that have no link, nor one under way."""
        return [
            key
            for key in self._candidates()
            if self._links.link_to(key) is None and not self._links.is_connecting(key)
        ]

    @property
    def _is_connecting(self) -> bool:
        return any(map(self._links.is_connecting, self._candidates()))

    # Commands

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._cluster.poll_rebootstrap(now):
            trigger = self._settings.metadata_recovery_rebootstrap_trigger
            self.rebootstrap(f"no broker answered for {trigger} s", now)
        if self._is_asking:
            if now >= self._beside_at:
                self._ask_over(self.least_loaded(self._untried()), now)
        elif self._cluster.request_deadline() <= now:
            self._ask(now)

    def want_node(self, node_id: int, now: float) -> Link | None:
        """Return the link for a node's data; if there is none, have one opened."""
        return self._want(ConnectionKey(Role.DATA, node_id), now)

    def ask_node(self, node_id: int, now: float) -> Link | None:
        """Return the link for requests to a node; if there is none, have one opened."""
        return self._want(self._links.request_key(node_id), now)

    def _want(self, key: ConnectionKey, now: float) -> Link | None:
        link = self._links.link_to(key)
        node = self._cluster.node(key.node_id)
        if link is None and node is not None:
            self._links.want(node, key.role, now, self._cluster.cluster_id)
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
        self._cluster.request_refresh(f"link to {link.key} was lost")

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        """Take note that a node cannot be reached."""
        if failed.rebootstrap and self._settings.metadata_recovery_strategy == "rebootstrap":
            self.rebootstrap(str(failed.error), now)
        elif not key.is_bootstrap:
            self._cluster.request_refresh(f"{key} cannot be reached")

    def _ask(self, now: float) -> None:
        """Send the metadata request that is due, or see to it that there is a link for it."""
        link = self.any_link()
        if link is None:
            self._connect(now)
            return
        self._request = self._cluster.poll_request(now)
        if self._request is not None:
            self._number += 1
            self._tried.clear()
            self._unanswered = 0
            self._ask_over(link, now)

    def _ask_over(self, link: Link | None, now: float) -> None:
        """Send the request in flight over one more link; None: there is none yet."""
        if link is None or self._request is None:
            self._connect(now)
            return
        self._more_at = NEVER
        self._beside_at = now + PATIENCE
        self._tried.add(link.id)
        number = self._number
        versions: list[int] = []  # known once it is sent
        try:
            versions.append(
                self._links.questions.ask(
                    link,
                    self._request,
                    MetadataResponse,
                    lambda response, then: self._handle_answer(
                        number, link, response, versions[0], then
                    ),
                    lambda error, then: self._handle_no_answer(number, then),
                    timeout=self._settings.request_timeout,
                )
            )
            self._unanswered += 1
        except UnsupportedVersionError as error:
            if self._unanswered == 0:
                self._request = None
                self._cluster.handle_failure(now)
                self._on_fatal(error)

    def _connect(self, now: float) -> None:
        """Have a link opened; beside one that is under way only after a while."""
        is_first = self._more_at == NEVER
        if is_first:
            self._more_at = now + PATIENCE
        idle = self._idle()
        if not idle or (self._is_connecting and (is_first or now < self._more_at)):
            return
        self._more_at = now + PATIENCE
        first = min(idle, key=self._links.retry_at)
        if first.is_bootstrap:
            self._links.want_bootstrap(now, first)
        else:
            self._want(first, now)

    def _handle_answer(
        self, number: int, link: Link, response: MetadataResponse, version: int, now: float
    ) -> None:
        if number != self._number or not self._is_asking:
            return  # somebody else was faster
        self._request = None
        changes = self._cluster.handle_response(response, now, version)
        if changes.failure is None:
            self._links.troubles.clear(About.METADATA)
        else:
            self._links.troubles.note(About.METADATA, _said_by(link, changes.failure), now)
        self.apply(changes, now)

    def _handle_no_answer(self, number: int, now: float) -> None:
        if number != self._number or not self._is_asking:
            return
        self._unanswered -= 1
        if self._unanswered == 0:
            self._request = None
            self._cluster.handle_failure(now)

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


def _said_by(link: Link, failure: KafkaError) -> KafkaError:
    """Return why an answer was not used, with the name of the node that gave it."""
    if isinstance(failure, BrokerError):
        return broker_error(failure.code, f"the answer of {link.versions.node} to Metadata")
    named = type(failure)(f"{link.versions.node}: {failure}")
    named.__cause__ = failure
    return named
