"""Drives one connection of the control plane by calls that block, and notes what it shows."""

from __future__ import annotations

import itertools
import queue
import select
import ssl
import time
from contextlib import suppress

from kafka_fast.config import Address, CommonSettings
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.connections.connection import Connection
from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.connections.connection_outputs import (
    ConnectionFailed,
    ConnectionOutput,
    ConnectionReady,
)
from kafka_fast.control.connections.link_errors import close_error, say
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.control.messages import (
    CloseLink,
    CloseReason,
    DoWork,
    LinkClosed,
    OpenLink,
    ResolveHost,
    SendRaw,
)
from kafka_fast.errors import (
    AuthenticationError,
    ConnectionReason,
    KafkaConnectionError,
    KafkaError,
    TlsError,
)
from kafka_fast.net.host import Addresses
from kafka_fast.net.probe.findings import Probed, Step
from kafka_fast.net.probe.handshake import WatchedHandshakes
from kafka_fast.net.probe.release import release_of
from kafka_fast.net.probe.stream import Stream
from kafka_fast.net.sockets import Connecting, begin_connect, finish_connect, resolve
from kafka_fast.net.work import LoginWork
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

__all__ = ["Probe"]

MIDDLE = 0.5
"""In place of chance: the deadlines are then as configured, without jitter."""


