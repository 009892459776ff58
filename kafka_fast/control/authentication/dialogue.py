"""Logging in over one link: SaslHandshake, then SaslAuthenticate until the mechanism is done.

    begin ─► SaslHandshake ─► SaslAuthenticate ─► … ─► Accepted
                                   │    ▲
                                   ▼    │ its result
                                    Work

There is no I/O and no time here: `LinkSetup` carries the frames, has the work done, and keeps the
deadlines. The same dialogue logs in again, over a link that has carried requests (KIP-368). Work
that comes before the first message is then done before SaslHandshake. From SaslHandshake on the
link carries no requests, and they would wait for a token, say.

What a broker says about a refusal comes from outside, and ends in errors and logs. So it is
shortened, and has no control characters (`as_told`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from kafka_fast.control.authentication.mechanism import Conversation, Mechanism, Work
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.control.connections.link_errors import unreadable
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.errors import (
    AuthenticationError,
    ConnectionReason,
    ErrorCode,
    KafkaConnectionError,
    KafkaError,
    ProtocolError,
    broker_error,
    drop_frames,
)
from kafka_fast.instants import NEVER
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.protocol.schema import NO_VERSIONS, Request, Response
from kafka_fast.values import Value

__all__ = ["Accepted", "Authentication", "AuthenticationStep"]

R = TypeVar("R", bound=Response)

HANDSHAKE_VERSION = 1
"""With version 0 the tokens would travel as bare frames (before Kafka 1.0)."""

MAX_ROUNDS = 20
"""SaslAuthenticate requests in one dialogue. No mechanism needs a third of them."""

MAX_LIFETIME = 7 * 86_400.0
"""Seconds. A session that a broker lets live longer is renewed all the same."""

MAX_MECHANISMS = 20
"""Mechanisms of a broker that an error names."""


class Accepted(Value):
    """The broker has accepted the login."""

    lifetime: float
    """Seconds until the broker wants to be told again; NEVER: it does not."""


AuthenticationStep: TypeAlias = bytes | Work | Accepted
"""What comes next: a request to send, something to do, or the end."""


class Authentication:
    """One dialogue: `first_step`, then `handle_frame` or `handle_result`, as each step asks for."""

    def __init__(
        self, mechanism: Mechanism, host: str, versions: NodeVersions, client_id: str
    ) -> None:
        """Prepare a dialogue.

        Args:
            mechanism: with the client's credentials.
            host: the broker's name, as advertised or configured.
            versions: what the broker and this client share.
            client_id: of all requests.
        """
        self.awaited = ""
        """The request that has no answer yet, for people; "" if there is none."""
        self.work: Work | None = None
        """What is being done, and has no result yet."""
        self._mechanism = mechanism
        self._host = host
        self._versions = versions
        self._client_id = client_id
        self._version = 0  # of the request that has no answer yet
        self._conversation: Conversation | None = None
        self._first = b""  # message of the conversation, if it began before SaslHandshake
        self._is_known = False  # that the broker offers the mechanism
        self._rounds = 0
        self._lifetime = NEVER

    # All three raise the same. The texts continue a sentence that begins with the broker's name.

    def first_step(self, *, is_renewal: bool = False) -> AuthenticationStep:
        """Return the first step.

        Args:
            is_renewal: the broker has accepted this mechanism over this link before.

        Raises:
            AuthenticationError: the broker refuses, is not who it should be, or cannot do SASL as
                this client does; or the mechanism has no credentials.
            ProtocolError: an answer cannot be read.
            KafkaError: what the mechanism needs cannot be had at the moment.
        """
        ranges = self._versions.ranges
        handshake = ranges.get(SaslHandshakeRequest.api_key, NO_VERSIONS)
        if HANDSHAKE_VERSION not in handshake or SaslAuthenticateRequest.api_key not in ranges:
            raise AuthenticationError(
                f"offers SaslHandshake in these versions: {handshake}. This client logs in to "
                "Kafka 1.0 and later"
            )
        return self._converse() if is_renewal else self._shake_hands()

    def handle_frame(self, data: bytes) -> AuthenticationStep:
        """Take the answer to the last request, whose correlation id was checked before."""
        if not self._is_known:
            self._take_handshake(self._read(SaslHandshakeResponse, data))
            self._is_known = True
            if self._conversation is None:
                return self._converse()
            first, self._first = self._first, b""
            return self._say(first)
        conversation = self._conversation
        assert conversation is not None
        answer = self._read(SaslAuthenticateResponse, data)
        if answer.error_code:
            refusal = self._refusal(answer.error_code, answer.error_message)
            # The mechanism hears of it: a token that was refused is not to be used again.
            self._advance(lambda: conversation.throw(refusal))
            raise refusal  # whatever the mechanism makes of it
        if answer.session_lifetime_ms > 0:
            self._lifetime = min(answer.session_lifetime_ms / 1000, MAX_LIFETIME)
        return self._advance(lambda: conversation.send(answer.auth_bytes))

    def handle_result(self, result: object) -> AuthenticationStep:
        """Take the result of the last `Work`, or the exception that its function has raised."""
        conversation = self._conversation
        assert conversation is not None
        self.work = None
        if isinstance(result, BaseException):
            error = result
            return self._advance(lambda: conversation.throw(error))
        return self._advance(lambda: conversation.send(result))

    def close(self) -> None:
        """Give the dialogue up, and forget what the conversation knows."""
        self._first = b""
        if self._conversation is not None:
            self._conversation.close()

    # ---- steps ----

    def _shake_hands(self) -> bytes:
        return self._ask(SaslHandshakeRequest(mechanism=self._mechanism.name), HANDSHAKE_VERSION)

    def _converse(self) -> AuthenticationStep:
        self._conversation = self._mechanism.converse(self._host)
        return self._advance(self._conversation.__next__)

    def _advance(self, say_on: Callable[[], bytes | Work]) -> AuthenticationStep:
        """Let the mechanism go on."""
        try:
            said = say_on()
        except StopIteration:
            return Accepted(self._lifetime)
        except KafkaError as error:
            drop_frames(error)  # credentials stand in them
            raise
        except BaseException as error:  # of a user's function: not even SystemExit ends the client
            drop_frames(error)
            why = as_told(str(error)) or "no text"
            raise AuthenticationError(
                f"gets no login by {self._mechanism.name}: {type(error).__name__}: {why}"
            ) from error
        if isinstance(said, Work):
            self.work = said
            return said
        if not self._is_known:
            self._first = said
            return self._shake_hands()
        return self._say(said)

    def _say(self, said: bytes) -> bytes:
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise AuthenticationError(
                f"has not accepted the login by {self._mechanism.name} after {MAX_ROUNDS} rounds"
            )
        version = self._versions.pick(SaslAuthenticateRequest)
        return self._ask(SaslAuthenticateRequest(auth_bytes=said), version)

    def _ask(self, request: Request, version: int) -> bytes:
        self.awaited = f"{api_name(request.api_key)} v{version}"
        self._version = version
        return frame.encode_request(request, version, 0, self._client_id)

    def _read(self, response_class: type[R], data: bytes) -> R:
        self.awaited = ""
        try:
            return frame.decode_response(response_class, data, self._version)[1]
        except ProtocolError as error:
            raise unreadable(response_class.api_key, self._version, error) from error

    # ---- refusals ----

    def _take_handshake(self, answer: SaslHandshakeResponse) -> None:
        code, name = answer.error_code, self._mechanism.name
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(
                as_told(mechanism) for mechanism in answer.mechanisms[:MAX_MECHANISMS]
            )
            raise AuthenticationError(
                f"does not offer the SASL mechanism {name}, but {offered or 'none at all'}"
            )
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            raise AuthenticationError(
                f"does not expect a login by {name} here (ILLEGAL_SASL_STATE): a listener without "
                "SASL?"
            )
        if code:
            raise self._refusal(code, None)

    def _refusal(self, code: int, message: str | None) -> KafkaError:
        name = self._mechanism.name
        words = f": {as_told(message)}" if message else ""
        if code == ErrorCode.SASL_AUTHENTICATION_FAILED:
            return AuthenticationError(f"refuses the login by {name}{words}")
        known = broker_error(code)
        text = f"refuses the login by {name}: {known.name} ({code}){words}"
        if known.retriable:
            return KafkaConnectionError(text, reason=ConnectionReason.LOGIN)
        return AuthenticationError(text)
