"""The brokers that coordinate groups and transactional ids: found, kept, and found again.

    want(kind, key) ─► known ─► its link for coordination
                         │ no          │ NOT_COORDINATOR, the connection broke
                         └─► FindCoordinator ◄──┘  the keys of one kind in one request (KIP-699)

A coordinator has a connection of its own, so that a heartbeat never stands behind a Fetch.
Everything that one node coordinates shares this connection.

The brokers are also asked again who coordinates while a known coordinator lets nobody in, or a
member says that it has been silent for long (`look_again`). The coordinator may have died without
a word, and another broker may have taken its place long before the connection is given up.

Thread: control; getters may be called from any.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

from kafka_fast.control.connections.backoff import Backoff, KeyedBackoff
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.links import Link
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.diagnosis.troubles import About, Reason, Subject
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import Node, is_address
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, Refused, Retry
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.targets import (
    AnyNode,
    CoordinatorKind,
)
from kafka_fast.errors import KafkaError, ProtocolError, broker_error
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator as FoundCoordinator,
)
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

__all__ = ["Coordinators"]

logger = get_logger("kafka_fast.coordinator")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FIRST_VERSION_WITH_KEYS = 4

LOOK_AGAIN_AFTER = 3.0
"""Seconds between two look-ups of a coordinator that lets nobody in."""

UNUSED_KEPT = 10_000
"""Coordinators that are remembered though nobody waits for them, about half a KiB each. An admin
client may be asked about millions of groups in its life."""


class CallSender(Protocol):
    """What `Coordinators` needs of the requester."""

    def open_call(
        self, call: Call[K, V], items: Sequence[K] | None = None, *, deadline: float = NEVER
    ) -> OpenCall[K, V]:
        """Ask about these items until each is answered, refused, given up or too late."""

    def fail_coordinated(
        self, kind: CoordinatorKind, name: str, error: KafkaError, now: float
    ) -> None:
        """Fail the items that have no coordinator, and will have none."""


class FindCoordinator(Call[str, Node]):
    """The look-ups of one kind of coordinator; the items are keys."""

    request_class = FindCoordinatorRequest
    response_class = FindCoordinatorResponse
    beside_after = SILENT_NODE_PATIENCE

    def __init__(
        self,
        kind: CoordinatorKind,
        *,
        timeout: float,
        on_found: Callable[[str, Node, float], None],
        on_refused: Callable[[str, KafkaError, float], None],
    ) -> None:
        """Take the kind, and whom to tell what became of each key.

        Args:
            kind: the kind of coordinators.
            timeout: seconds for one try.
            on_found: called with a key, its coordinator and the time.
            on_refused: called with a key, why it will have none, and the time.
        """
        super().__init__(AnyNode(), timeout=timeout)
        self._kind = kind
        self._on_found = on_found
        self._on_refused = on_refused

    def describe(self, item: str) -> str:
        """Return the coordinator that is looked for, as text."""
        return f"coordinator of {noun(self._kind)} {item!r}"

    def subject(self, item: str) -> Subject:
        """Keep troubles under `About.COORDINATOR`."""
        return About.COORDINATOR

    def max_items(self, version: int) -> int | None:
        """Return how many keys a request takes."""
        return None if version >= FIRST_VERSION_WITH_KEYS else 1

    def build(self, items: Sequence[str], version: int) -> FindCoordinatorRequest:
        """Return the request for these keys."""
        if version >= FIRST_VERSION_WITH_KEYS:
            return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=list(items))
        return FindCoordinatorRequest(key_type=self._kind, key=items[0])

    def read(
        self, answer: FindCoordinatorResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterable[tuple[str, Meaning[Node]]]:
        """Return the node behind each key."""
        if source.version < FIRST_VERSION_WITH_KEYS:
            yield items[0], self._read(items[0], answer)
        for coordinator in answer.coordinators:
            yield coordinator.key, self._read(coordinator.key, coordinator)

    def _read(self, key: str, result: FoundCoordinator | FindCoordinatorResponse) -> Meaning[Node]:
        if result.error_code:
            words = described(result.error_code, "FindCoordinator", result.error_message)
            refusal = broker_error(result.error_code, f"{self.describe(key)}: {words}")
            return Retry(refusal) if refusal.retriable else Refused(refusal)
        if not is_address(result.host, result.port):
            return Retry(
                ProtocolError(
                    f"the {self.describe(key)} has no address that can be used: "
                    f"node {result.node_id} at {result.host!r}, port {result.port}"
                )
            )
        return Done(Node(result.node_id, result.host, result.port))

    def handle_done(self, item: str, value: Node, now: float) -> None:
        """Pass the node on."""
        self._on_found(item, value, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Pass on that there is no coordinator for this client."""
        self._on_refused(item, error, now)


