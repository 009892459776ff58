"""One connection, to a node or to whichever bootstrap server answers: a state machine, sans-I/O.

                    connect            round failed, link lost
    IDLE ─────────────────────┐  ◄───────────────────────────────────────────────────────────┐
      │ before retry_at       ▼                                     (with SASL)              │
      └─► BACKOFF ─ tick ─► RESOLVING ─► CONNECTING ─► NEGOTIATING ─► AUTHENTICATING ─► READY
                              ▲              │              │              │             │ ▲
                              └──────────────┴──────────────┴──────────────┘             ▼ │
                                       next address, next endpoint            REAUTHENTICATING

One *round* tries every address of every endpoint, each with a deadline. Only a whole round counts
as a failure. Then reconnect.backoff.ms follows, doubled from failure to failure (KIP-144). The time
for one address grows in the same way (KIP-601). A connection does not reconnect by itself: after
`ConnectionFailed` its owner calls `connect` again if it still wants the connection. The owner may
do so at once, because the connection keeps the backoff.

A broker may limit the life of a login (KIP-368), and closes a link that carries other requests
after that. So the data plane shuts the link's gate in time, and this client logs in again. The
requests that wait at the gate follow.

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

from collections import deque
from collections.abc import Callable, Sequence

from kafka_fast.config import Address, CommonSettings
from kafka_fast.control.authentication.dialogue import Accepted, AuthenticationStep
from kafka_fast.control.authentication.login import Login
from kafka_fast.control.authentication.mechanism import Mechanism, Work
from kafka_fast.control.backoff import Backoff
from kafka_fast.control.bootstrap import Candidate, Candidates
from kafka_fast.control.connection_key import UNKNOWN_NODE, ConnectionKey
from kafka_fast.control.connection_outputs import (
    ConnectionFailed,
    ConnectionOutput,
    ConnectionReady,
    ConnectionState,
    LoginEnded,
)
from kafka_fast.control.in_flight_requests import NEGOTIATION
from kafka_fast.control.link_errors import REFUSALS, lost_error, round_error, say
from kafka_fast.control.messages import (
    CloseLink,
    DoWork,
    OpenGate,
    OpenLink,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.negotiation import Negotiation, NodeVersions
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    UsageError,
    broker_error,
)
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import get_logger

__all__ = ["Connection", "ConnectionState"]

logger = get_logger("kafka_fast.connection")

REFUSAL_BACKOFF_MS = 100
REFUSAL_BACKOFF_MAX_MS = 1000
"""The least that reconnect.backoff.ms and its maximum are after a refusal: a user may be locked out
after too many wrong passwords."""

WORK_TIMEOUT = 60.0
"""Seconds for one piece of work of a login: a user's function, an identity provider."""


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
        self._client_id = client_id
        self._next_link_id = next_link_id
        self._mechanism = mechanism
        self._random = random
        self._request_timeout = settings.request_timeout
        self._security_protocol = settings.security_protocol
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
        self._state = ConnectionState.IDLE
        self._outputs: deque[ConnectionOutput] = deque()
        self._failures = 0  # in a row: rounds, and links that broke soon after they were ready
        self._failures_before_ready = 0
        self._failing_since = 0.0  # when the first of them was
        self._failed_rounds = 0  # since a link was ready
        self._retry_at = LONG_AGO
        self._deadline = NEVER  # of the state
        self._link_id = 0  # of the last link opened
        self._candidate: Candidate | None = None  # where it leads
        self._cluster_id: str | None = None  # the cluster that the other side must belong to
        self._negotiation: Negotiation | None = None
        self._versions: NodeVersions | None = None
        self._login: Login | None = None  # over this link, from its first dialogue on
        self._step_began = 0.0
        self._ready_since = 0.0
        self._errors: list[KafkaError] = []  # of this round

    # Getters

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        return self._state

    @property
    def is_ready(self) -> bool:
        """True while requests may be sent; they may have to wait at the gate."""
        return self._state in (ConnectionState.READY, ConnectionState.REAUTHENTICATING)

    @property
    def is_pending(self) -> bool:
        """True while there is work towards a link."""
        idle = (ConnectionState.IDLE, ConnectionState.CLOSED)
        return self._state not in idle and not self.is_ready

    @property
    def endpoint(self) -> Address | None:
        """Where a link is being opened to, or leads; None if there is none."""
        return self._candidates.resolving if self._candidate is None else self._candidate.endpoint

    @property
    def link_id(self) -> int:
        """The id of the link, or of the last one; 0: there was none yet."""
        return self._link_id

    @property
    def versions(self) -> NodeVersions | None:
        """What the other side speaks; None unless the connection is ready."""
        return self._versions if self.is_ready else None

    @property
    def awaited(self) -> str:
        """The request of this connection's own that has no answer yet; "" if there is none."""
        if self._state is ConnectionState.NEGOTIATING:
            return "ApiVersions"
        return "" if self._login is None else self._login.awaited

    @property
    def failures(self) -> int:
        """How often in a row connecting has failed."""
        return self._failures

    @property
    def retry_at(self) -> float:
        """The time before which no link is opened."""
        return self._retry_at

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        if self._state is ConnectionState.BACKOFF:
            return self._retry_at
        return self._deadline

    def under_way(self, now: float) -> tuple[str, float] | None:
        """Return what this waits for, and for how many seconds; None: nothing. Any thread."""
        seconds = now - self._step_began
        match self._state:
            case ConnectionState.RESOLVING:
                return f"{self._where()}: its address is being looked up", seconds
            case ConnectionState.CONNECTING:
                return f"{self._where()} has not accepted the connection", seconds
            case ConnectionState.NEGOTIATING:
                return (
                    f"{self._where()} has accepted the connection and not answered ApiVersions",
                    seconds,
                )
            case ConnectionState.AUTHENTICATING | ConnectionState.REAUTHENTICATING:
                return f"{self._where()} {self._login.describe() if self._login else ''}", seconds
            case _:
                return None

    # Commands

    def connect(self, now: float, *, cluster_id: str | None = None) -> None:
        """Ask for a link; nothing happens if one is there or under way.

        Args:
            now: the time.
            cluster_id: lets a broker of 4.4 or later check that it is of this cluster and the node
                this connection is meant for (KIP-1242); None: no check.

        Raises:
            UsageError: the connection was closed.
        """
        if self._state is ConnectionState.CLOSED:
            raise UsageError(f"connection to {self.key} is closed")
        if self._state is not ConnectionState.IDLE:
            return
        self._cluster_id = cluster_id
        if now < self._retry_at:
            self._state = ConnectionState.BACKOFF
        else:
            self._begin_round(now)

    def disconnect(self) -> None:
        """Close the link, or stop connecting, without a backoff; `connect` may follow at once."""
        if self._state is not ConnectionState.CLOSED:
            self._drop_link()
            self._enter(ConnectionState.IDLE)

    def refuse(self, link_id: int, error: KafkaError, now: float) -> None:
        """Close a ready link that its owner cannot use. The next link waits for the backoff."""
        if link_id == self._link_id and self.is_ready:
            self._drop_link()
            self._lose(error, now)

    def close(self) -> None:
        """Give up for good."""
        self.disconnect()
        self._state = ConnectionState.CLOSED

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._state is ConnectionState.BACKOFF:
            if now >= self._retry_at:
                self._begin_round(now)
        elif now < self._deadline:
            return
        elif self._login is not None:
            self._hurry_login(self._login, now)
        else:
            self._fail_step(KafkaTimeoutError(self._too_late(now)), now)

    def _too_late(self, now: float) -> str:
        """Return which step took too long, as text."""
        where, limit = self._where(), f"within {now - self._step_began:.3g} s"
        if self._state is ConnectionState.RESOLVING:
            self._candidates.handle_resolved(())
            return f"{where}: its address was not found {limit}"
        if self._state is ConnectionState.CONNECTING:
            return f"{where} did not accept the connection {limit}"
        if self._state is ConnectionState.NEGOTIATING:
            return f"{where} accepted the connection and did not answer ApiVersions {limit}"
        return f"{where} {self._login.describe() if self._login else ''} {limit}"

    # Out

    def poll_output(self) -> ConnectionOutput | None:
        """Return the next command or event of this connection; None if there is none."""
        return self._outputs.popleft() if self._outputs else None

    # In

    def handle_resolved(self, host: str, result: Sequence[str] | BaseException, now: float) -> None:
        """Take the addresses of a host, or why there are none."""
        endpoint = self._candidates.resolving
        if self._state is not ConnectionState.RESOLVING or endpoint is None:
            return
        if endpoint.host != host:
            return  # the result of a look-up that was given up
        if isinstance(result, BaseException) or not result:
            where = self._where()
            self._candidates.handle_resolved(())
            why = say(result) if isinstance(result, BaseException) else "no address"
            error = KafkaConnectionError(f"{where}: {host!r} does not resolve: {why}")
            if isinstance(result, BaseException):
                error.__cause__ = result
            self._fail_step(error, now)
        else:
            self._candidates.handle_resolved(result)
            self._try_next(now)

    def handle_connected(self, link_id: int, now: float) -> None:
        """Take note that a link is open, and begin to talk."""
        if link_id != self._link_id or self._state is not ConnectionState.CONNECTING:
            return
        self._negotiation = Negotiation(
            self._where(),
            self._client_id,
            cluster_id=None if self.key.is_bootstrap else self._cluster_id,
            node_id=UNKNOWN_NODE if self._cluster_id is None else self.key.node_id,
        )
        self._enter(ConnectionState.NEGOTIATING, now)
        self._ask(self._negotiation)

    def handle_connect_failed(self, link_id: int, error: BaseException, now: float) -> None:
        """Take note that a link could not be opened; its socket is closed.

        The text of a `KafkaError` continues a sentence that begins with the name of the other side.
        """
        if link_id == self._link_id and self._state is ConnectionState.CONNECTING:
            failure = lost_error(self._where(), error, "", "")
            self._candidate = None
            self._fail_step(failure, now)

    def handle_frame(self, link_id: int, data: bytes, now: float) -> None:
        """Take the answer to a `SendRaw`: a frame without its length."""
        login, negotiation = self._login, self._negotiation
        if link_id != self._link_id or self._candidate is None:
            return
        if negotiation is not None:
            self._negotiate(negotiation, data, now)
        elif login is not None and login.is_under_way:
            self._go_on(lambda: login.handle_frame(data, now), now)

    def handle_work_done(self, link_id: int, result: object, now: float) -> None:
        """Take the result of a `DoWork`, or the exception that its function has raised."""
        login = self._login
        if link_id == self._link_id and login is not None and login.work is not None:
            self._go_on(lambda: login.handle_result(result, now), now)

    def handle_gate_shut(self, link_id: int, now: float) -> None:
        """Take note that nothing is in flight on a link, and log in again."""
        login = self._login
        if link_id != self._link_id or login is None or self._state is not ConnectionState.READY:
            return
        self._enter(ConnectionState.REAUTHENTICATING)
        self._step_began = now
        self._deadline = max(now, login.may_begin_at)
        self.tick(now)

    def _negotiate(self, negotiation: Negotiation, data: bytes, now: float) -> None:
        try:
            versions = negotiation.handle_frame(data)
        except KafkaError as error:
            self._fail_negotiation(error, now)
            return
        if versions is None:
            self._ask(negotiation)
            return
        self._versions = versions
        if self._mechanism is None:
            self._begin_use(now)
        else:
            self._log_in(self._mechanism, now)

    def _ask(self, negotiation: Negotiation) -> None:
        request = negotiation.request()
        self._outputs.append(SendRaw(self._link_id, NEGOTIATION, request, self._request_timeout))

    def _begin_use(self, now: float) -> None:
        """Hand the link to its owner."""
        assert self._versions is not None
        self._enter(ConnectionState.READY)
        self._ready_since = now
        self._failures_before_ready, self._failures = self._failures, 0
        self._failed_rounds = 0
        logger.debug("%s is ready at %s", self.key, self._candidate)
        self._outputs.append(ConnectionReady(self._link_id, self._versions))

    # The login

    def _log_in(self, mechanism: Mechanism, now: float) -> None:
        """Begin the login over a new link."""
        assert self._candidate is not None
        assert self._versions is not None
        host = self._candidate.endpoint.host
        login = Login(mechanism, host, self._versions, self._client_id, self._random)
        self._enter(ConnectionState.AUTHENTICATING)
        self._login = login
        self._go_on(lambda: login.begin(now), now)

    def _hurry_login(self, login: Login, now: float) -> None:
        """Begin the next dialogue, or give up the one that takes too long."""
        if login.is_under_way:
            self._fail_login(KafkaTimeoutError(self._too_late(now)), now)
        else:
            self._go_on(lambda: login.begin(now), now)

    def _go_on(self, what: Callable[[], AuthenticationStep], now: float) -> None:
        """Take the next step of a login, which has a deadline of its own."""
        try:
            step = what()
        except KafkaError as error:
            named = type(error)(f"{self._where()} {error}")
            named.__cause__ = error.__cause__
            self._fail_login(named, now)
            return
        self._step_began = now
        if isinstance(step, Accepted):
            self._end_login(now)
        elif isinstance(step, Work):
            self._deadline = now + WORK_TIMEOUT
            self._outputs.append(DoWork(self._link_id, step))
        else:
            self._deadline = now + self._setup_timeout.delay(self._failed_rounds)
            request = SendRaw(
                self._link_id, NEGOTIATION, step, self._request_timeout, is_of_login=True
            )
            self._outputs.append(request)

    def _end_login(self, now: float) -> None:
        """Use the link, until the login is to be renewed."""
        assert self._login is not None
        is_first = self._state is ConnectionState.AUTHENTICATING
        self._outputs.append(LoginEnded(is_first, None))
        if is_first:
            self._begin_use(now)
        else:
            self._enter(ConnectionState.READY)
            logger.debug("%s: the login at %s is renewed", self.key, self._candidate)
        self._outputs.append(OpenGate(self._link_id, self._login.renew_at))

    def _fail_login(self, error: KafkaError, now: float) -> None:
        """Give up an address whose broker did not accept the login, or the link that had one."""
        is_first = self._state is ConnectionState.AUTHENTICATING
        self._outputs.append(LoginEnded(is_first, error))
        if is_first:
            self._fail_step(error, now)
        else:
            self._drop_link()
            self._lose(error, now)

    def handle_closed(
        self, link_id: int, error: BaseException | None, now: float, awaited: str = ""
    ) -> None:
        """Take note that a link broke; its socket is closed.

        Args:
            link_id: the link.
            error: why; None: the other side closed it. The text of a `KafkaError` continues a
                sentence that begins with the name of the other side. A `ProtocolError` means that
                the other side does not speak Kafka's protocol; it keeps its class. So does a
                `TlsError`.
            now: the time.
            awaited: the request that the other side should have answered first; "" for none.
        """
        if link_id != self._link_id or self._candidate is None:
            return
        failure = self._lost(error, awaited)
        if self._login is not None and self._login.is_under_way:
            self._outputs.append(LoginEnded(not self.is_ready, failure))
        self._candidate = None
        if self.is_ready:
            self._lose(failure, now)
        else:
            self._fail_step(failure, now)

    def _lost(self, error: BaseException | None, awaited: str) -> KafkaError:
        """Return the error for a link that broke."""
        hint = ""
        has_tls = self._security_protocol.endswith("SSL")
        if self._state is ConnectionState.NEGOTIATING and not has_tls:
            # A TLS listener may answer a plaintext request without an alert: it closes the
            # connection, or resets it because the rest of the request is unread.
            hint = f": a TLS listener? security.protocol is {self._security_protocol}"
        elif self._login is not None and self._login.is_under_way:
            hint = self._login.guess()
        return lost_error(self._where(), error, self.awaited or awaited, hint)

    # Steps of a round

    def _begin_round(self, now: float) -> None:
        """Try every address of every endpoint, beginning now."""
        self._errors.clear()
        self._candidates.begin_round()
        self._try_next(now)

    def _try_next(self, now: float) -> None:
        """Take the next step of the round, or end it."""
        step = self._candidates.next()
        if step is None:
            self._end_round(now)
        elif isinstance(step, Address):
            self._enter(ConnectionState.RESOLVING, now)
            self._outputs.append(ResolveHost(self.key, step.host, self._deadline))
        else:
            self._candidate = step
            self._link_id = self._next_link_id()
            self._enter(ConnectionState.CONNECTING, now)
            host, port = step.endpoint
            self._outputs.append(
                OpenLink(self._link_id, self.key, host, step.ip, port, self._deadline)
            )

    def _fail_step(self, error: KafkaError, now: float) -> None:
        """Give up one address or endpoint and go on with the next."""
        logger.debug("%s", error)
        self._errors.append(error)
        self._drop_link()
        self._try_next(now)

    def _fail_negotiation(self, error: KafkaError, now: float) -> None:
        """Give up an address whose broker answered, but not as it should."""
        if isinstance(error, BrokerError) and error.code == ErrorCode.REBOOTSTRAP_REQUIRED:
            # The address belongs to another broker. The other addresses of its host do not help.
            self._drop_link()
            self._lose(error, now, rebootstrap=True)
            return
        where = self._where()
        if isinstance(error, BrokerError):
            named: KafkaError = broker_error(error.code, f"the answer of {where} to ApiVersions")
        else:
            named = type(error)(f"{where} {error}")
            named.__cause__ = error
        self._fail_step(named, now)

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
        rebootstrap: bool = False,
        is_refused: bool = False,
    ) -> None:
        """Fall back to idle, with a backoff.

        A link that stood for at least the longest backoff ends a row of failures. A link that
        broke sooner continues the row. Otherwise a broker that accepts and drops connections would
        be stormed.
        """
        is_young = now - self._ready_since < self._backoff.maximum
        if self.is_ready and is_young:
            self._failures = self._failures_before_ready
        if not self._failures:
            self._failing_since = now
        backoff = self._refusal_backoff if is_refused else self._backoff
        self._retry_at = now + backoff.delay(self._failures)
        self._failures += 1
        self._enter(ConnectionState.IDLE)
        self._outputs.append(
            ConnectionFailed(error, self._retry_at, rebootstrap, self._failing_since, is_refused)
        )

    def _drop_link(self) -> None:
        """Have the link's socket closed, if there is one."""
        if self._candidate is not None:
            self._outputs.append(CloseLink(self._link_id))
            self._candidate = None

    def _enter(self, state: ConnectionState, now: float | None = None) -> None:
        """Change the state; `now` gives it a deadline."""
        self._state = state
        self._deadline = NEVER
        if not self.is_ready and state is not ConnectionState.AUTHENTICATING:
            self._versions = None
            if self._login is not None:
                self._login.close()
                self._login = None
        if state is not ConnectionState.NEGOTIATING:
            self._negotiation = None
        if now is not None:
            self._step_began = now
            self._deadline = now + self._setup_timeout.delay(self._failed_rounds)

    def _where(self) -> str:
        """Return the name of the other side in errors: its address, and the node expected there."""
        resolving = self._state is ConnectionState.RESOLVING
        place = self._candidates.resolving if resolving else self._candidate
        return str(place) if self.key.is_bootstrap else f"{self.key} at {place}"
