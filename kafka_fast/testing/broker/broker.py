"""One broker: bytes of its connections in, bytes out, in the order and with the timing of Kafka.

    handle_bytes ─► FrameBuffer ─► frames ─► decode ─► handlers/*/<api>.py ─► encode ─► poll_output
                                     │ one at a time                │             ▲
                                     ▼ per connection               ▼             │
                                  Connection.waiting             Waiting ─► timers, appends

Faults strike on this way, so that handlers know only the ones that concern a partition. Driven by
cluster.py's callers: the socket shell or the simulation. Calls no clock: `now` comes in.
"""

from __future__ import annotations

import enum
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka_fast.errors import (
    MalformedError,
    ProtocolError,
    UnsupportedVersionError,
    error_name,
)
from kafka_fast.protocol import frame as framing
from kafka_fast.protocol import headers
from kafka_fast.protocol._decode import decode_as_brokers_do
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.frame import RequestHeader
from kafka_fast.testing.broker import handlers
from kafka_fast.testing.broker.acls import ANONYMOUS
from kafka_fast.testing.broker.connection import LENGTH_SIZE, Connection
from kafka_fast.testing.broker.faults import (
    CutRule,
    DelayRule,
    DropRule,
    Faults,
    GarbleRule,
    ThrottleRule,
    UnaskedRule,
)
from kafka_fast.testing.broker.groups.coordinator import Coordinator
from kafka_fast.testing.broker.received_request import (
    CloseConnectionError,
    ReceivedRequest,
    Waiting,
)
from kafka_fast.testing.broker.sasl.dialogue import Reply, SaslDialogue, State, planned_refusal
from kafka_fast.testing.broker.sessions import FetchSessions
from kafka_fast.testing.broker.state import ClusterState
from kafka_fast.testing.broker.timers import Timers
from kafka_fast.testing.broker.transactions.coordinator import TransactionCoordinator
from kafka_fast.testing.broker.versions import API_VERSIONS

log = logging.getLogger(__name__)

MAX_UNKNOWN_CLIENTS_FRAME = 512 * 1024
"""Bytes: `sasl.server.max.receive.size`, which holds until a client has authenticated."""
_NEWEST_HEADER = 2  # of requests: what a client of tomorrow most likely still sends
_OLDEST_HEADER = 1  # what all others begin with
_MAX_NAME = 100  # characters of a client's id in the log


class Closing(enum.IntEnum):
    """Whether a connection is to end, and how; the later ones overrule those before."""

    NO = 0
    FIN = 1
    RST = 2


class Output(NamedTuple):
    """What the shell has to do for one connection, in the order of the list."""

    connection_id: int
    data: bytes
    close: Closing
    """After the data has been written."""


@dataclass(slots=True)
class _WaitingRequest:
    """A request whose answer comes later."""

    connection: Connection
    header: RequestHeader
    waiting: Waiting
    answered: bool = False


