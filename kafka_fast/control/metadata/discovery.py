"""Keeps the picture of the cluster fresh, and connections in line with it.

    cluster (what is due) ─► Discovery ─ a call to any node ─► requester
                                 ▲                                 │
                                 └── the answer ◄──────────────────┘ ─► on_changes

Every client has one `Discovery`. The cluster's schedule says when metadata are due. A request that
fails is not repeated here: the schedule counts the failure, and decides when to ask again.
Discovery does not know which partitions are produced to or consumed from. The client's own parts
hear of changes through `on_changes`.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.connections.connection_outputs import ConnectionFailed
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.links import Link
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.requester import Requester
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import BrokerError, KafkaError, UnsupportedVersionError, broker_error
from kafka_fast.instants import LONG_AGO
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.schema import Request, Response

logger = get_logger("kafka_fast.metadata")

ASK_AGAIN_AFTER = 3.0
"""Seconds between two refreshes for the sake of a node that lets nobody in."""


class Discovery(Call[str, ClusterChanges]):
    """The metadata of one client. Control thread only."""

    request_class: ClassVar[type[Request]] = MetadataRequest
    response_class: ClassVar[type[Response]] = MetadataResponse
    read_later: ClassVar[str | None] = "topics"
    max_tries = 1
    beside_after = SILENT_NODE_PATIENCE

    def __init__(
        self,
        settings: CommonSettings,
        cluster: Cluster,
        connections: Connections,
        requester: Requester,
        *,
        on_changes: Callable[[ClusterChanges, float], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Open the call for metadata; `tick` adds each request when it is due.

        Args:
            settings: the client's configuration.
            cluster: merges the answers.
            connections: the client's.
            requester: sends the requests.
            on_changes: called with what an answer changed, and the time.
            on_fatal: called when no broker will ever answer this client.
        """
        super().__init__(AnyNode(), timeout=settings.request_timeout)
        self._settings = settings
        self._cluster = cluster
        self._connections = connections
        self._outages = connections.troubles.outages
        self._on_changes = on_changes
        self._on_fatal = on_fatal
        self._request: MetadataRequest | None = None  # the one that has no answer yet
        self._asked_again_at = LONG_AGO  # because a node lets nobody in
        self._open = requester.open_call(self)

    # ---- time ----

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if self._cluster.is_merging:
            return LONG_AGO
        deadline = min(
            self._cluster.rebootstrap_deadline(), self._ask_again_at(), self._outages.look_at()
        )
        if ONLY not in self._open:
            deadline = min(deadline, self._cluster.request_deadline())
        return deadline

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._cluster.is_merging:
            self.apply(self._cluster.continue_response(now), now)
        self._cluster.excuse(self._connections.all_paused_until())
        if self._cluster.poll_rebootstrap(now):
            trigger = self._settings.metadata_recovery_rebootstrap_trigger
            self.rebootstrap(f"no broker answered for {trigger} s", now)
        if self._outages.look_at() <= now:
            self._outages.note_look(now)
            self._cluster.request_refresh("a node that is away may be back")
        if self._ask_again_at() <= now:
            self._asked_again_at = now
            self._cluster.request_refresh(f"{self._connections.oldest_try()[0]} lets nobody in")
        if ONLY not in self._open and self._cluster.request_deadline() <= now:
            self._open.add_item(ONLY)

    def _ask_again_at(self) -> float:
        """Return when metadata are asked for because a node lets nobody in.

        The node may have moved, or lead partitions no more, long before the attempt is given up
        (socket.connection.setup.timeout.ms).
        """
        _, since = self._connections.oldest_try()
        return max(since + SILENT_NODE_PATIENCE, self._asked_again_at + ASK_AGAIN_AFTER)

    # ---- what changed ----

    def rebootstrap(self, reason: str, now: float) -> None:
        """Forget the nodes and begin again at bootstrap.servers (KIP-899)."""
        logger.warning("beginning again at bootstrap.servers: %s", reason)
        self._open.discard(ONLY)
        self._request = None
        changes = self._cluster.rebootstrap()
        for node in changes.nodes_removed:
            self._connections.close_node(node.id, "beginning again at bootstrap.servers", now)
        self._connections.want_bootstrap(now)

    def handle_lost(self, link: Link) -> None:
        """Ask for metadata: the node of a lost link may have moved, or lead partitions no more."""
        self._cluster.request_refresh(f"link to {link.key} was lost")

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        """Ask for metadata, because a node cannot be reached.

        If another broker answers at its address (KIP-1242), begin again at bootstrap.servers,
        unless metadata.recovery.strategy forbids it.
        """
        if failed.rebootstrap and self._settings.metadata_recovery_strategy == "rebootstrap":
            self.rebootstrap(str(failed.error), now)
        elif not key.is_bootstrap:
            self._cluster.request_refresh(f"{key} cannot be reached")

    def apply(self, changes: ClusterChanges, now: float) -> None:
        """Bring connections in line with what changed in the cluster, and tell the client."""
        if changes.rebootstrap:
            self.rebootstrap("a broker asked for it", now)
            return
        for old, _ in changes.nodes_readdressed:
            self._connections.close_node(old.id, "it moved to another address", now)
        for node in changes.nodes_removed:
            self._connections.close_node(node.id, "it left the cluster", now)
        self._on_changes(changes, now)

    # ---- the call ----

    def settle_unsent(self, item: str, now: float) -> Meaning[ClusterChanges] | None:
        """Take the due request from the cluster; none may be due any more.

        A second node, asked beside a silent one, gets the same request.
        """
        if self._request is None:
            self._request = self._cluster.poll_request(now)
        return None if self._request is not None else Done(ClusterChanges())

    def build(self, items: Sequence[str], version: int) -> Request:
        """Return the request that is due."""
        assert self._request is not None
        return self._request

    def read(
        self, answer: Any, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ClusterChanges]]]:
        """Return what the answer changes."""
        self._request = None
        changes = self._cluster.handle_response(
            self._metadata_of(answer),
            source.now,
            source.version,
            is_bootstrap=source.is_bootstrap,
            has_nodes=any(not link.key.is_bootstrap for link in self._connections.links.ready),
        )
        if changes.failure is None:
            self._connections.troubles.end_trouble(About.METADATA, source.now)
            self._outages.handle_nodes({node.id for node in self._cluster.nodes}, source.now)
        else:
            error = _said_by(source.node, changes.failure)
            self._connections.troubles.note(About.METADATA, error, source.now)
        yield ONLY, Done(changes)

    def _metadata_of(self, answer: Any) -> MetadataResponse:
        """Return an answer as metadata."""
        metadata: MetadataResponse = answer
        return metadata

    def handle_done(self, item: str, value: ClusterChanges, now: float) -> None:
        """Follow what has changed."""
        self.apply(value, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Let the schedule decide when to ask again; an unsupported version is fatal."""
        self._request = None
        self._cluster.handle_failure(now)
        if isinstance(error, UnsupportedVersionError):
            self._on_fatal(error)


def _said_by(node: str, failure: KafkaError) -> KafkaError:
    """Return why an answer was not used, with the name of the node that gave it."""
    if isinstance(failure, BrokerError):
        return broker_error(failure.code, f"the answer of {node} to Metadata")
    named = type(failure)(f"{node}: {failure}")
    named.__cause__ = failure
    return named
