"""What every client's control plane consists of: cluster, links, discovery, and the way in and out.

    events of the data plane ─┐                      ┌─► commands for the data plane
    sockets, look-ups, time ──┼─► ClientControl ─────┼─► sockets and look-ups for the host
    users' wishes ────────────┘    │ ▲               └─► news for the users
                                   ▼ │ links, metadata, failures
                             a client's own parts

`ClientControl` keeps the connections and the picture of the cluster. A subclass for each kind of
client makes parts of its own from `context`. It overrides the methods by which these parts take
events, time and changes.

Thread: control. `now` comes in, and randomness with it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.connections.connection_key import UNKNOWN_NODE, ConnectionKey
from kafka_fast.control.connections.connection_outputs import ConnectionFailed
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.links import Link
from kafka_fast.control.connections.unreadable import UnreadableAnswers
from kafka_fast.control.context import Context, S_co
from kafka_fast.control.diagnosis.troubles import Troubles
from kafka_fast.control.messages import (
    BadAnswer,
    CallInThread,
    ClientCommand,
    GateShut,
    HeartbeatsEnded,
    LinkClosed,
    RawResponse,
    Throttled,
    TransportEvent,
    UnknownCommand,
)
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.discovery import Discovery
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.control.requests.requester import Requester
from kafka_fast.control.view import View
from kafka_fast.errors import InternalError, KafkaError
from kafka_fast.types import TopicPartition

CommandT = TypeVar("CommandT")
EventT = TypeVar("EventT")


class ClientControl(ABC, Generic[S_co, CommandT, EventT]):
    """Policy that all clients share. Control thread only, unless said otherwise.

    `CommandT` and `EventT` are what one kind of client has beside the transport's commands and
    events.
    """

    kind: ClassVar[str]
    """What errors and the log call such a client: "producer"."""

    logger: ClassVar[logging.Logger]

    def __init__(
        self,
        settings: S_co,
        client_id: str,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
        cluster: Cluster,
        unreadable: UnreadableAnswers | None = None,
        mechanism: Mechanism | None = None,
    ) -> None:
        """Make the parts that all clients have; the first `tick` begins to connect.

        Args:
            settings: the client's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            wall_ms: returns the Unix time in ms.
            cluster: the picture of the cluster, empty.
            unreadable: hears of answers that cannot be read; None: nobody is told of them.
            mechanism: for the login over each connection; None: there is none.
        """
        self.troubles = Troubles(self.logger, settings.retry_backoff_max)
        self.cluster = cluster
        self.connections = Connections(
            settings, client_id, random, self.troubles, self, unreadable, mechanism
        )
        self.links = self.connections.links
        self.requester = Requester(settings, self.cluster, self.connections, random)
        self.discovery = self._discovery_class(settings)(
            settings,
            self.cluster,
            self.connections,
            self.requester,
            on_changes=self._handle_changes,
            on_fatal=self._handle_fatal,
        )
        self.context = Context(
            settings,
            client_id,
            random,
            wall_ms,
            Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random),
            self.troubles,
            self.cluster,
            self.connections,
            self.links,
            self.discovery,
            self.requester,
            self._call_in_thread,
        )
        self.view = View(self)
        """What users' threads may read. Any thread."""
        self.fatal: KafkaError | None = None
        """Why this client cannot go on. Any thread."""
        self._commands: deque[ClientCommand | CommandT] = deque()
        self._now = 0.0  # of the last tick or event

    # ---- what a client's own parts do ----

    def _discovery_class(self, settings: Any) -> type[Discovery]:
        """Return what keeps the picture of the cluster fresh, for a client with these settings."""
        return Discovery

    @abstractmethod
    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        """Bring the client's own parts in line with what changed in the cluster."""

    @abstractmethod
    def _tick(self, now: float) -> None:
        """Let the client's own parts do what is due. Due metadata requests were begun before."""

    @abstractmethod
    def _next_deadline(self) -> float:
        """Return when the client's own parts have something to do that no event announces."""

    def _want_metadata(self, now: float) -> None:
        """Tell the cluster which topics are wanted, before metadata are requested."""

    def _poll_own(self) -> ClientCommand | CommandT | None:
        """Return the next command of a part that has commands; None if there is none."""
        return None

    @abstractmethod
    def _handle_own(self, event: EventT, now: float) -> None:
        """Take an event that only this kind of client knows."""

    def _handle_heartbeats_ended(self, token: int, now: float) -> None:
        """Act after the user has not polled for too long. Here: there are no heartbeats."""

    def _partition_of(self, number: int) -> TopicPartition | None:
        """Return the partition behind the id of a queue or a stream."""
        return None

    def _stop(self, error: KafkaError) -> None:
        """Fail everything that waits: this client cannot go on."""

    def _describe_own(self, now: float) -> list[str]:
        """Return the state of the client's own parts, for people. Any thread."""
        return []

    # ---- getters ----

    def link_name(self, link_id: int, node_id: int) -> str:
        """Return what a link leads to, for people."""
        link = self.links.link(link_id)
        if link is not None:
            return str(link.key)
        return "bootstrap" if node_id == UNKNOWN_NODE else f"node {node_id}"

    def describe(self, now: float) -> str:
        """Return the state of things in a few lines, for people. Any thread."""
        return "\n".join(
            [
                f"cluster {self.cluster.cluster_id}, metadata update {self.cluster.update_count}",
                *map(str, self.cluster.nodes),
                *self.connections.describe(now),
                *self._describe_own(now),
            ]
        )

    # ---- time ----

    def begin_turn(self, now: float) -> None:
        """Take the time, before calls of users, events or commands are handled."""
        self.connections.begin_turn(now)

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._now = now
        self.connections.tick(now)
        self._want_metadata(now)
        if self.fatal is None:
            self.discovery.tick(now)
        self._tick(now)
        if self.fatal is None:
            self.requester.tick(now)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        deadline = min(self.connections.next_deadline(), self._next_deadline())
        if self.fatal is not None:
            return deadline
        return min(deadline, self.discovery.next_deadline(), self.requester.next_deadline())

    # ---- out ----

    def _call_in_thread(
        self, function: Callable[[], object], done: Callable[[object, float], None]
    ) -> None:
        self._commands.append(CallInThread(function, done))

    def poll_command(self) -> ClientCommand | CommandT | None:
        """Return the next thing to do; None if there is nothing."""
        if self._commands:
            return self._commands.popleft()
        return self._poll_own() or self.connections.poll_command()

    # ---- in ----

    def handle_event(self, event: TransportEvent | EventT, now: float) -> None:
        """Take an event of the data plane."""
        self._now = now
        match event:
            case RawResponse():
                self.connections.handle_response(event, now)
            case BadAnswer():
                self.connections.handle_bad_answer(
                    event, self._partition_of, self.cluster.topic_name, now
                )
            case LinkClosed():
                self.connections.handle_closed(event, now)
            case GateShut(link_id):
                self.connections.handle_gate_shut(link_id, now)
            case Throttled(link_id, throttle_ms):
                who = self.connections.handle_throttled(link_id, throttle_ms, now)
                self.logger.info("%s has this client wait for %d ms: a quota", who, throttle_ms)
            case HeartbeatsEnded(_, token):
                self._handle_heartbeats_ended(token, now)
            case UnknownCommand(side, kind):
                raise InternalError(f"the data plane knows no command {kind} of its side {side}")
            case _:
                self._handle_own(event, now)

    # ---- in: what the host has done ----

    def handle_connected(self, link_id: int, now: float) -> None:
        """A socket is connected."""
        self.connections.handle_connected(link_id, now)

    def handle_not_connected(self, link_id: int, error: OSError, now: float) -> None:
        """A socket could not be connected."""
        self.connections.handle_connect_failed(link_id, error, now)

    def handle_resolved(
        self, owner: ConnectionKey, host: str, result: tuple[str, ...] | OSError, now: float
    ) -> None:
        """A host's addresses were looked up, or why that failed."""
        self.connections.handle_resolved(owner, host, result, now)

    def handle_work_done(self, link_id: int, result: object, now: float) -> None:
        """A login's work has ended, with its result or error."""
        self.connections.handle_work_done(link_id, result, now)

    # ---- in: what becomes of links ----

    def handle_ready(self, link: Link, now: float) -> None:
        """A link may be used now."""

    def handle_lost(self, link: Link, error: KafkaError | None, now: float) -> None:
        """A ready link is gone, and why; None: nobody had used it."""
        if error is not None:
            self.discovery.handle_lost(link)

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        """A connection could not be made, or its negotiation failed."""
        self.discovery.handle_connect_failed(key, failed, now)
        self.requester.coordinators.handle_connect_failed(key, failed.error, now)

    def _handle_fatal(self, error: KafkaError) -> None:
        """No broker will ever serve this client."""
        self.logger.error("the %s cannot go on: %s", self.kind, error)
        self.fatal = error
        self._stop(error)
