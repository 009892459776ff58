"""One connection, to a node or to whichever bootstrap server answers: a state machine, sans-I/O.

                    connect            round failed, link lost
    IDLE ─────────────────────┐  ◄──────────────────────────────────────────┐
      │ before retry_at       ▼                                             │
      └─► BACKOFF ─ tick ─► RESOLVING ─► a link: CONNECTING to READY (link_setup.py)
                              ▲             │
                              └─────────────┘
                       next address, next endpoint

One *round* tries every address of every endpoint, each with a deadline. Only a whole round counts
as a failure. Then reconnect.backoff.ms follows, doubled from failure to failure (KIP-144). The time
for one address grows in the same way (KIP-601). A connection does not reconnect by itself: after
`ConnectionFailed` its owner calls `connect` again if it still wants the connection. The owner may
do so at once, because the connection keeps the backoff.

What happens on a link, versions and logins, is the matter of its `LinkSetup`. While there is one,
its state is the connection's.

A connection asks for what it needs with commands, and is told how they ended. Each link has its own
id in the client, so late news of a link that was given up changes nothing:

    out                means                                answered by
    ResolveHost        look the host up                     handle_resolved
    OpenLink           connect a socket                     handle_connected, handle_connect_failed
    SendRaw            ask for the versions, log in         handle_frame, handle_closed
    DoWork             what a login needs, and may block    handle_work_done
    OpenGate           requests pass, until some time       handle_gate_shut
    CloseLink          close the socket                     nothing
    ConnectionReady    the link is the owner's              handle_closed, in the end
    ConnectionFailed   no link, and none before retry_at    connect
    LoginEnded         for the statistics                   nothing
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_fast.config import Address, CommonSettings
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.connections.bootstrap import Candidate, Candidates
from kafka_fast.control.connections.connection_key import UNKNOWN_NODE, ConnectionKey
from kafka_fast.control.connections.connection_outputs import (
    ConnectionFailed,
    ConnectionOutput,
    ConnectionState,
)
from kafka_fast.control.connections.link_errors import REFUSALS, round_error, say
from kafka_fast.control.connections.link_setup import LinkSetup
from kafka_fast.control.connections.negotiation import Negotiation, NodeVersions
from kafka_fast.control.messages import CloseLink, OpenLink, ResolveHost
from kafka_fast.errors import (
    BrokerError,
    ConnectionReason,
    ErrorCode,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    UsageError,
)
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import get_logger

if TYPE_CHECKING:
    from kafka_fast.control.authentication.login import Login

__all__ = ["Connection", "ConnectionState"]

logger = get_logger("kafka_fast.connection")

SHORTEST_BACKOFF = 0.005
"""Seconds; the least wait, even with reconnect.backoff.ms=0. Otherwise a node that refuses
connections at once would be tried thousands of times in a second.
"""

REFUSAL_BACKOFF_MS = 100
REFUSAL_BACKOFF_MAX_MS = 1000
"""The least that reconnect.backoff.ms and its maximum are after a refusal: a user may be locked out
after too many wrong passwords."""


class Connection:
    """One connection, wanted or established. Control thread only."""

    def __init__(
        self,
        key: ConnectionKey,
        endpoints: Sequence[Address],
        settings: CommonSettings,
        client_id: str,
        random: Callable[[], float],
        next_link_id: Callable[[], int],
        mechanism: Mechanism | None = None,
    ) -> None:
        """Make an idle connection.

        Args:
            key: the broker, and what the connection is for.
            endpoints: that lead to it.
            settings: the client's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1), for the order of endpoints and the jitter of waits.
            next_link_id: returns an id for a link, each time another one above 0.
            mechanism: for the login; None: there is no login.
        """
        self.key = key
        self.trying_since = NEVER
        """When the round that is under way began; NEVER: none is."""
        self._client_id = client_id
        self._next_link_id = next_link_id
        self._mechanism = mechanism
        self._random = random
        self._settings = settings
        self._candidates = Candidates(endpoints, random)
        self._backoff = Backoff(
            settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, random
        )
        self._refusal_backoff = Backoff(
            max(settings.reconnect_backoff_ms, REFUSAL_BACKOFF_MS),
            max(settings.reconnect_backoff_max_ms, REFUSAL_BACKOFF_MAX_MS),
            random,
        )
        self._setup_timeout = Backoff(
            settings.socket_connection_setup_timeout_ms,
            settings.socket_connection_setup_timeout_max_ms,
            random,
        )
        self._outputs: deque[ConnectionOutput] = deque()
        self._state = ConnectionState.IDLE  # while there is no link
        self._deadline = NEVER  # of that state
        self._link: LinkSetup | None = None
        self._link_id = 0  # of the last one
        self._candidate: Candidate | None = None  # where the last one led
        self._cluster_id: str | None = None  # the cluster that the other side must belong to
        self._errors: list[KafkaError] = []  # of this round
        self._step_began = 0.0  # when the look-up did
        self._failed_rounds = 0  # since a link was ready
        self._failures = 0  # in a row: rounds, and links that broke soon after they were ready
        self._failing_since = 0.0  # when the first of these failures was
        self._retry_at = LONG_AGO

    # ---- getters ----

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        return self._state if self._link is None else self._link.state

    @property
    def is_ready(self) -> bool:
        """True while requests may be sent; they may have to wait at the gate."""
        return self._link is not None and self._link.is_usable

    @property
    def is_pending(self) -> bool:
        """True while there is work towards a link."""
        idle = (ConnectionState.IDLE, ConnectionState.CLOSED)
        return self.state not in idle and not self.is_ready

    @property
    def endpoint(self) -> Address | None:
        """Where a link is being opened to, or leads; None if there is none."""
        if self._link is None or self._candidate is None:
            return self._candidates.resolving
        return self._candidate.endpoint

    @property
    def link_id(self) -> int:
        """The id of the link, or of the last one; 0: there was none yet."""
        return self._link_id

    @property
    def versions(self) -> NodeVersions | None:
        """What the other side speaks; None unless the connection is ready."""
        link = self._link
        return link.versions if link is not None and link.is_usable else None

    @property
    def awaited(self) -> str:
        """The request of this connection's own that has no answer yet; "" if there is none."""
        return "" if self._link is None else self._link.awaited

    @property
    def ready_since(self) -> float:
        """When the link was ready; NEVER: there is none, or it is not ready yet."""
        return NEVER if self._link is None else self._link.ready_since

    @property
    def has_failed(self) -> bool:
        """True if the last round failed, or the last link broke soon after it was ready."""
        return self._failed_rounds > 0 or self._failures > 1

    @property
    def retry_at(self) -> float:
        """The time before which no link is opened."""
        return self._retry_at

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        return self._deadline if self._link is None else self._link.deadline

    def under_way(self, now: float) -> tuple[str, float] | None:
        """Return what this waits for, and for how many seconds; None: nothing. Any thread."""
        link = self._link
        if link is not None:
            return link.under_way(now)
        if self._state is ConnectionState.RESOLVING:
            return f"{self._resolved()}: its address is being looked up", now - self._step_began
        return None

    # ---- commands ----

    def connect(self, now: float, *, cluster_id: str | None = None) -> None:
        """Ask for a link; nothing happens if one is there or under way.

        Args:
            now: the time.
            cluster_id: lets a broker of 4.4 or later check that it is of this cluster and the node
                this connection is meant for (KIP-1242); None: no check.

        Raises:
            UsageError: the connection was closed.
        """
        if self.state is ConnectionState.CLOSED:
            raise UsageError(f"connection to {self.key} is closed")
        if self.state is not ConnectionState.IDLE:
            return
        self._cluster_id = cluster_id
        if now < self._retry_at:
            self._enter(ConnectionState.BACKOFF, self._retry_at)
        else:
            self._begin_round(now)

    def disconnect(self) -> None:
        """Close the link, or stop connecting, without a backoff; `connect` may follow at once."""
        if self.is_ready:
            self._failures = 0
        self.trying_since = NEVER
        self._drop_link()
        if self._state is not ConnectionState.CLOSED:
            self._enter(ConnectionState.IDLE)

    def refuse_link(self, link_id: int, error: KafkaError, now: float) -> None:
        """Close a ready link that its owner cannot use. The next link waits for the backoff."""
        link = self._current(link_id)
        if link is not None and link.is_usable:
            self._drop_link()
            self._lose(error, now, ready_since=link.ready_since)

    def close(self) -> None:
        """Give up for good."""
        self.disconnect()
        self._state = ConnectionState.CLOSED

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._link is not None:
            self._see(self._link, self._link.tick(now), now)
        elif now < self._deadline:
            return
        elif self._state is ConnectionState.BACKOFF:
            self._begin_round(now)
        else:
            where, seconds = self._resolved(), now - self._step_began
            self._candidates.handle_resolved(())
            text = f"{where}: its address was not found within {seconds:.3g} s"
            self._fail_step(KafkaTimeoutError(text), now)

    # ---- out ----

    def poll_output(self) -> ConnectionOutput | None:
        """Return the next command or event of this connection; None if there is none."""
        return self._outputs.popleft() if self._outputs else None

    # ---- in ----

    def handle_resolved(self, host: str, result: Sequence[str] | BaseException, now: float) -> None:
        """Take the addresses of a host, or why there are none."""
        endpoint = self._candidates.resolving
        if self.state is not ConnectionState.RESOLVING or endpoint is None:
            return
        if endpoint.host != host:
            return  # the result of a look-up that was given up
        if isinstance(result, BaseException) or not result:
            where = self._resolved()
            self._candidates.handle_resolved(())
            why = say(result) if isinstance(result, BaseException) else "no address"
            error = KafkaConnectionError(
                f"{where}: {host!r} does not resolve: {why}", reason=ConnectionReason.UNRESOLVED
            )
            if isinstance(result, BaseException):
                error.__cause__ = result
            self._fail_step(error, now)
        else:
            self._candidates.handle_resolved(result)
            self._try_next(now)

    def handle_connected(self, link_id: int, now: float) -> None:
        """Send ApiVersions over a link that is open now."""
        link = self._current(link_id)
        if link is not None:
            link.handle_connected(now)

    def handle_connect_failed(self, link_id: int, error: BaseException, now: float) -> None:
        """Try the next address: a link could not be opened, and its socket is closed.

        The text of a `KafkaError` continues a sentence that begins with the name of the other side.
        """
        if self.state is ConnectionState.CONNECTING:
            self.handle_closed(link_id, error, now)

    def handle_frame(self, link_id: int, data: bytes, now: float) -> None:
        """Take the answer to a `SendRaw`: a frame without its length."""
        link = self._current(link_id)
        if link is not None:
            self._see(link, link.handle_frame(data, now), now)

    def handle_work_done(self, link_id: int, result: object, now: float) -> None:
        """Take the result of a `DoWork`, or the exception that its function has raised."""
        link = self._current(link_id)
        if link is not None:
            self._see(link, link.handle_work_done(result, now), now)

    def handle_gate_shut(self, link_id: int, now: float) -> None:
        """Log in again over a link on which nothing is in flight any more."""
        link = self._current(link_id)
        if link is not None:
            self._see(link, link.handle_gate_shut(now), now)

    def handle_throttled(self, link_id: int, until: float) -> None:
        """Give the steps of a link more time: the broker reads nothing before `until`."""
        link = self._current(link_id)
        if link is not None:
            link.handle_throttled(until)

    def handle_closed(
        self, link_id: int, error: BaseException | None, now: float, awaited: str = ""
    ) -> None:
        """Drop a link that broke; its socket is closed.

        If the link was usable, the connection fails and backs off. Otherwise the next address is
        tried.

        Args:
            link_id: the link.
            error: why; None: the other side closed it. The text of a `KafkaError` continues a
                sentence that begins with the name of the other side. A `ProtocolError` means that
                the other side does not speak Kafka's protocol; it keeps its class. So does a
                `TlsError`.
            now: the time.
            awaited: the request that the other side should have answered first; "" for none.
        """
        link = self._current(link_id)
        if link is not None:
            failure = link.lost(error, awaited)
            self._let_go(link)
            self._go_on_without(link, failure, now)

    def _current(self, link_id: int) -> LinkSetup | None:
        """Return the link with an id; None: it was given up."""
        return self._link if link_id == self._link_id else None

    # ---- what becomes of a link ----

    def _see(self, link: LinkSetup, failure: KafkaError | None, now: float) -> None:
        """Drop a link whose step has failed; forget failed rounds once a link is usable."""
        if failure is not None:
            self._drop_link()
            self._go_on_without(link, failure, now)
        elif link.is_usable:
            self._failed_rounds = 0
            self.trying_since = NEVER

    def _go_on_without(self, link: LinkSetup, error: KafkaError, now: float) -> None:
        """Go on after a link that is of no use any more, or never was."""
        if link.is_usable:
            self._lose(error, now, ready_since=link.ready_since)
        elif isinstance(error, BrokerError) and error.code == ErrorCode.REBOOTSTRAP_REQUIRED:
            # The address belongs to another broker. The other addresses of its host do not help.
            self._lose(error, now, rebootstrap=True)
        else:
            self._fail_step(error, now)

    def _drop_link(self) -> None:
        """Have the link's socket closed, if there is one."""
        if self._link is not None:
            self._outputs.append(CloseLink(self._link_id))
            self._let_go(self._link)

    def _let_go(self, link: LinkSetup) -> None:
        """Forget a link, whose socket is closed or will be."""
        link.close()
        self._link = None
        self._enter(ConnectionState.IDLE)

    # ---- steps of a round ----

    def _begin_round(self, now: float) -> None:
        """Try every address of every endpoint, beginning now."""
        self._errors.clear()
        self.trying_since = now
        self._candidates.begin_round()
        self._try_next(now)

    def _try_next(self, now: float) -> None:
        """Take the next step of the round, or end it."""
        step = self._candidates.next()
        if step is None:
            self._end_round(now)
        elif isinstance(step, Address):
            self._step_began = now
            self._enter(ConnectionState.RESOLVING, now + self._patience())
            self._outputs.append(ResolveHost(self.key, step.host, self._deadline))
        else:
            self._open_link(step, now)

    def _open_link(self, candidate: Candidate, now: float) -> None:
        where = self._name(candidate)
        negotiation = Negotiation(
            where,
            self._client_id,
            cluster_id=None if self.key.is_bootstrap else self._cluster_id,
            node_id=UNKNOWN_NODE if self._cluster_id is None else self.key.node_id,
        )
        self._candidate = candidate
        self._link_id = self._next_link_id()
        self._link = LinkSetup(
            self._link_id,
            where,
            negotiation,
            None if self._mechanism is None else self._login_maker(self._mechanism, candidate),
            self._patience,
            self._settings,
            self._outputs,
        )
        self._link.expect(now)
        host, port = candidate.endpoint
        self._outputs.append(
            OpenLink(self._link_id, self.key, host, candidate.ip, port, self._link.deadline)
        )

    def _login_maker(
        self, mechanism: Mechanism, candidate: Candidate
    ) -> Callable[[NodeVersions], Login]:
        from kafka_fast.control.authentication.login import Login  # not for clients without SASL

        host = candidate.endpoint.host
        return lambda versions: Login(mechanism, host, versions, self._client_id, self._random)

    def _fail_step(self, error: KafkaError, now: float) -> None:
        """Give up one address or endpoint and go on with the next."""
        logger.debug("%s", error)
        self._errors.append(error)
        self._try_next(now)

    def _end_round(self, now: float) -> None:
        """Every address failed: back off."""
        self._failed_rounds += 1
        error = round_error(str(self.key), self._errors)
        self._lose(error, now, is_refused=isinstance(error, REFUSALS))

    def _lose(
        self,
        error: KafkaError,
        now: float,
        *,
        ready_since: float = NEVER,
        rebootstrap: bool = False,
        is_refused: bool = False,
    ) -> None:
        """Fall back to idle, with a backoff.

        A link that stood for at least the longest backoff ends a row of failures. A link that
        broke sooner continues the row. Otherwise a broker that accepts and drops connections would
        be stormed.
        """
        if now - ready_since >= self._backoff.maximum:
            self._failures = 0
        if not self._failures:
            self._failing_since = now
        backoff = self._refusal_backoff if is_refused else self._backoff
        self._retry_at = now + max(backoff.delay(self._failures), SHORTEST_BACKOFF)
        self._failures += 1
        self.trying_since = NEVER
        self._enter(ConnectionState.IDLE)
        self._outputs.append(
            ConnectionFailed(error, self._retry_at, rebootstrap, self._failing_since, is_refused)
        )

    def _enter(self, state: ConnectionState, deadline: float = NEVER) -> None:
        self._state = state
        self._deadline = deadline

    def _patience(self) -> float:
        """Return the seconds for one step of a round, or of a link."""
        return self._setup_timeout.delay(self._failed_rounds)

    # The other side in errors: its address, and the node expected there

    def _resolved(self) -> str:
        return self._name(self._candidates.resolving)

    def _name(self, place: Candidate | Address | None) -> str:
        return str(place) if self.key.is_bootstrap else f"{self.key} at {place}"
