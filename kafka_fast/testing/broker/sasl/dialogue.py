"""SASL on one connection: what may come when, as Kafka's SaslServerAuthenticator has it.

    INITIAL ── ApiVersions ─► HANDSHAKE ── SaslHandshake ─► TOKENS ── last token ─► COMPLETE
       └────── SaslHandshake ────────────────────────────────▲                        │
                                                             └──── SaslHandshake ◄────┘ KIP-368

Each refusal ends the connection, after a while (KIP-306). A session that has expired ends with the
next request that is not SaslHandshake. Knows neither bytes on the wire nor timers: the broker does.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from kafka_fast.errors import (
    BrokerError,
    IllegalSaslState,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from kafka_fast.protocol.apis.security.sasl_authenticate import SaslAuthenticateResponse
from kafka_fast.protocol.apis.security.sasl_handshake import SaslHandshakeResponse
from kafka_fast.protocol.frame import RequestHeader
from kafka_fast.testing.broker.received_request import CloseConnectionError
from kafka_fast.testing.broker.sasl.mechanisms import (
    BadTokenError,
    Identity,
    RefusedError,
    Tokens,
    begin,
)
from kafka_fast.testing.broker.security import SecurityState
from kafka_fast.testing.broker.versions import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE

_TOKENS_IN_FRAMES_UP_TO = 0  # version of SaslHandshake: later tokens come in SaslAuthenticate
MIN_REAUTH_INTERVAL = 1.0
"""Seconds between the starts of two re-authentications; a broker refuses to be asked faster."""


class State(enum.Enum):
    """How far a connection is."""

    INITIAL = enum.auto()
    HANDSHAKE = enum.auto()  # ApiVersions was answered
    TOKENS = enum.auto()
    BAD_MECHANISM = enum.auto()  # re-authentication by another mechanism: the next token fails
    COMPLETE = enum.auto()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client is answered."""

    body: Any
    """A response; bytes for a token in a frame; None: nothing."""
    ends: bool = False
    """The connection ends after the delay of failures."""
    at_once: bool = True
    """False: the answer, too, waits for that delay."""


