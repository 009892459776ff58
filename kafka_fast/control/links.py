"""The connections of one client, and the control plane's own requests over them.

    want_node, want_bootstrap ─► Connection ─► OpenLink … Ready ─► link

Each `Connection` numbers its links for itself; here they get numbers that are unique in the
client, which is what the data plane knows them by. Requests are sent with `ask`; what comes back
is handed to a function, as is the loss of the link before that.

A broker answers one request of a connection after the other, and may hold a Fetch back until there
is something to read. So a link that carries such requests is *held*: it is not for questions, and
a question to its node has a second connection opened beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control import link_events
from kafka_fast.control.connection import Connection, ConnectionState
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.metadata import BESIDE_BASE, Node, node_name
from kafka_fast.control.negotiation import NodeVersions
from kafka_fast.control.plane import (
    CloseLink,
    CloseReason,
    Command,
    LinkClosed,
    OpenLink,
    RecallRepeat,
    Repeat,
    ResolveHost,
    Response,
    SendRaw,
    StopRepeat,
)
from kafka_fast.control.troubles import Troubles
from kafka_fast.errors import KafkaConnectionError, KafkaError, ProtocolError
from kafka_fast.protocol import frame
from kafka_fast.protocol.schema import Request
from kafka_fast.protocol.schema import Response as ResponseBody

BOOTSTRAP = -1
"""The node id under which the connection to bootstrap.servers is kept."""

BOOTSTRAP_BESIDE = -2
"""That of a second one, for when the first hangs at one of the servers."""

RESPONSE_BODY_POS = 8
"""In a response frame, behind length and correlation id."""

NEGOTIATION = 0
"""The token of ApiVersions requests, which belong to the connection."""

R = TypeVar("R", bound=ResponseBody)


@dataclass(frozen=True, slots=True)
class Link:
    """An established connection that has been negotiated."""

    id: int
    node_id: int
    versions: NodeVersions


@dataclass(slots=True)
class _Question:
    """A raw request in flight."""

    link_id: int
    response_class: type[Any]
    version: int
    handle: Callable[[Any, float], None]
    handle_failure: Callable[[KafkaError, float], None]


class Links:
    """All connections of a client. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        client_id: str,
        random: Callable[[], float],
        *,
        on_ready: Callable[[Link, float], None],
        on_lost: Callable[[Link, KafkaError | None, float], None],
        on_failed: Callable[[int, link_events.Failed, float], None],
    ) -> None:
        """Begin without connections.

        Args:
            settings: the client's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            on_ready: called with a link that may be used now.
            on_lost: called with a ready link that is gone, and why; None: nobody had used it.
            on_failed: called with a node id and how connecting to it failed.
        """
        self._settings = settings
        self._client_id = client_id
        self._random = random
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._on_failed = on_failed
        self.troubles = Troubles()
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._links: dict[int, Link] = {}  # ready ones, by link id
        self._by_node: dict[int, Link] = {}  # the same
        self._held: set[int] = set()  # ids of ready links
        self._opened: dict[int, tuple[int, int]] = {}  # link id -> (node id, its own number)
        self._link_ids: dict[tuple[int, int], int] = {}
        self._next_link_id = 1
        self._questions: dict[int, _Question] = {}
        self._next_token = NEGOTIATION + 1
        self._commands: deque[Command] = deque()

    # Getters

    @property
    def ready(self) -> Iterable[Link]:
        """The links that may be used now."""
        return self._links.values()

    @property
    def free(self) -> Iterable[Link]:
        """The ready links on which a question waits for nothing that its node holds back."""
        return (link for link in self._links.values() if link.id not in self._held)

    def link_to(self, node_id: int) -> Link | None:
        """Return the ready link to a node, or None."""
        return self._by_node.get(node_id)

    def free_link_to(self, node_id: int) -> Link | None:
        """Return the ready link for questions to a node, or None."""
        link = self.link_to(self.asking_id(node_id))
        return None if link is None or link.id in self._held else link

    def asking_id(self, node_id: int) -> int:
        """Return the number under which a node's connection for questions is kept."""
        link = self.link_to(node_id)
        beside = BESIDE_BASE + node_id
        if link is None:
            return node_id if self.link_to(beside) is None else beside
        return beside if link.id in self._held else node_id

    def link(self, link_id: int) -> Link | None:
        """Return the ready link with this id, or None."""
        return self._links.get(link_id)

    def load(self, link: Link) -> int:
        """Return how many of the control plane's questions wait for an answer on a link."""
        return sum(question.link_id == link.id for question in self._questions.values())

    def is_connecting(self, node_id: int) -> bool:
        """Tell whether a link to this node is under way; one that waits for its backoff is not."""
        connection = self._connections.get(node_id)
        return (
            connection is not None
            and connection.is_pending
            and connection.state is not ConnectionState.BACKOFF
        )

    def retry_at(self, node_id: int) -> float:
        """Return the time before which no link to this node is opened."""
        connection = self._connections.get(node_id)
        return LONG_AGO if connection is None else connection.retry_at

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        return min(
            (connection.next_deadline() for connection in self._connections.values()),
            default=NEVER,
        )

    # Commands

    def want_node(self, node: Node, now: float, cluster_id: str | None = None) -> None:
        """Have a link to the node, at the address it advertises now."""
        connection = self._connections.get(node.id)
        if connection is not None and self._addresses[node.id] != node.address:
            self.forget(node.id, "it moved to another address", now)
            connection = None
        if connection is None:
            connection = Connection.to_node(node, self._settings, self._client_id, self._random)
            self._connections[node.id] = connection
            self._addresses[node.id] = node.address
        connection.connect(now, cluster_id=cluster_id)
        self._carry_out(node.id, connection, now)

    def want_answers(self, node: Node, now: float, cluster_id: str | None = None) -> None:
        """Have a link to the node that is free for questions."""
        asking_id = self.asking_id(node.id)
        if asking_id == node.id:
            self.want_node(node, now, cluster_id)
        else:
            self.want_node(replace(node, id=asking_id), now)

    def hold(self, link: Link) -> None:
        """From now on the node may keep this link waiting: questions go over another one."""
        self._held.add(link.id)

    def want_bootstrap(self, now: float, node_id: int = BOOTSTRAP) -> None:
        """Have a link to whichever of bootstrap.servers answers.

        Args:
            now: the time.
            node_id: `BOOTSTRAP`, or `BOOTSTRAP_BESIDE` for a connection that begins with another
                server than the one at which the first connection stands.
        """
        connection = self._connections.get(node_id)
        if connection is None:
            first = self._connections.get(BOOTSTRAP)
            avoid = None if first is None else first.endpoint
            connection = Connection.to_bootstrap(
                self._settings, self._client_id, self._random, avoid=avoid
            )
            self._connections[node_id] = connection
        connection.connect(now)
        self._carry_out(node_id, connection, now)

    def forget(self, node_id: int, reason: str, now: float) -> None:
        """Close a node's connections for good."""
        if 0 <= node_id < BESIDE_BASE:
            self.forget(BESIDE_BASE + node_id, reason, now)
        connection = self._connections.pop(node_id, None)
        if connection is None:
            return
        self._addresses.pop(node_id, None)
        connection.close(reason)
        link = self.link_to(node_id)
        self._carry_out(node_id, connection, now)
        if link is not None:
            self._lose(link, KafkaConnectionError(f"{node_name(node_id)}: {reason}"), now)

    def refuse(self, link: Link, error: KafkaError, now: float) -> None:
        """Close a ready link that is of no use; the next one to its node waits for the backoff."""
        self._tell(link.id, lambda connection, own: connection.refuse(own, error, now), now)
        self._lose(link, error, now)

    def ask(
        self,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        timeout: float,
        max_version: int | None = None,
    ) -> int:
        """Send a request; one of the two functions is called with what becomes of it.

        Args:
            link: the way.
            body: the request.
            response_class: of its answer.
            handle: called with the decoded answer and the time.
            handle_failure: called with why there is none, and the time.
            timeout: seconds; the link is closed when they have passed without an answer.
            max_version: the highest one that the caller can use.

        Returns:
            The version that was sent.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body), max_version)
        token = self._next_token
        self._next_token += 1
        self._questions[token] = _Question(link.id, response_class, version, handle, handle_failure)
        data = frame.encode_request(body, version, 0, self._client_id)
        self._commands.append(SendRaw(link.id, token, data, timeout))
        return version

    def repeat(
        self,
        link: Link,
        body: Request,
        expected: ResponseBody,
        handle: Callable[[Any, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        period: float,
        timeout: float,
        delay: float = 0.0,
    ) -> int:
        """Send a request every `period` seconds until its answer is another one than `expected`.

        The data plane does so without the GIL, and no longer than the user shows signs of life.

        Args:
            link: the way.
            body: the request.
            expected: the answer that needs nobody.
            handle: called with the first other answer and the time; nothing is repeated after it.
            handle_failure: called when the link is gone, and the time.
            period: seconds from one to the next.
            timeout: seconds for each; the link is closed when they have passed.
            delay: seconds to the first.

        Returns:
            A number for `stop_repeat` and `recall_repeat`.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        token = self._next_token
        self._next_token += 1
        self._questions[token] = _Question(link.id, type(expected), version, handle, handle_failure)
        data = frame.encode_request(body, version, 0, self._client_id)
        answer = frame.encode_response(expected, version, 0)[RESPONSE_BODY_POS:]
        self._commands.append(Repeat(link.id, token, data, period, answer, timeout, delay))
        return token

    def stop_repeat(self, token: int) -> None:
        """Repeat a request no more; nobody hears of it again."""
        if self._questions.pop(token, None) is not None:
            self._commands.append(StopRepeat(token))

    def recall_repeat(self, token: int) -> None:
        """Have the next answer to a repeated request, whatever it says, and repeat it no more."""
        if token in self._questions:
            self._commands.append(RecallRepeat(token))

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        for node_id, connection in list(self._connections.items()):
            if connection.next_deadline() <= now:
                connection.tick(now)
                self._carry_out(node_id, connection, now)

    # Out

    def poll_command(self) -> Command | None:
        """Return the next thing to do; None if there is nothing."""
        return self._commands.popleft() if self._commands else None

    # In

    def handle_resolved(
        self, owner: str, host: str, result: tuple[str, ...] | OSError, now: float
    ) -> None:
        """Take the addresses of a host, or why there are none."""
        node_id = int(owner)
        connection = self._connections.get(node_id)
        if connection is not None:
            connection.handle_resolved(host, result, now)
            self._carry_out(node_id, connection, now)

    def handle_connected(self, link_id: int, now: float) -> None:
        """Take note that a link is open."""
        self._tell(link_id, lambda connection, own: connection.handle_connected(own, now), now)

    def handle_connect_failed(self, link_id: int, error: OSError, now: float) -> None:
        """Take note that a link could not be opened."""
        self._tell(
            link_id, lambda connection, own: connection.handle_connect_failed(own, error, now), now
        )
        self._forget_number(link_id)

    def handle_closed(self, event: LinkClosed, now: float) -> None:
        """Take note that a link is gone."""
        link = self._links.get(event.link_id)
        if event.reason is CloseReason.IDLE and link is not None:
            self._disconnect_idle(link, now)
            return
        error = self.troubles.note_closed(event)
        self._tell(
            event.link_id, lambda connection, own: connection.handle_closed(own, error, now), now
        )
        self._forget_number(event.link_id)
        if link is not None:
            why = f"{node_name(link.node_id)}: {error or 'closed by peer'}"
            self._lose(link, KafkaConnectionError(why), now)

    def handle_response(self, event: Response, now: float) -> None:
        """Take the answer to a raw request."""
        if event.token == NEGOTIATION:
            data = event.frame
            if data is not None:
                self._tell(
                    event.link_id,
                    lambda connection, own: connection.handle_frame(own, data, now),
                    now,
                )
            return
        question = self._questions.pop(event.token, None)
        if question is None:
            return
        if event.frame is None:
            lost = KafkaConnectionError(f"link {event.link_id} was closed before the answer came")
            question.handle_failure(lost, now)
            return
        try:
            _, body = frame.decode_response(question.response_class, event.frame, question.version)
        except ProtocolError as error:
            self.troubles.note_malformed(question.response_class)
            link = self._links.get(event.link_id)
            if link is not None:
                named = type(error)(f"{node_name(link.node_id)}: {error}")
                named.__cause__ = error
                self.refuse(link, named, now)
            question.handle_failure(error, now)
            return
        question.handle(body, now)

    # Between connections and commands

    def _tell(self, link_id: int, what: Callable[[Connection, int], None], now: float) -> None:
        node_id, own = self._opened.get(link_id, (BOOTSTRAP, -1))
        connection = self._connections.get(node_id)
        if connection is not None and own >= 0:
            what(connection, own)
            self._carry_out(node_id, connection, now)

    def _carry_out(self, node_id: int, connection: Connection, now: float) -> None:
        """Turn the connection's events into commands."""
        while (event := connection.poll_event()) is not None:
            match event:
                case link_events.Resolve(host, deadline):
                    self._commands.append(ResolveHost(str(node_id), host, deadline))
                case link_events.Open(own, ip, port, _, deadline):
                    link_id = self._next_link_id
                    self._next_link_id += 1
                    self._opened[link_id] = (node_id, own)
                    self._link_ids[node_id, own] = link_id
                    self._commands.append(OpenLink(link_id, node_id, ip, port, deadline))
                case link_events.SendFrame(own, data):
                    timeout = self._settings.request_timeout
                    link_id = self._link_ids[node_id, own]
                    self._commands.append(SendRaw(link_id, NEGOTIATION, data, timeout))
                case link_events.Ready(own, _, versions, _):
                    link = Link(self._link_ids[node_id, own], node_id, versions)
                    self._links[link.id] = self._by_node[node_id] = link
                    self._on_ready(link, now)
                case link_events.CloseLink(own, _):
                    link_id = self._link_ids[node_id, own]
                    self._commands.append(CloseLink(link_id))
                    self._forget_number(link_id)
                case link_events.Failed(error):
                    self.troubles.note_failure(error, now)
                    self._on_failed(node_id, event, now)

    def _forget_number(self, link_id: int) -> None:
        """Hear no more of a link: the node's next connection counts its links from 1 again."""
        place = self._opened.pop(link_id, None)
        if place is not None:
            del self._link_ids[place]

    def _disconnect_idle(self, link: Link, now: float) -> None:
        """Forget a link that nobody used; its connection comes back when it is wanted."""
        self._forget_number(link.id)
        connection = self._connections[link.node_id]
        connection.disconnect("idle for connections.max.idle.ms")
        while connection.poll_event() is not None:
            pass  # the link is closed already
        self._lose(link, None, now)

    def _lose(self, link: Link, error: KafkaError | None, now: float) -> None:
        if self._links.pop(link.id, None) is None:
            return
        self._held.discard(link.id)
        if self._by_node.get(link.node_id) is link:
            del self._by_node[link.node_id]
        self._on_lost(link, error, now)
