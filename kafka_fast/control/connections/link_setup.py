"""One link, from the attempt to open it to its end: versions, a login, renewals. Sans-I/O.

                                 (with SASL)
    CONNECTING ─► NEGOTIATING ─► AUTHENTICATING ─► READY ─ gate is shut ─► REAUTHENTICATING
                       │                           ▲   ▲                          │
                       └───────────────────────────┘   └──────────────────────────┘

`Connection` makes one for each link that it opens, passes news of the link on to it, and lets go of
it when a step fails. Where to connect, and when to try again, is decided there.

A broker may limit the life of a login (KIP-368), and closes a link that carries other requests
after that. So the data plane shuts the link's gate in time, and this client logs in again. The
requests that wait at the gate follow. A dialogue that logs in again begins ahead of the gate, with
its work, and its first request is held until the gate is shut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_fast.config import CommonSettings
from kafka_fast.control.authentication.mechanism import WORK_TIMEOUT, Work
from kafka_fast.control.connections.connection_outputs import (
    ConnectionOutput,
    ConnectionReady,
    ConnectionState,
    LinkThrottled,
    LoginEnded,
)
from kafka_fast.control.connections.link_errors import lost_error
from kafka_fast.control.connections.negotiation import Negotiation, NodeVersions
from kafka_fast.control.in_flight_requests import NEGOTIATION
from kafka_fast.control.messages import DoWork, OpenGate, SendRaw, pause_seconds
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    broker_error,
    reworded,
)
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import get_logger

if TYPE_CHECKING:  # clients without SASL load nothing of it
    from kafka_fast.control.authentication.login import Login, LoginStep

__all__ = ["LinkSetup"]

logger = get_logger("kafka_fast.connection")

USABLE = (ConnectionState.READY, ConnectionState.REAUTHENTICATING)


class LinkSetup:
    """What this client says by itself over one link. Control thread only.

    A step returns why the link cannot be used (any more), or None. It raises nothing: the frames of
    an exception would show what a login says.
    """

    def __init__(
        self,
        link_id: int,
        where: str,
        negotiation: Negotiation,
        begin_login: Callable[[NodeVersions], Login] | None,
        patience: Callable[[], float],
        settings: CommonSettings,
        outputs: deque[ConnectionOutput],
    ) -> None:
        """Prepare for a link; it is CONNECTING once `expect` has said how long it may take.

        Args:
            link_id: of the link.
            where: the name of the other side in errors.
            negotiation: of the versions.
            begin_login: returns a login that has not begun; None: there is none.
            patience: returns the seconds for the next step.
            settings: the client's configuration.
            outputs: takes commands and events.
        """
        self.id = link_id
        self.state = ConnectionState.CONNECTING
        self.deadline = NEVER
        """When `tick` has something to do."""
        self.versions: NodeVersions | None = None
        """What both sides speak, once they have said it."""
        self.ready_since = NEVER
        """When the link was handed to its owner."""
        self._where = where
        self._negotiation = negotiation
        self._begin_login = begin_login
        self._patience = patience
        self._request_timeout = settings.request_timeout
        self._security_protocol = settings.security_protocol
        self._outputs = outputs
        self._login: Login | None = None  # from its first dialogue on
        self._paused_until = LONG_AGO  # by the broker, which reads nothing before
        self._held: bytes | None = None  # of a renewal: its first request, until the gate is shut
        self._step_began = 0.0

    # ---- getters ----

    @property
    def is_usable(self) -> bool:
        """True while requests may be sent; they may have to wait at the gate."""
        return self.state in USABLE

    @property
    def awaited(self) -> str:
        """The request of this client's own that has no answer yet; "" if there is none."""
        if self.state is ConnectionState.NEGOTIATING:
            return "ApiVersions"
        return self._login.awaited if self._login is not None and self._is_logging_in else ""

    def under_way(self, now: float) -> tuple[str, float] | None:
        """Return what is waited for, and for how many seconds; None: nothing. Any thread."""
        match self.state:
            case ConnectionState.CONNECTING:
                what = "has not accepted the connection"
            case ConnectionState.NEGOTIATING:
                what = "has accepted the connection and not answered ApiVersions"
            case ConnectionState.AUTHENTICATING | ConnectionState.REAUTHENTICATING:
                what = self._login.describe() if self._login else ""
            case _:
                return None
        return f"{self._where} {what}", now - self._step_began

    @property
    def _is_logging_in(self) -> bool:
        """Whether the broker takes part in a dialogue, or is about to."""
        has_dialogue = self._login is not None and self._login.is_under_way
        return has_dialogue and self.state is not ConnectionState.READY

    # ---- steps ----

    def expect(self, now: float) -> None:
        """Give the step that begins now its time."""
        self._step_began = now
        self.deadline = max(now, self._paused_until) + self._patience()

    def handle_throttled(self, until: float) -> None:
        """Give the steps of this link more time: the broker reads nothing before `until`."""
        if self.state is not ConnectionState.READY and self.deadline != NEVER:
            self.deadline += max(0.0, until - max(self._paused_until, self._step_began))
        self._paused_until = max(self._paused_until, until)

    def tick(self, now: float) -> KafkaError | None:
        """Start a login dialogue that is due, or return the error of a step that took too long."""
        login = self._login
        if now < self.deadline:
            return None
        if login is not None and not login.is_under_way:
            self.deadline = NEVER
            return self._go_on(lambda: login.begin_dialogue(now), now)
        error = KafkaTimeoutError(self._too_late(now))
        if login is not None:
            self._note_login(error)
        return error

    def handle_connected(self, now: float) -> None:
        """Send ApiVersions, now that the link is open."""
        if self.state is ConnectionState.CONNECTING:
            self.state = ConnectionState.NEGOTIATING
            self.expect(now)
            self._ask_versions()

    def handle_frame(self, data: bytes, now: float) -> KafkaError | None:
        """Take the answer to a `SendRaw`: a frame without its length."""
        login = self._login
        if self.state is ConnectionState.NEGOTIATING:
            return self._negotiate(data, now)
        if login is not None and login.is_under_way:
            return self._go_on(lambda: login.handle_frame(data, now), now)
        return None

    def handle_work_done(self, result: object, now: float) -> KafkaError | None:
        """Take the result of a `DoWork`, or the exception that its function has raised."""
        login = self._login
        if login is not None and login.work is not None:
            return self._go_on(lambda: login.handle_result(result, now), now)
        return None

    def handle_gate_shut(self, now: float) -> KafkaError | None:
        """Log in again, or go on with a dialogue that began ahead: nothing is in flight now."""
        if self._login is None or self.state is not ConnectionState.READY:
            return None
        self.state = ConnectionState.REAUTHENTICATING
        self._step_began = now
        if self._held is not None:
            self._send(self._held, now)
        elif self._login.is_under_way:
            self.deadline = now + WORK_TIMEOUT
        else:
            self.deadline = max(now, self._login.may_begin_at)
            return self.tick(now)
        return None

    # ---- the end ----

    def lost(self, error: BaseException | None, awaited: str) -> KafkaError:
        """Return the error for a link that broke.

        Args:
            error: why; None: the other side closed it.
            awaited: the request that the other side should have answered first; "" for none.
        """
        hint = ""
        has_tls = self._security_protocol.endswith("SSL")
        if self.state is ConnectionState.NEGOTIATING and not has_tls:
            # A TLS listener may answer a plaintext request without an alert: it closes the
            # connection, or resets it because the rest of the request is unread.
            hint = f": a TLS listener? security.protocol is {self._security_protocol}"
        elif self._login is not None and self._is_logging_in:
            hint = self._login.guess()
        failure = lost_error(self._where, error, self.awaited or awaited, hint)
        if self._is_logging_in:
            self._note_login(failure)
        return failure

    def close(self) -> None:
        """Forget what a login knows."""
        if self._login is not None:
            self._login.close()

    # ---- versions ----

    def _ask_versions(self) -> None:
        request = self._negotiation.request()
        self._outputs.append(SendRaw(self.id, NEGOTIATION, request, self._request_timeout))

    def _negotiate(self, data: bytes, now: float) -> KafkaError | None:
        try:
            self.versions = self._negotiation.handle_frame(data)
        except BrokerError as error:
            if error.code == ErrorCode.REBOOTSTRAP_REQUIRED:
                return error
            return broker_error(error.code, f"the answer of {self._where} to ApiVersions")
        except KafkaError as error:
            return self._named(error, error)
        if self._negotiation.throttle_ms > 0:
            self._outputs.append(LinkThrottled(self.id, self._negotiation.throttle_ms))
            self.handle_throttled(now + pause_seconds(self._negotiation.throttle_ms))
        if self.versions is None:
            self._ask_versions()
        elif self._begin_login is None:
            self._hand_over(self.versions, now)
        else:
            self.state = ConnectionState.AUTHENTICATING
            login = self._login = self._begin_login(self.versions)
            return self._go_on(lambda: login.begin_dialogue(now), now)
        return None

    def _named(self, error: KafkaError, cause: BaseException | None) -> KafkaError:
        """Return an error whose text begins with the name of the other side."""
        named = reworded(error, f"{self._where} {error}")
        named.__cause__ = cause
        return named

    def _hand_over(self, versions: NodeVersions, now: float) -> None:
        """Let the owner use the link."""
        self.state = ConnectionState.READY
        self.deadline = NEVER
        self.ready_since = now
        logger.debug("%s is ready", self._where)
        self._outputs.append(ConnectionReady(self.id, versions))

    # ---- the login ----

    def _go_on(self, what: Callable[[], LoginStep], now: float) -> KafkaError | None:
        """Take the next step of the login, which has a deadline of its own."""
        try:
            step = what()
        except KafkaError as error:
            return self._fail_login(self._named(error, error.__cause__))
        if step is None:
            self._end_login(now)
        elif isinstance(step, Work):
            self._outputs.append(DoWork(self.id, step))
            if self.state is not ConnectionState.READY:
                self._step_began = now
                self.deadline = now + WORK_TIMEOUT
        elif self.state is ConnectionState.READY:
            self._held = step
        else:
            self._send(step, now)
        return None

    def _send(self, request: bytes, now: float) -> None:
        self._held = None
        self.expect(now)
        self._outputs.append(
            SendRaw(self.id, NEGOTIATION, request, self._request_timeout, is_of_login=True)
        )

    def _end_login(self, now: float) -> None:
        """Use the link, until the login is to be renewed."""
        assert self._login is not None
        assert self.versions is not None
        self._note_login(None)
        if self.state is ConnectionState.AUTHENTICATING:
            self._hand_over(self.versions, now)
        else:
            self.state = ConnectionState.READY
            logger.debug("%s: the login is renewed", self._where)
        self.deadline = self._login.prepare_at
        self._outputs.append(OpenGate(self.id, self._login.renew_at))

    def _fail_login(self, error: KafkaError) -> KafkaError | None:
        """Return why the link is of no use. What failed ahead of the gate is tried at it again."""
        if self.state is ConnectionState.READY:
            logger.debug("%s, and is asked again when the login is renewed", error)
            self.close()
            return None
        self._note_login(error)
        return error

    def _note_login(self, error: KafkaError | None) -> None:
        is_first = self.state is ConnectionState.AUTHENTICATING
        self._outputs.append(LoginEnded(is_first, error))

    def _too_late(self, now: float) -> str:
        """Return which step took too long, as text."""
        if self.state is ConnectionState.CONNECTING:
            what = "did not accept the connection"
        elif self.state is ConnectionState.NEGOTIATING:
            what = "accepted the connection and did not answer ApiVersions"
        else:
            what = self._login.describe() if self._login else ""
        return f"{self._where} {what} within {now - self._step_began:.3g} s"