class SaslDialogue:
    """SASL of one connection."""

    def __init__(self, security: SecurityState) -> None:
        self.state = State.INITIAL
        self.user = ""
        self.expires_at: float | None = None  # the session, by the broker's clock
        self.takes_frames = False  # the next frame is a token without a header
        self._security = security
        self._mechanism = ""
        self._tokens: Tokens | None = None
        self._is_reauth = False
        self._reauth_started: float | None = None

    def owns(self, header: RequestHeader, now: float) -> bool:
        """Tell whether a request is for `handle`, and not for an API's handler.

        Raises:
            CloseConnectionError: it must not come now.
        """
        key = header.api_key
        if self.state is State.COMPLETE:
            if key == SASL_HANDSHAKE and self._may_begin_again(now):
                return True
            if self.expires_at is not None and now >= self.expires_at:
                raise CloseConnectionError("the session has expired")
            return False
        if self.state in (State.TOKENS, State.BAD_MECHANISM):
            return True
        if key == API_VERSIONS and self.state is State.INITIAL:
            return False
        if key != SASL_HANDSHAKE:
            raise CloseConnectionError(f"{api_name(key)} before authentication")
        return True

    def answered_versions(self) -> None:
        """Note that ApiVersions was answered without an error: it is not asked for twice."""
        if self.state is State.INITIAL:
            self.state = State.HANDSHAKE

    def handle(self, header: RequestHeader, body: Any, now: float, unix_ms: int) -> Reply:
        """Answer a request of the dialogue."""
        if self.state is State.BAD_MECHANISM:
            return Reply(None, ends=True)
        if self.state is State.TOKENS:
            if header.api_key != SASL_AUTHENTICATE:
                return Reply(_illegal(header.api_key), ends=True, at_once=False)
            return self._take(body.auth_bytes, now, unix_ms)
        self.expires_at = None
        self._is_reauth = self.state is State.COMPLETE
        mechanism: str = body.mechanism
        offered = list(self._security.settings.mechanisms)
        if mechanism not in offered:
            code = UnsupportedSaslMechanism.code
            return Reply(SaslHandshakeResponse(error_code=code, mechanisms=offered), ends=True)
        if self._is_reauth and mechanism != self._mechanism:
            self.state = State.BAD_MECHANISM
        else:
            self.state = State.TOKENS
            self._mechanism = mechanism
            self._tokens = begin(mechanism, self._security, unix_ms)
            self.takes_frames = header.version <= _TOKENS_IN_FRAMES_UP_TO
        return Reply(SaslHandshakeResponse(error_code=0, mechanisms=offered))

    def take_frame(self, token: bytes, now: float, unix_ms: int) -> Reply:
        """Answer a token that came without a header: nobody is told why one is refused."""
        reply = self._take(token, now, unix_ms)
        if reply.ends:
            return Reply(None, ends=True)
        return Reply(reply.body.auth_bytes)

    def expire(self, now: float) -> None:
        """Let the session end now, if there is one."""
        if self.state is State.COMPLETE:
            self.expires_at = now

    def _may_begin_again(self, now: float) -> bool:
        last = self._reauth_started
        if self.expires_at is None:
            return False
        if last is not None and now - last < MIN_REAUTH_INTERVAL:
            return False
        self._reauth_started = now
        return True

    def _take(self, token: bytes, now: float, unix_ms: int) -> Reply:
        assert self._tokens is not None
        try:
            return Reply(
                SaslAuthenticateResponse(error_code=0, auth_bytes=self._tokens.send(token))
            )
        except StopIteration as ended:
            identity: Identity = ended.value
        except RefusedError as error:
            return _refused(SaslAuthenticationFailed, str(error))
        except BadTokenError:
            what = "re-authentication" if self._is_reauth else "authentication"
            return _refused(
                SaslAuthenticationFailed,
                f"Authentication failed during {what} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}",
            )
        if self._is_reauth and identity.user != self.user:
            return _refused(
                SaslAuthenticationFailed,
                "Cannot change principals during re-authentication from "
                f"User.{self.user}: User.{identity.user}",
            )
        return self._complete(identity, now, unix_ms)

    def _complete(self, identity: Identity, now: float, unix_ms: int) -> Reply:
        self.state = State.COMPLETE
        self.user = identity.user
        self.takes_frames = False
        lifetimes = [self._security.settings.reauth_ms] if self._security.settings.reauth_ms else []
        if identity.expires_at_ms is not None:
            lifetimes.append(max(0, identity.expires_at_ms - unix_ms))
        lifetime = min(lifetimes, default=0)
        if lifetimes:
            self.expires_at = now + lifetime / 1000
        response = SaslAuthenticateResponse(
            error_code=0, auth_bytes=identity.token, session_lifetime_ms=lifetime
        )
        return Reply(response)


def _refused(error: type[BrokerError], message: str) -> Reply:
    body = SaslAuthenticateResponse(error_code=error.code, error_message=message)
    return Reply(body, ends=True, at_once=False)


def planned_refusal(api_key: int, code: int) -> Reply:
    """Return the refusal that a fault wants."""
    if api_key == SASL_HANDSHAKE:
        return Reply(SaslHandshakeResponse(error_code=code, mechanisms=[]), ends=True)
    body = SaslAuthenticateResponse(error_code=code, error_message="refused on purpose")
    return Reply(body, ends=True, at_once=False)


def _illegal(api_key: int) -> object:
    """Return the answer to a request between two tokens; most just end the connection here."""
    if api_key == API_VERSIONS:
        return ApiVersionsResponse(error_code=IllegalSaslState.code)
    if api_key == SASL_HANDSHAKE:
        return SaslHandshakeResponse(error_code=IllegalSaslState.code, mechanisms=[])
    return None
