"""The connections of one client: made, kept, and closed.

    want, want_bootstrap ─► Connection ─► OpenLink … ConnectionReady ─► link

There is one `Connection` for each `ConnectionKey`. The ids of their links are given here.
`requests` holds the requests that wait for an answer.

A broker answers one request of a connection after the other, and may hold a Fetch back until there
is something to read. So a link that carries Fetch requests is *held*: the control plane's requests
to its node go over a connection of `Role.CONTROL`, which the first such request opens. As long as
a node's data connection carries no Fetch, it carries those requests too.
"""

from __future__ import annotations

import errno
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from kafka_fast.config import Address, CommonSettings
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.connections.connection import Connection, ConnectionState
from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.connections.connection_outputs import (
    ConnectionFailed,
    ConnectionReady,
    LinkThrottled,
    LoginEnded,
)
from kafka_fast.control.connections.link_errors import close_error, misfit_error, unreadable
from kafka_fast.control.connections.links import Link, Links
from kafka_fast.control.connections.refusals import Refusals
from kafka_fast.control.connections.unreadable import UnreadableAnswers
from kafka_fast.control.diagnosis.troubles import Reason, Troubles
from kafka_fast.control.in_flight_requests import (
    NEGOTIATION,
    BadMessage,
    InFlightRequests,
    Unanswered,
)
from kafka_fast.control.messages import (
    Awaited,
    BadAnswer,
    ClientCommand,
    CloseLink,
    CloseReason,
    LinkClosed,
    OpenLink,
    PauseLink,
    RawResponse,
    pause_seconds,
)
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.errors import (
    ConnectionReason,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    TlsError,
)
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import get_logger, in_seconds
from kafka_fast.protocol.apis import api_name
from kafka_fast.types import TopicPartition
from kafka_fast.values import assert_never

logger = get_logger("kafka_fast.connection")

IDLE_AT_LEAST = 0.25
"""Seconds that a connection stood, at least, if it is said to have been closed for being idle."""

IDLE_ENDS = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT})
"""What the operating system says of an idle connection that the other side has given up."""

BEGUN_AT_ONCE = 2
PACE = 0.001
"""Seconds in which so many connections may begin. Each takes the control thread some 0.1 ms, during
which no other Python thread runs: two hundred at once would hold up the users' threads for long."""


class LinkListener(Protocol):
    """The user of a client's connections."""

    def handle_ready(self, link: Link, now: float) -> None:
        """A link may be used now."""

    def handle_lost(self, link: Link, error: KafkaError | None, now: float) -> None:
        """A ready link is gone, and why; None: nobody had used it."""

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        """A connection could not be made, or its negotiation failed."""