class Probe:
    """One address; `run` once. Any thread, which blocks."""

    def __init__(
        self,
        address: Address,
        settings: CommonSettings,
        handshakes: WatchedHandshakes | None,
        mechanism: Mechanism | None,
        *,
        node_id: int | None = None,
        cluster_id: str | None = None,
    ) -> None:
        """Prepare the connection.

        Args:
            address: where to connect.
            settings: the client's; socket.connection.setup.timeout.ms is the time for each step.
            handshakes: of TLS; None: without TLS.
            mechanism: of SASL; None: without SASL.
            node_id: the broker that must be there; None: any.
            cluster_id: the cluster it must belong to, as far as brokers check that.
        """
        self.found = Probed(node_id=node_id, address=address)
        self._settings = settings
        self._handshakes = handshakes
        self._cluster_id = cluster_id
        self._timeout = settings.socket_connection_setup_timeout
        key = BOOTSTRAP if node_id is None else ConnectionKey(Role.DATA, node_id)
        self._connection = Connection(
            key,
            [address],
            settings,
            settings.client_id,
            lambda: MIDDLE,
            itertools.count(1).__next__,
            mechanism,
        )
        self._stream: Stream | None = None

    def run(self) -> Probed:
        """Take all steps, and return what was found."""
        self._connection.connect(time.monotonic(), cluster_id=self._cluster_id)
        try:
            while self.found.error is None and self.found.metadata is None:
                output = self._connection.poll_output()
                assert output is not None, "each command is answered at once"
                self._handle(output)
        finally:
            self._close()
        return self.found

    def _handle(self, output: ConnectionOutput) -> None:
        match output:
            case ResolveHost():
                self._resolve(output)
            case OpenLink():
                self._open(output)
            case SendRaw():
                self._send(output)
            case DoWork():
                self._work(output)
            case CloseLink():
                self._close()
            case ConnectionReady(versions=versions):
                self._ask_metadata(versions)
            case ConnectionFailed(error=error):
                if isinstance(error, AuthenticationError):
                    self.found.reached = Step.SASL
                elif isinstance(error, TlsError):
                    # TLS 1.3: a broker refuses a client certificate after the handshake.
                    self.found.reached = Step.TLS
                self.found.error = error

    def _reach(self, step: Step) -> None:
        self.found.reached = max(self.found.reached, step)

    # ---- DNS, TCP, TLS ----

    def _resolve(self, command: ResolveHost) -> None:
        self._reach(Step.DNS)
        answers: queue.SimpleQueue[Addresses] = queue.SimpleQueue()
        resolve(command.host, answers.put)
        try:
            result = answers.get(timeout=self._left(command.deadline))
        except queue.Empty:
            self._connection.tick(command.deadline)
            return
        if not isinstance(result, BaseException):
            self.found.ips = tuple(result)
        self._connection.handle_resolved(command.host, result, time.monotonic())

    def _open(self, command: OpenLink) -> None:
        self._reach(Step.TCP)
        self.found.ip = command.ip
        began = time.monotonic()
        try:
            connecting = self._connect(command)
        except OSError as error:
            self.found.unreachable[command.ip] = say(error)
            self._connection.handle_connect_failed(command.link_id, error, time.monotonic())
            return
        if connecting is None:
            limit = f"no answer within {self._timeout:g} s"
            self.found.unreachable[command.ip] = limit
            self._connection.tick(command.deadline)
            return
        self.found.connect_seconds = time.monotonic() - began
        self._secure(command, connecting)

    def _connect(self, command: OpenLink) -> Connecting | None:
        """Connect a socket; None: there was no answer in time."""
        connecting = begin_connect(command, self._settings)
        poll = select.poll()
        poll.register(connecting.socket, select.POLLOUT)
        if not poll.poll(1000 * self._left(command.deadline)):
            connecting.socket.close()
            return None
        finish_connect(connecting)
        return connecting

    def _secure(self, command: OpenLink, connecting: Connecting) -> None:
        """Make the handshake, if there is one, and the stream."""
        sock = connecting.socket
        lacks_certificate = False
        if self._handshakes is not None:
            self._reach(Step.TLS)
            # The handshake has a time of its own here, where a client counts from the connect on.
            deadline = time.monotonic() + self._timeout
            made, facts = self._handshakes.shake(sock, command.host, deadline)
            self.found.tls = facts
            if not isinstance(made, ssl.SSLSocket):
                now = time.monotonic()
                self._connection.handle_connect_failed(command.link_id, made, now)
                return
            sock = made
            lacks_certificate = self._handshakes.lacks_certificate(facts)
        self._stream = Stream(
            sock,
            max_bytes=self._settings.receive_message_max_bytes,
            lacks_certificate=lacks_certificate,
        )
        self._connection.handle_connected(command.link_id, time.monotonic())

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # ---- ApiVersions, SASL, Metadata ----

    def _send(self, command: SendRaw) -> None:
        self._reach(Step.SASL if command.is_of_login else Step.API_VERSIONS)
        deadline = self._connection.next_deadline()
        answer = self._ask(command.frame, deadline)
        now = time.monotonic()
        if isinstance(answer, LinkClosed) and answer.reason is CloseReason.TIMEOUT:
            self._connection.tick(max(now, deadline))
            return
        if isinstance(answer, LinkClosed):
            self._connection.handle_closed(command.link_id, self._why(answer, ""), now)
            return
        self._note(command.frame, answer)
        self._connection.handle_frame(command.link_id, answer, now)

    def _ask(self, request: bytes, deadline: float) -> bytes | LinkClosed:
        assert self._stream is not None
        return self._stream.ask(request, deadline)

    def _why(self, event: LinkClosed, awaited: str) -> BaseException | None:
        awaited = awaited or self._connection.awaited
        return close_error(event, awaited, f"{self._timeout:g} s")

    def _note(self, request: bytes, answer: bytes) -> None:
        """Keep what an answer shows; the connection finds what is wrong with it."""
        api_key = int.from_bytes(request[4:6], "big")
        version = int.from_bytes(request[6:8], "big")
        with suppress(KafkaError):
            if api_key == ApiVersionsRequest.api_key:
                _, versions = frame.decode_api_versions_response(answer, version)
                self.found.api_count = len(versions.api_keys)
                if not versions.error_code:
                    self.found.release = release_of(versions)
            elif api_key == SaslHandshakeRequest.api_key:
                _, handshake = frame.decode_response(SaslHandshakeResponse, answer, version)
                self.found.mechanisms = tuple(handshake.mechanisms)
            elif api_key == SaslAuthenticateRequest.api_key:
                _, login = frame.decode_response(SaslAuthenticateResponse, answer, version)
                if login.session_lifetime_ms > 0:
                    self.found.session_seconds = login.session_lifetime_ms / 1000

    def _work(self, command: DoWork) -> None:
        self._reach(Step.SASL)
        done: queue.SimpleQueue[object] = queue.SimpleQueue()
        LoginWork().run_work(command.work, done.put)
        result: object
        try:
            result = done.get(timeout=self._timeout)
        except queue.Empty:
            what = f"waits for a login: {command.work.what}, for more than {self._timeout:g} s"
            result = KafkaConnectionError(what, reason=ConnectionReason.LOGIN)
        self._connection.handle_work_done(command.link_id, result, time.monotonic())

    def _ask_metadata(self, versions: NodeVersions) -> None:
        """Ask for the cluster's brokers, and for no topic."""
        self._reach(Step.METADATA)
        try:
            version = versions.pick(MetadataRequest)
            request = MetadataRequest(topics=[], allow_auto_topic_creation=version < 4)
            data = frame.encode_request(request, version, 0, self._settings.client_id)
            answer = self._ask(data, time.monotonic() + self._timeout)
            if isinstance(answer, LinkClosed):
                awaited = f"Metadata v{version}"
                error = self._why(answer, awaited)
                link_id, now = self._connection.link_id, time.monotonic()
                self._connection.handle_closed(link_id, error, now, awaited)
                return
            _, metadata = frame.decode_response(MetadataResponse, answer, version)
        except KafkaError as error:
            self.found.error = error
            return
        self.found.metadata = metadata

    def _left(self, deadline: float) -> float:
        return max(0.0, deadline - time.monotonic())
