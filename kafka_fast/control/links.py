"""The connections of one client.

    want_node, want_bootstrap ─► Connection ─► OpenLink … Ready ─► link

Each `Connection` numbers its links for itself; here they get numbers that are unique in the
client, which is what the data plane knows them by. What goes over them: `questions`.

A broker answers one request of a connection after the other, and may hold a Fetch back until there
is something to read. So a link that carries such requests is *held*: it is not for questions, and
a question to its node has a second connection opened beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from kafka_fast.config import CommonSettings
from kafka_fast.control import link_events
from kafka_fast.control.connection import Connection, ConnectionState
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.link_errors import answered, close_error, misfit_error
from kafka_fast.control.metadata import BESIDE_BASE, Node, node_name
from kafka_fast.control.nonsense import PATIENCE, WHATEVER, Nonsense
from kafka_fast.control.plane import (
    Awaited,
    BadAnswer,
    CloseLink,
    CloseReason,
    Command,
    LinkClosed,
    OpenLink,
    ResolveHost,
    Response,
    SendRaw,
)
from kafka_fast.control.questions import NEGOTIATION, BadMessage, Questions, Unanswered
from kafka_fast.control.troubles import Reason, Troubles
from kafka_fast.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka_fast.logs import in_seconds
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.apis.find_coordinator import FindCoordinatorResponse
from kafka_fast.protocol.apis.init_producer_id import InitProducerIdResponse
from kafka_fast.protocol.apis.metadata import MetadataResponse
from kafka_fast.types import TopicPartition
from kafka_fast.values import replace

BOOTSTRAP = -1
"""The node id under which the connection to bootstrap.servers is kept."""

BOOTSTRAP_BESIDE = -2
"""That of a second one, for when the first hangs at one of the servers."""

ANSWERED_BY_ANY = frozenset(
    {MetadataResponse.api_key, FindCoordinatorResponse.api_key, InitProducerIdResponse.api_key}
)
"""What any node may answer: one that can is enough."""


class Links:
    """All connections of a client. Control thread only."""

    def __init__(
        self,
        settings: CommonSettings,
        client_id: str,
        random: Callable[[], float],
        troubles: Troubles,
        *,
        on_ready: Callable[[Link, float], None],
        on_lost: Callable[[Link, KafkaError | None, float], None],
        on_failed: Callable[[int, link_events.Failed, float], None],
        on_nonsense: Callable[[int, KafkaError], None] = lambda api_key, error: None,
        patience: float = PATIENCE,
    ) -> None:
        """Begin without connections.

        Args:
            settings: the client's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            troubles: the client's.
            on_ready: called with a link that may be used now.
            on_lost: called with a ready link that is gone, and why; None: nobody had used it.
            on_failed: called with a node id and how connecting to it failed.
            on_nonsense: called when a node's answers have not been understood for a while, with the
                API (WHATEVER: all that it was asked) and the last error.
            patience: seconds that make a while.
        """
        self._settings = settings
        self._client_id = client_id
        self._random = random
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._on_failed = on_failed
        self._on_nonsense = on_nonsense
        self.troubles = troubles
        self._nonsense = Nonsense(patience)
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._links: dict[int, Link] = {}  # ready ones, by link id
        self._by_node: dict[int, Link] = {}  # the same
        self._held: set[int] = set()  # ids of ready links
        self._opened: dict[int, tuple[int, int]] = {}  # link id -> (node id, its own number)
        self._link_ids: dict[tuple[int, int], int] = {}
        self._next_link_id = 1
        self._commands: deque[Command] = deque()
        self._unanswered: dict[int, Unanswered] = {}  # by link: what its end was first told of
        self._told: set[int] = set()  # nodes whose nonsense is counted by its API
        self._pauses: dict[int, tuple[float, float]] = {}  # by node: from when until when
        self.questions = Questions(
            client_id,
            self._commands,
            on_malformed=self._refuse_malformed,
            on_sound=self._note_sound,
        )

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

    def under_way(self, now: float, least: float = 0.0) -> Reason | None:
        """Return what a node has yet to do, and has not done for the longest time. Any thread.

        Args:
            now: the time.
            least: seconds; what is under way for less is not worth a word.
        """
        states = (it.under_way(now) for it in list(self._connections.values()))
        waiting = [it for it in states if it is not None] + self.questions.under_way(now)
        text, seconds = max(waiting, key=lambda it: it[1], default=("", 0.0))
        if not text or seconds < least:
            return None
        text = f"{text} for {in_seconds(seconds)}"
        return Reason(text, KafkaTimeoutError(text))

    def pause(self, node_id: int, since: float, until: float) -> float | None:
        """Return for how long a node had this client wait, for a quota (KIP-219). Any thread.

        Args:
            node_id: which.
            since: the pause has not ended before then.
            until: it has begun by then.

        Returns:
            Its seconds; None if there was none.
        """
        began, end = self._pauses.get(node_id, (LONG_AGO, LONG_AGO))
        return end - began if began <= until and since < end else None

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

    def begin_turn(self, now: float) -> None:
        """Know the time of what is asked before anything happens, or is due."""
        self.questions.now = now

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self.begin_turn(now)
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
        awaited, patience = self._awaited(event)
        error = self.troubles.note_closed(event) or close_error(event, awaited, patience)
        self._tell(
            event.link_id,
            lambda connection, own: connection.handle_closed(own, error, now, awaited),
            now,
        )
        self._forget_number(event.link_id)
        if link is not None:
            why = "it closed the connection" if error is None else str(error)
            self._lose(link, KafkaConnectionError(f"{link.versions.node}: {why}"), now)

    def handle_bad_answer(
        self,
        event: BadAnswer,
        partition: Callable[[int], TopicPartition | None],
        name: Callable[[bytes], str | None],
        now: float,
    ) -> None:
        """Take an answer that the data plane did not take: its link is closed next.

        Args:
            event: the answer.
            partition: returns the partition behind the id of a queue or a stream.
            name: returns the topic with an id.
            now: the time.
        """
        error = misfit_error(event, partition, name)
        self.troubles.explain(event.link_id, error)
        link = self._links.get(event.link_id)
        if link is not None:
            named = type(error)(f"{link.versions.node} {error}")
            self._note_nonsense(link, event.api_key, named, now, was_well=event.was_well)

    def handle_throttled(self, link_id: int, throttle_ms: int, now: float) -> str:
        """Take note that a node has this client wait; return what to call the node."""
        link = self._links.get(link_id)
        if link is None:
            return "a node"
        self._pauses[link.node_id] = (now, now + throttle_ms / 1000)
        return node_name(link.node_id)

    def handle_response(self, event: Response, now: float) -> None:
        """Take the answer to a raw request."""
        if event.frame is None and event.link_id in self._opened:
            if event.token == NEGOTIATION:
                asked: Unanswered | None = Unanswered("ApiVersions", self._settings.request_timeout)
            else:
                asked = self.questions.unanswered(event.token)
            if asked is not None:
                self._unanswered.setdefault(event.link_id, asked)
        if event.token == NEGOTIATION:
            data = event.frame
            if data is not None:
                self._tell(
                    event.link_id,
                    lambda connection, own: connection.handle_frame(own, data, now),
                    now,
                )
            return
        self.questions.handle_response(event, now)

    def _awaited(self, event: LinkClosed) -> tuple[str, str]:
        """Return the oldest request that a link leaves unanswered, and how long it was given."""
        asked = self._unanswered.pop(event.link_id, None)
        usual = f"request.timeout.ms ({self._settings.request_timeout_ms})"
        match event.awaited:
            case Awaited.PRODUCE:
                return "Produce", usual
            case Awaited.FETCH:
                return "Fetch", f"fetch.max.wait.ms and {usual}"
            case _ if asked is not None:
                is_usual = asked.timeout == self._settings.request_timeout
                return asked.label, usual if is_usual else f"{asked.timeout:g} s"
            case _:
                return "", usual

    # Between connections and commands

    def _refuse_malformed(self, bad: BadMessage, now: float) -> None:
        """Close the link over which an answer came that cannot be read."""
        text = f"{bad.link.versions.node} {answered(bad.api_key, bad.version, bad.error)}"
        named = type(bad.error)(text)
        named.__cause__ = bad.error
        self._note_nonsense(bad.link, bad.api_key, named, now, was_well=bad.was_well)
        link = self._links.get(bad.link.id)
        if link is not None:
            self.refuse(link, named, now)

    def _note_nonsense(
        self, link: Link, api_key: int, error: KafkaError, now: float, *, was_well: bool
    ) -> None:
        node_id = _answering(link, api_key)
        self._told.add(link.node_id)
        self.troubles.note_malformed(api_name(api_key))
        if self._nonsense.note(node_id, api_key, now, was_well=was_well):
            self._on_nonsense(api_key, error)

    def _note_sound(self, link: Link, api_key: int) -> None:
        self._nonsense.note_sense(_answering(link, api_key), api_key)

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
                    self.troubles.pass_by(node_id)
                    self._on_ready(link, now)
                case link_events.CloseLink(own, _):
                    link_id = self._link_ids[node_id, own]
                    self._commands.append(CloseLink(link_id))
                    self._forget_number(link_id)
                case link_events.Failed(error):
                    self.troubles.note_failure(node_id, error, now)
                    self._note_failed(node_id, event, now)
                    self._on_failed(node_id, event, now)

    def _note_failed(self, node_id: int, event: link_events.Failed, now: float) -> None:
        """Tell of a node where something else than a broker has talked for a while."""
        if node_id in self._told:
            self._told.discard(node_id)
            return
        is_nonsense = isinstance(event.error, ProtocolError)
        is_understood = isinstance(event.error, UnsupportedVersionError)
        if not is_nonsense or is_understood:
            return
        if self._nonsense.note_link(node_id, event.since, now):
            self._on_nonsense(WHATEVER, event.error)

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


def _answering(link: Link, api_key: int) -> int:
    """Return whose nonsense counts: a node's, or that of all nodes where any may answer."""
    return BOOTSTRAP if api_key in ANSWERED_BY_ANY else link.node_id