class Broker:
    """One node of the cluster."""

    def __init__(self, node_id: int, state: ClusterState, faults: Faults) -> None:
        """Make a running broker without connections."""
        self.node_id = node_id
        self.paused = False
        self._state = state
        self._faults = faults
        self._connections: dict[int, Connection] = {}
        self._sessions = FetchSessions(state.settings.fetch_sessions)
        self._outputs: list[Output] = []
        self._timers = Timers()
        self._timer_keys = itertools.count()
        self._coordinator = Coordinator(node_id, state, self._timers)
        self._transactions = TransactionCoordinator(node_id, state, self._timers, faults)
        self._waiting: list[_WaitingRequest] = []
        self._seen_changes = state.changes  # of the state, when `_waiting` was last looked at

    # ---- in ----

    def connect(self, connection_id: int, user: str = ANONYMOUS) -> bool:
        """Take a new connection; False: refused, because the node is down or has too many.

        Args:
            connection_id: a new one.
            user: whom the client's certificate names; SASL overrules it.
        """
        if not self._state.nodes[self.node_id].alive:
            return False
        if len(self._connections) >= self._state.settings.max_connections:
            self._log_end(f"there are {len(self._connections)} already")
            return False
        if connection_id in self._connections:
            raise ValueError(f"connection {connection_id} exists")
        security = self._state.security
        sasl = SaslDialogue(security) if security.settings.mechanisms else None
        connection = Connection(connection_id, self._state.settings.max_frame_size, user, sasl)
        self._connections[connection_id] = connection
        self._limit_frames(connection)
        return True

    def disconnect(self, connection_id: int) -> None:
        """Forget a connection that the client closed or that broke."""
        connection = self._connections.pop(connection_id, None)
        if connection is not None:
            connection.closed = True

    def handle_bytes(
        self, connection_id: int, data: bytes | bytearray | memoryview, now: float
    ) -> None:
        """Take bytes of a connection, in whatever pieces they come."""
        connection = self._connections.get(connection_id)
        if connection is None:
            return
        try:
            for frame in connection.buffer.feed(data):
                self._take_frame(connection, frame, now)
        except ProtocolError as error:
            self._refuse(connection, str(error))

    def handle_frame(self, connection_id: int, frame: bytes, now: float) -> None:
        """Take one whole frame, without its length."""
        connection = self._connections.get(connection_id)
        if connection is not None:
            self._take_frame(connection, frame, now)

    def wants_bytes(self, connection_id: int) -> bool:
        """Tell whether the shell should go on reading: not far ahead of what is being answered."""
        connection = self._connections.get(connection_id)
        return connection is None or connection.waiting_size < self._state.settings.read_ahead

    # ---- commands ----

    def kill(self) -> None:
        """Drop every connection and everything that was under way."""
        for connection in list(self._connections.values()):
            self._close(connection)
        self._timers.cancel_all()
        self._waiting.clear()
        self._sessions.forget_all()
        self._coordinator.forget_all()
        self._transactions.forget_all()
        self.paused = False

    def pause(self) -> None:
        """Stand still like a process after SIGSTOP: bytes are taken, nothing is handled."""
        self.paused = True

    def resume(self, now: float) -> None:
        """Go on with what came in during the pause."""
        self.paused = False
        for connection in list(self._connections.values()):
            self._advance(connection, now)

    def expire_sessions(self, now: float) -> None:
        """Let the sessions of all authenticated clients end; their next request shows it."""
        for connection in self._connections.values():
            if connection.sasl is not None:
                connection.sasl.expire(now)

    def close_idle(self) -> int:
        """Close the connections on which nothing is being answered; return their number."""
        idle = [link for link in self._connections.values() if not (link.busy or link.waiting)]
        for connection in idle:
            self._close(connection)
        return len(idle)

    def forget_fetch_sessions(self) -> None:
        """Drop all fetch sessions."""
        self._sessions.forget_all()

    # ---- out ----

    def poll_output(self, now: float) -> list[Output]:
        """Return what is to be written or closed by now; each thing once."""
        if not self.paused:
            self._coordinator.refresh(now)
            self._transactions.refresh(now)
            self._recheck_waiting(now)
            while self._timers.run_next(now):
                self._recheck_waiting(now)
        outputs, self._outputs = self._outputs, []
        return outputs

    def next_due(self) -> float | None:
        """Return when `poll_output` has to be called even if nothing comes in, None: never."""
        if self._outputs:
            return float("-inf")
        return None if self.paused else self._timers.next_due()

    # ---- one request ----

    def _take_frame(self, connection: Connection, frame: bytes, now: float) -> None:
        connection.push(frame)
        self._advance(connection, now)

    def _advance(self, connection: Connection, now: float) -> None:
        while connection.waiting and not (connection.stands_still or self.paused):
            self._handle(connection, connection.pop(), now)

    def _handle(self, connection: Connection, frame: bytes, now: float) -> None:
        is_token = connection.sasl is not None and connection.sasl.takes_frames
        try:
            if is_token:
                self._take_token(connection, frame, now)
            else:
                self._answer(connection, frame, now)
        except (CloseConnectionError, ProtocolError) as error:
            # What looks like a client's id in a token may be a password.
            self._refuse(connection, str(error), None if is_token else _client_id_in(frame))

    def _take_token(self, connection: Connection, token: bytes, now: float) -> None:
        assert connection.sasl is not None
        reply = connection.sasl.take_frame(token, now, self._state.unix_ms(now))
        self._reply_sasl(connection, None, reply, now)

    def _answer(self, connection: Connection, frame: bytes, now: float) -> None:
        try:
            header, body = framing.decode_request(frame, as_brokers_do=True)
        except UnsupportedVersionError as error:
            if error.header is None:
                raise
            if not handlers.answers_any_version(error.header.api_key):
                raise CloseConnectionError(_not_offered(error.header)) from error
            # Raises if the header is not whole.
            decode_as_brokers_do(headers.RequestHeader.program(_NEWEST_HEADER), frame)
            self._reply_unsupported(connection, error.header, now)
            return
        versions = handlers.offered_versions(header.api_key, self._faults)
        if versions is None or not versions[0] <= header.version <= versions[1]:
            if not handlers.answers_any_version(header.api_key):
                raise CloseConnectionError(_not_offered(header))
            self._reply_unsupported(connection, header, now)
            return
        drop = self._faults.take_rule(DropRule, self.node_id, header.api_key)
        if drop is not None and not drop.applied:
            self._lose(connection, drop)
            return
        if connection.sasl is not None and connection.sasl.owns(header, now):
            reply = self._authenticate(connection.sasl, header, body, now)
            if drop is not None:
                self._lose(connection, drop)
            else:
                self._reply_sasl(connection, header, reply, now)
            return
        request = ReceivedRequest(
            self.node_id,
            header,
            body,
            now,
            self._state,
            self._faults,
            self._sessions,
            self._coordinator,
            self._transactions,
            connection.user,
        )
        answer = handlers.HANDLERS[header.api_key](request)
        if connection.sasl is not None and header.api_key == API_VERSIONS and not answer.error_code:
            connection.sasl.answered_versions()
        if drop is not None:
            self._lose(connection, drop)
        elif isinstance(answer, Waiting):
            self._wait(_WaitingRequest(connection, header, answer))
        elif answer is not None:
            self._reply(connection, header, answer, now)
        else:
            unasked = self._faults.take_rule(UnaskedRule, self.node_id, header.api_key)
            if unasked is not None:
                data = unasked.answer(header.correlation_id)
                self._emit(connection, Output(connection.connection_id, data, Closing.NO))

    def _authenticate(
        self, sasl: SaslDialogue, header: RequestHeader, body: Any, now: float
    ) -> Reply:
        """Return the reply to a request of the SASL dialogue."""
        planned = self._faults.take_error(self.node_id, header.api_key)
        if planned is not None:
            return planned_refusal(header.api_key, planned.code)
        return sasl.handle(header, body, now, self._state.unix_ms(now))

    def _reply_sasl(
        self, connection: Connection, header: RequestHeader | None, reply: Reply, now: float
    ) -> None:
        """Send a reply; `header` is None for a token without one.

        As in Kafka a refusal waits, so that nobody tries passwords in a hurry (KIP-306).
        """
        self._limit_frames(connection)
        due = now
        if reply.ends:
            client_id = None if header is None else header.client_id
            self._log_end(_refusal_in(reply.body), client_id)
            connection.ending = True
            due = now + self._state.security.settings.failure_delay_ms / 1000
        if header is None:
            self._emit_token(connection, reply.body)
        elif reply.body is not None and reply.at_once:
            self._reply(connection, header, reply.body, now)
        elif reply.body is not None:
            body = reply.body
            self._at(due, lambda now: self._reply(connection, header, body, now, Closing.FIN))
            return
        if reply.ends:
            self._at(due, lambda now: self._close(connection))

    def _emit_token(self, connection: Connection, token: bytes | None) -> None:
        if token is not None:
            data = len(token).to_bytes(LENGTH_SIZE, "big") + token
            self._emit(connection, Output(connection.connection_id, data, Closing.NO))

    def _limit_frames(self, connection: Connection) -> None:
        """Let only a client that has authenticated send large requests."""
        limit = self._state.settings.max_frame_size
        if connection.sasl is not None and connection.sasl.state is not State.COMPLETE:
            limit = min(limit, MAX_UNKNOWN_CLIENTS_FRAME)
        connection.buffer.max_frame_size = limit

    def _reply_unsupported(self, connection: Connection, header: RequestHeader, now: float) -> None:
        """Answer an ApiVersions request of a version that is not offered: in version 0."""
        body = handlers.unsupported_version(self._faults)
        self._reply(connection, header._replace(version=0), body, now)

    def _reply(
        self,
        connection: Connection,
        header: RequestHeader,
        body: Any,
        now: float,
        close: Closing = Closing.NO,
    ) -> None:
        throttle = self._faults.take_rule(ThrottleRule, self.node_id, header.api_key)
        delay = self._faults.take_rule(DelayRule, self.node_id, header.api_key)
        cut = self._faults.take_rule(CutRule, self.node_id, header.api_key)
        muted_until = now
        if throttle is not None and hasattr(body, "throttle_time_ms"):
            body.throttle_time_ms = throttle.throttle_ms
            muted_until = now + throttle.throttle_ms / 1000
        self._faults.rewrite(header.api_key, body, self.node_id)
        data = framing.encode_response(body, header.version, header.correlation_id)
        garble = self._faults.take_rule(GarbleRule, self.node_id, header.api_key)
        if garble is not None:
            data = garble.change(data)
        if cut is not None:
            data = data[: cut.after]
            close = Closing.RST if cut.reset else Closing.FIN
            self._log_end("a fault rule cuts an answer", header.client_id, logging.INFO)
        output = Output(connection.connection_id, data, close)
        if delay is None:
            self._emit(connection, output)
        else:
            due = now + delay.seconds
            muted_until = max(muted_until, due)
            connection.busy = True
            self._at(due, lambda now: self._emit(connection, output))
        if muted_until > now:
            connection.busy = True
            self._at(muted_until, lambda now: self._free(connection, now))

    def _emit(self, connection: Connection, output: Output) -> None:
        if connection.closed:
            return
        self._outputs.append(output)
        if output.close:
            self._forget(connection)

    def _free(self, connection: Connection, now: float) -> None:
        connection.busy = False
        self._advance(connection, now)

    # ---- answers that come later ----

    def _wait(self, waiting: _WaitingRequest) -> None:
        waiting.connection.busy = True
        self._waiting.append(waiting)
        deadline = waiting.waiting.deadline
        if deadline is not None:
            self._at(deadline, lambda now: self._retry(waiting, now, True))

    def _retry(self, waiting: _WaitingRequest, now: float, last_chance: bool) -> None:
        if waiting.answered or waiting.connection.closed:
            return
        body = waiting.waiting.retry(now, last_chance)
        if body is None:
            return
        waiting.answered = True
        waiting.connection.busy = False
        self._reply(waiting.connection, waiting.header, body, now)
        self._advance(waiting.connection, now)

    def _recheck_waiting(self, now: float) -> None:
        """Look at the waiting requests again if there are new records or leaders."""
        while self._seen_changes != self._state.changes:
            self._seen_changes = self._state.changes
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                self._retry(one, now, False)
            unanswered = [w for w in waiting if not (w.answered or w.connection.closed)]
            self._waiting = unanswered + self._waiting

    def _at(self, due: float, action: Callable[[float], None]) -> None:
        self._timers.schedule(next(self._timer_keys), due, action)

    # ---- ends ----

    def _lose(self, connection: Connection, drop: DropRule) -> None:
        """Leave a request without an answer: a later answer would be taken for it."""
        if drop.close:
            self._log_end("a fault rule drops a request", level=logging.INFO)
            self._close(connection)
        else:
            connection.busy = True

    def _refuse(self, connection: Connection, reason: str, client_id: str | None = None) -> None:
        """End a connection, as Kafka does."""
        self._log_end(reason, client_id)
        self._close(connection)

    def _log_end(
        self, reason: str, client_id: str | None = None, level: int = logging.WARNING
    ) -> None:
        """Say why a connection ends: its client is told nothing, or guesses."""
        of_client = f" of client {client_id[:_MAX_NAME]!r}" if client_id else ""
        log.log(level, "node %d ends a connection%s: %s", self.node_id, of_client, reason)

    def _close(self, connection: Connection) -> None:
        if not connection.closed:
            self._outputs.append(Output(connection.connection_id, b"", Closing.FIN))
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        connection.closed = True
        self._connections.pop(connection.connection_id, None)


def _client_id_in(frame: bytes) -> str | None:
    """Return whose request a frame is, if it says so."""
    try:
        header, _ = decode_as_brokers_do(headers.RequestHeader.program(_OLDEST_HEADER), frame)
    except MalformedError:
        return None
    client_id: str | None = header.client_id
    return client_id


def _not_offered(header: RequestHeader) -> str:
    return f"{api_name(header.api_key)} v{header.version} is not offered here"


def _refusal_in(body: Any) -> str:
    """Return why a client could not authenticate: `body` is the answer, which may say so."""
    if body is None:
        return "the client could not authenticate"
    message = getattr(body, "error_message", None)
    name = error_name(body.error_code)
    return f"{name}: {message}" if message else name