class Coordinators:
    """The coordinators that one client has asked for. Control thread only."""

    def __init__(
        self,
        requester: CallSender,
        cluster: Cluster,
        connections: Connections,
        backoff: Backoff,
        *,
        timeout: float,
    ) -> None:
        """Take what look-ups and links need; nothing is looked up before `want_link`.

        Args:
            requester: sends the look-ups; fails the items that wait for a refused coordinator.
            cluster: knows the cluster's id, which brokers are asked to confirm (KIP-1242).
            connections: the client's.
            backoff: the wait before a coordinator that moved or was refused is looked for again.
            timeout: seconds for one look-up.
        """
        self._requester = requester
        self._cluster = cluster
        self._connections = connections
        self._links = connections.links
        self._pace: KeyedBackoff[tuple[CoordinatorKind, str]] = KeyedBackoff(backoff)
        self._timeout = timeout
        self._lookups: dict[CoordinatorKind, OpenCall[str, Node]] = {}
        self._nodes: dict[tuple[CoordinatorKind, str], Node] = {}
        self._followers: dict[tuple[CoordinatorKind, str], Callable[[KafkaError], None]] = {}
        self._wanted: set[tuple[CoordinatorKind, str]] = set()  # followed, and wanted since
        # Those that nobody waits for, the one that was waited for last at the end.
        self._unused: dict[tuple[CoordinatorKind, str], None] = {}
        # Known coordinators to which there is no link yet: when each is looked up again.
        self._linkless: dict[tuple[CoordinatorKind, str], float] = {}

    # ---- getters ----

    def node(self, kind: CoordinatorKind, key: str) -> Node | None:
        """Return the coordinator, if it is known."""
        return self._nodes.get((kind, key))

    def link(self, kind: CoordinatorKind, key: str) -> Link | None:
        """Return the ready link to a coordinator, or None."""
        node = self.node(kind, key)
        return None if node is None else self._links.link_to(_key(node))

    def why_waiting(self, kind: CoordinatorKind, key: str) -> Reason | None:
        """Return why a coordinator cannot be asked now; None if it can. Any thread."""
        troubles = self._connections.troubles
        node = self.node(kind, key)
        if node is None:
            trouble = troubles.now(About.COORDINATOR) or troubles.now(About.GROUP)
            if trouble is not None:
                text = f"it has no coordinator yet: {trouble}"
                return Reason(text, trouble.error, is_expected=not trouble.is_told)
            return Reason("its coordinator is looked for")
        if self.link(kind, key) is not None:
            return None
        trouble = troubles.now(_key(node))
        if trouble is None:
            return Reason(f"no connection to its coordinator, {node}, yet")
        return Reason(f"no connection to its coordinator: {trouble}", trouble.error)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return min(self._linkless.values(), default=NEVER)

    # ---- commands ----

    def follow(
        self, kind: CoordinatorKind, key: str, on_refused: Callable[[KafkaError], None]
    ) -> None:
        """Look for a coordinator again as soon as it is lost, without waiting for `want_link`.

        This begins with the first `want_link`. A member calls that only at its next try, and by
        then the coordinator is found.

        Args:
            kind: the kind of coordinator.
            key: what it coordinates.
            on_refused: called with why this client has no coordinator. The search then ends until
                the next `want_link`.
        """
        self._followers[kind, key] = on_refused

    def want_link(self, kind: CoordinatorKind, key: str, now: float) -> Link | None:
        """Return the ready link to a coordinator; if there is none, work towards one."""
        if (kind, key) in self._followers:
            self._wanted.add((kind, key))
        self._unused.pop((kind, key), None)
        node = self.node(kind, key)
        if node is None:
            self._look_up(kind, key)
            return None
        link = self.link(kind, key)
        if link is None:
            self._linkless.setdefault((kind, key), now + SILENT_NODE_PATIENCE)
            self._connections.want_link(node, Role.COORDINATOR, now, self._cluster.cluster_id)
        return link

    def look_again(self, kind: CoordinatorKind, key: str) -> None:
        """Ask the brokers again which node a known coordinator is. Until they answer, it stays."""
        if self.node(kind, key) is not None:
            self._look_up(kind, key)

    def release_keys(self, kind: CoordinatorKind, names: Iterable[str]) -> None:
        """Look no more for coordinators that nobody waits for, and forget the oldest of them.

        Those that are followed stay.

        Args:
            kind: the kind of coordinators.
            names: of what they coordinate.
        """
        lookups = self._lookups.get(kind)
        for name in names:
            if (kind, name) not in self._wanted:
                if lookups is not None:
                    lookups.discard(name)
                self._unused.pop((kind, name), None)
                self._unused[kind, name] = None
        while len(self._unused) > UNUSED_KEPT:
            oldest = next(iter(self._unused))
            del self._unused[oldest]
            self._nodes.pop(oldest, None)
            self._linkless.pop(oldest, None)
            self._pace.handle_success(oldest)

    def tick(self, now: float) -> None:
        """Look up coordinators again to which no link is made in time."""
        for (kind, key), due in list(self._linkless.items()):
            if self.node(kind, key) is None or self.link(kind, key) is not None:
                del self._linkless[kind, key]
            elif now >= due:
                self._linkless[kind, key] = now + LOOK_AGAIN_AFTER
                self.look_again(kind, key)

    def _look_up(self, kind: CoordinatorKind, key: str) -> None:
        lookups = self._lookups.get(kind)
        if lookups is None:
            call = FindCoordinator(
                kind,
                timeout=self._timeout,
                on_found=lambda name, node, now: self._handle_found(kind, name, node, now),
                on_refused=lambda name, error, now: self._refuse(kind, name, error, now),
            )
            lookups = self._lookups[kind] = self._requester.open_call(call)
        if key not in lookups:
            lookups.add_item(key, not_before=self._pace.ready_at((kind, key)))

    # ---- in ----

    def handle_moved(
        self, kind: CoordinatorKind, key: str, reason: str, now: float, *, by: int | None = None
    ) -> None:
        """Forget a coordinator that has moved or cannot be reached.

        If a follower wants it (`follow`), it is looked up again after a backoff.

        Args:
            kind: the kind of coordinator.
            key: what it should coordinate.
            reason: why, for the log.
            now: the time.
            by: the node that says so. If another node has been found meanwhile, nothing changes.
                None: it is about the present one.
        """
        node = self.node(kind, key)
        if node is not None and by in (None, node.id):
            logger.info("%s %s: its coordinator is lost: %s", noun(kind), key, reason)
            del self._nodes[kind, key]
            self._pace.handle_failure((kind, key), now)
            if (kind, key) in self._wanted:
                self._look_up(kind, key)

    def handle_connect_failed(self, failed: ConnectionKey, error: KafkaError, now: float) -> None:
        """Forget each coordinator whose connection could not be made."""
        for (kind, key), node in list(self._nodes.items()):
            if failed == _key(node):
                self.handle_moved(kind, key, str(error), now)

    def refuse_coordinator(
        self, kind: CoordinatorKind, key: str, error: KafkaError, now: float
    ) -> None:
        """Forget a coordinator that this client cannot use; fail the items that wait for it."""
        self._nodes.pop((kind, key), None)
        self._refuse(kind, key, error, now)

    def _handle_found(self, kind: CoordinatorKind, key: str, node: Node, now: float) -> None:
        self._pace.handle_success((kind, key))
        if self.node(kind, key) != node:
            logger.info("%s %s: its coordinator is %s", noun(kind), key, node)
        self._nodes[kind, key] = node
        if (kind, key) in self._wanted:
            self.want_link(kind, key, now)  # a follower waits for the link

    def _refuse(self, kind: CoordinatorKind, key: str, error: KafkaError, now: float) -> None:
        """Fail the items that wait for this coordinator; the next `want_link` looks for it."""
        self._pace.handle_failure((kind, key), now)
        self._requester.fail_coordinated(kind, key, error, now)
        self._wanted.discard((kind, key))
        if (kind, key) in self._followers:
            self._followers[kind, key](error)


def _key(node: Node) -> ConnectionKey:
    """Return the key of the connection to a node as a coordinator."""
    return ConnectionKey(Role.COORDINATOR, node.id)


def noun(kind: CoordinatorKind) -> str:
    """Return what a kind of coordinator coordinates, in a word."""
    return {
        CoordinatorKind.GROUP: "group",
        CoordinatorKind.TRANSACTION: "transactional id",
        CoordinatorKind.SHARE: "share group",
    }[kind]