class Connections:
    """All connections of a client. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        client_id: str,
        random: Callable[[], float],
        troubles: Troubles,
        listener: LinkListener,
        unreadable: UnreadableAnswers | None = None,
        mechanism: Mechanism | None = None,
    ) -> None:
        """Make no connection yet: `want_link` and `want_bootstrap` do.

        Args:
            settings: the client's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            troubles: the client's.
            listener: hears what becomes of connections.
            unreadable: hears of answers that cannot be read; None: nobody is told of them.
            mechanism: for the login over each connection; None: there is none.
        """
        self._settings = settings
        self._client_id = client_id
        self._random = random
        self._listener = listener
        self._mechanism = mechanism
        self.troubles = troubles
        self._unreadable = unreadable or UnreadableAnswers()
        self._connections: dict[ConnectionKey, Connection] = {}
        self._addresses: dict[ConnectionKey, tuple[str, int]] = {}
        self.links = Links()
        """The links that may be used now."""
        self.refusals = Refusals(self.links)
        """Logins and certificates that were refused, for the waits of users."""
        self._opened: dict[int, ConnectionKey] = {}  # by link id; until it is closed
        self._link_ids = itertools.count(1)
        self._commands: deque[ClientCommand] = deque()
        self._unanswered: dict[int, Unanswered] = {}  # by link that ended: the oldest request on it
        # From when until when brokers throttle this client: each connection for itself.
        self._pauses: dict[ConnectionKey, tuple[float, float]] = {}
        self._begun = 0  # connections since `_pace_began`, at most BEGUN_AT_ONCE
        self._pace_began = LONG_AGO
        self.requests = InFlightRequests(
            client_id,
            self._commands,
            on_malformed=self._refuse_malformed,
            on_sound=lambda link, api_key: self._unreadable.note_sense(link.key, api_key),
            on_throttled=lambda link, throttle_ms, now: self._pause(link.id, throttle_ms, now),
        )

    # ---- getters ----

    @property
    def may_begin(self) -> bool:
        """Whether one more connection may begin just now."""
        return self._begun < BEGUN_AT_ONCE

    def is_connecting(self, key: ConnectionKey) -> bool:
        """Tell whether a link is being made. A connection in its backoff makes none."""
        connection = self._connections.get(key)
        return connection is not None and connection.trying_since != NEVER

    def oldest_try(self) -> tuple[ConnectionKey | None, float]:
        """Return the connection for which a partition or a call has waited longest, and since when.

        Coordinators are left out: metadata do not say where they are.
        """
        tries = (
            (key, connection.trying_since)
            for key, connection in self._connections.items()
            if not key.is_bootstrap and key.role is not Role.COORDINATOR
        )
        return min(tries, key=lambda attempt: attempt[1], default=(None, NEVER))

    def has_failed(self, key: ConnectionKey) -> bool:
        """Tell whether the last attempt to have a link failed, or the link broke at once."""
        connection = self._connections.get(key)
        return connection is not None and connection.has_failed

    def retry_at(self, key: ConnectionKey) -> float:
        """Return the time before which no link of this connection is opened."""
        connection = self._connections.get(key)
        return LONG_AGO if connection is None else connection.retry_at

    def under_way(self, now: float, least: float = 0.0) -> Reason | None:
        """Return what this client has waited for longest, among all its connections. Any thread.

        Args:
            now: the time.
            least: seconds. Anything that has been under way for less is left out.
        """
        states = (connection.under_way(now) for connection in list(self._connections.values()))
        waits = [state for state in states if state is not None] + self.requests.under_way(now)
        text, seconds = max(waits, key=lambda wait: wait[1], default=("", 0.0))
        if not text or seconds < least:
            return None
        text = f"{text} for {in_seconds(seconds)}"
        return Reason(text, KafkaTimeoutError(text))

    def describe(self, now: float) -> list[str]:
        """Return what connections wait for, logins among it, in lines for people. Any thread."""
        states = (connection.under_way(now) for connection in list(self._connections.values()))
        return [f"{wait[0]} for {in_seconds(wait[1])}" for wait in states if wait is not None]

    def pause(self, key: ConnectionKey, since: float, until: float) -> float | None:
        """Return for how long a node throttled this client, because of a quota. Any thread.

        Args:
            key: the connection to the node.
            since: a pause that ended before this time is left out.
            until: a pause that began after this time is left out.

        Returns:
            The seconds of the pause; None if there was none.
        """
        began, end = self._pauses.get(key, (LONG_AGO, LONG_AGO))
        return end - began if began <= until and since < end else None

    def paused_until(self, key: ConnectionKey) -> float:
        """Return until when a node throttles this client over a connection; it may be over."""
        return self._pauses.get(key, (LONG_AGO, LONG_AGO))[1]

    def all_paused_until(self) -> float:
        """Return until when every ready link is throttled; LONG_AGO if there is none."""
        return min((self.paused_until(link.key) for link in self.links.ready), default=LONG_AGO)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do, or owners may want what they did not get."""
        deadline = min(
            (connection.next_deadline() for connection in self._connections.values()),
            default=NEVER,
        )
        deadline = min(deadline, self.troubles.outages.next_deadline())
        return deadline if self.may_begin else min(deadline, self._pace_began + PACE)

    # ---- commands ----

    def want_link(self, node: Node, role: Role, now: float, cluster_id: str | None = None) -> None:
        """Have a link to the node, at the address that it advertises now.

        Nothing happens if too many connections have begun just now. So whoever needs the link wants
        it in each turn until there is one.

        Args:
            node: the node.
            role: what the link is for.
            now: the time.
            cluster_id: the cluster that the node must belong to; None: no check.
        """
        key = ConnectionKey(role, node.id)
        if self._addresses.get(key, node.address) != node.address:
            self._forget(key, "it moved to another address", now)
        connection = self._connections.get(key)
        if connection is not None and connection.state is not ConnectionState.IDLE:
            return
        if connection is None or now >= connection.retry_at:
            if not self.may_begin:
                return
            if not self._begun:
                self._pace_began = now
            self._begun += 1
        if connection is None:
            self._addresses[key] = node.address
            connection = self._connections[key] = self._make(key, [Address(*node.address)])
        self._connect(connection, now, cluster_id)

    def want_bootstrap(self, now: float, key: ConnectionKey = BOOTSTRAP) -> None:
        """Have a link to whichever of bootstrap.servers answers.

        Args:
            now: the time.
            key: `BOOTSTRAP`, or `SECOND_BOOTSTRAP`: a connection that leaves out the server which
                the first connection leads to.
        """
        if key not in self._connections:
            first = self._connections.get(BOOTSTRAP)
            avoid = None if first is None else first.endpoint
            servers = [server for server in self._settings.bootstrap_servers if server != avoid]
            self._connections[key] = self._make(key, servers)
        self._connect(self._connections[key], now)

    def _make(self, key: ConnectionKey, endpoints: Sequence[Address]) -> Connection:
        return Connection(
            key,
            endpoints,
            self._settings,
            self._client_id,
            self._random,
            self._link_ids.__next__,
            self._mechanism,
        )

    def _connect(self, connection: Connection, now: float, cluster_id: str | None = None) -> None:
        connection.connect(now, cluster_id=cluster_id)
        self._carry_out(connection, now)

    def close_node(self, node_id: int, reason: str, now: float) -> None:
        """Close a node's connections for good, except the one of `Role.COORDINATOR`."""
        for role in (Role.SLOW, Role.CONTROL, Role.DATA):
            self._forget(ConnectionKey(role, node_id), reason, now)

    def _forget(self, key: ConnectionKey, reason: str, now: float) -> None:
        connection = self._connections.pop(key, None)
        if connection is None:
            return
        self._addresses.pop(key, None)
        connection.close()
        link = self.links.link_to(key)
        self._carry_out(connection, now)
        if link is not None:
            left = KafkaConnectionError(f"{key}: {reason}", reason=ConnectionReason.LEFT)
            self._lose(link, left, now)

    def refuse_link(self, link: Link, error: KafkaError, now: float) -> None:
        """Close a ready link that cannot be used; its connection waits for the backoff."""
        self._tell(link.id, lambda connection: connection.refuse_link(link.id, error, now), now)
        self._lose(link, error, now)

    def begin_turn(self, now: float) -> None:
        """Take the time for requests that are sent before the first event of this turn."""
        self.requests.now = now
        if now >= self._pace_began + PACE:
            self._begun = 0

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self.begin_turn(now)
        self.troubles.outages.tick(now)
        for connection in list(self._connections.values()):
            if connection.next_deadline() <= now:
                connection.tick(now)
                self._carry_out(connection, now)

    # ---- out ----

    def poll_command(self) -> ClientCommand | None:
        """Return the next thing to do; None if there is nothing."""
        return self._commands.popleft() if self._commands else None

    # ---- in ----

    def handle_resolved(
        self, owner: ConnectionKey, host: str, result: tuple[str, ...] | OSError, now: float
    ) -> None:
        """Take the addresses of a host, or why there are none."""
        connection = self._connections.get(owner)
        if connection is not None:
            connection.handle_resolved(host, result, now)
            self._carry_out(connection, now)

    def handle_connected(self, link_id: int, now: float) -> None:
        """Tell a link's connection that the link is open."""
        self._tell(link_id, lambda connection: connection.handle_connected(link_id, now), now)

    def handle_connect_failed(self, link_id: int, error: OSError, now: float) -> None:
        """Tell a link's connection that the link was not opened; count a failed handshake."""
        self._count_handshake(error)
        self._tell(
            link_id, lambda connection: connection.handle_connect_failed(link_id, error, now), now
        )
        self._opened.pop(link_id, None)

    def handle_work_done(self, link_id: int, result: object, now: float) -> None:
        """Take the result of a `DoWork`, or the exception that its function has raised."""
        self._tell(
            link_id, lambda connection: connection.handle_work_done(link_id, result, now), now
        )

    def handle_gate_shut(self, link_id: int, now: float) -> None:
        """Have a link log in again: its requests wait at the gate."""
        self._tell(link_id, lambda connection: connection.handle_gate_shut(link_id, now), now)

    def handle_closed(self, event: LinkClosed, now: float) -> None:
        """Drop a link that is gone, and tell its connection why, unless the link was idle."""
        link = self.links.link(event.link_id)
        if link is not None and self._was_idle(link, event, now):
            self.troubles.note_closed(event)
            self._disconnect_idle(link, now)
            return
        awaited, patience = self._awaited(event)
        error = self.troubles.note_closed(event) or close_error(event, awaited, patience)
        self._count_handshake(error)
        self._tell(
            event.link_id,
            lambda connection: connection.handle_closed(event.link_id, error, now, awaited),
            now,
        )
        self._opened.pop(event.link_id, None)
        if link is not None:
            why = "it closed the connection" if error is None else str(error)
            kind = TlsError if isinstance(error, TlsError) else KafkaConnectionError
            self._lose(link, kind(f"{link.versions.node}: {why}"), now)

    def _was_idle(self, link: Link, event: LinkClosed, now: float) -> bool:
        """Tell whether nobody used a link, so that its end is no trouble.

        Brokers (connections.max.idle.ms), load balancers and firewalls end connections on which
        nothing is asked. One that ends as soon as it is there is another matter.
        """
        if event.reason is CloseReason.IDLE:
            return True
        is_orderly = event.reason is CloseReason.EOF or (
            event.reason is CloseReason.OS_ERROR and event.detail in IDLE_ENDS
        )
        if not is_orderly or event.awaited is not Awaited.NOTHING:
            return False
        return now - self._connections[link.key].ready_since >= IDLE_AT_LEAST

    def handle_bad_answer(
        self,
        event: BadAnswer,
        partition: Callable[[int], TopicPartition | None],
        name: Callable[[bytes], str | None],
        now: float,
    ) -> None:
        """Take an answer that the data plane refused; it closes the link next.

        Args:
            event: the answer.
            partition: returns the partition behind the id of a queue or a stream.
            name: returns the topic with an id.
            now: the time.
        """
        error = misfit_error(event, partition, name)
        self.troubles.explain(event.link_id, error)
        link = self.links.link(event.link_id)
        if link is not None:
            named = type(error)(f"{link.versions.node} {error}")
            self._note_unreadable(link, event.api_key, named, now, was_well=event.was_well)

    def handle_throttled(self, link_id: int, throttle_ms: int, now: float) -> str:
        """Keep until when a node throttles this client; return the node's name for the log."""
        key = self._opened.get(link_id)
        if key is None:
            return "a node"
        until = now + pause_seconds(throttle_ms)
        self._pauses[key] = (now, max(until, self.paused_until(key)))
        connection = self._connections.get(key)
        if connection is not None:
            connection.handle_throttled(link_id, until)
        return str(key)

    def _pause(self, link_id: int, throttle_ms: int, now: float) -> None:
        """Keep a pause that the data plane does not know of, and have it pause the link."""
        self.handle_throttled(link_id, throttle_ms, now)
        self._commands.append(PauseLink(link_id, pause_seconds(throttle_ms)))

    def handle_response(self, event: RawResponse, now: float) -> None:
        """Take the answer to a raw request."""
        if event.frame is None and event.link_id in self._opened:
            asked: Unanswered | None
            if event.token == NEGOTIATION:
                connection = self._connections.get(self._opened[event.link_id])
                awaited = "" if connection is None else connection.awaited
                asked = Unanswered(awaited, self._settings.request_timeout)
            else:
                asked = self.requests.unanswered(event.token)
            if asked is not None:
                self._unanswered.setdefault(event.link_id, asked)
        if event.token == NEGOTIATION:
            data = event.frame
            if data is not None:
                self._tell(
                    event.link_id,
                    lambda connection: connection.handle_frame(event.link_id, data, now),
                    now,
                )
            return
        self.requests.handle_response(event, now)

    def _awaited(self, event: LinkClosed) -> tuple[str, str]:
        """Return the oldest request without an answer on a closed link, and its timeout as text."""
        asked = self._unanswered.pop(event.link_id, None)
        usual = f"request.timeout.ms ({self._settings.request_timeout_ms})"
        match event.awaited:
            case Awaited.PRODUCE:
                return "Produce", usual
            case Awaited.FETCH:
                return "Fetch", f"fetch.max.wait.ms and {usual}"
            case Awaited.NOTHING | Awaited.RAW | Awaited.HEARTBEAT:
                if asked is None:
                    return "", usual
                is_usual = asked.timeout == self._settings.request_timeout
                return asked.label, usual if is_usual else f"{asked.timeout:g} s"
            case _:
                return assert_never(event.awaited)

    # ---- between connections and commands ----

    def _refuse_malformed(self, bad: BadMessage, now: float) -> None:
        """Close a link, because an answer that came over it cannot be read."""
        named = unreadable(bad.api_key, bad.version, bad.error, bad.link.versions.node)
        self._note_unreadable(bad.link, bad.api_key, named, now, was_well=bad.was_well)
        link = self.links.link(bad.link.id)
        if link is not None:
            self.refuse_link(link, named, now)

    def _note_unreadable(
        self, link: Link, api_key: int, error: KafkaError, now: float, *, was_well: bool
    ) -> None:
        self.troubles.note_malformed(api_name(api_key))
        self._unreadable.note_answer(link.key, api_key, error, now, was_well=was_well)

    def _tell(self, link_id: int, what: Callable[[Connection], None], now: float) -> None:
        key = self._opened.get(link_id)
        connection = None if key is None else self._connections.get(key)
        if connection is not None:
            what(connection)
            self._carry_out(connection, now)

    def _carry_out(self, connection: Connection, now: float) -> None:
        """Carry out a connection's commands, and handle its events."""
        key = connection.key
        while (output := connection.poll_output()) is not None:
            match output:
                case ConnectionReady(link_id, versions):
                    link = Link(link_id, key, versions)
                    self.links.add(link)
                    self.troubles.pass_by(key, now)
                    self._listener.handle_ready(link, now)
                case ConnectionFailed(error):
                    is_spare = self.links.is_spare(key)
                    self.troubles.note_failure(key, error, now, is_spare=is_spare)
                    self._unreadable.note_failure(key, error, output.since, now)
                    if output.is_refused:
                        self.refusals.note(error)
                    self._listener.handle_connect_failed(key, output, now)
                    self._lose_closed(connection, error, now)
                case LinkThrottled(link_id, throttle_ms):
                    self._pause(link_id, throttle_ms, now)
                case LoginEnded(is_first, failure):
                    self.troubles.count_login(failure, is_first=is_first)
                case OpenLink(link_id):
                    self._opened[link_id] = key
                    self._commands.append(output)
                case CloseLink(link_id):
                    self._opened.pop(link_id, None)
                    self._commands.append(output)
                case _:
                    self._commands.append(output)

    def _count_handshake(self, error: BaseException | None) -> None:
        """Count a TLS handshake that failed. A broker may refuse a certificate after it."""
        if isinstance(error, TlsError):
            self.troubles.failed_handshakes += 1

    def _disconnect_idle(self, link: Link, now: float) -> None:
        """Forget a link that nobody used. Its connection is made again when it is wanted."""
        logger.debug("%s: the connection was idle, and is closed", link.versions.node)
        self.requests.note_idle(link.id)
        self._opened.pop(link.id, None)
        connection = self._connections[link.key]
        connection.disconnect()
        while connection.poll_output() is not None:
            pass  # the link is closed already
        self._lose(link, None, now)

    def _lose_closed(self, connection: Connection, error: KafkaError, now: float) -> None:
        """Forget a link that its connection has closed by itself: its login was not renewed."""
        link = self.links.link(connection.link_id)
        if link is not None and link.id not in self._opened:
            self._lose(link, error, now)

    def _lose(self, link: Link, error: KafkaError | None, now: float) -> None:
        if self.links.remove(link):
            self._listener.handle_lost(link, error, now)
