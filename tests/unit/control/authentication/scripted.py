"""A mechanism that says what a test tells it to, and the broker's side of the dialogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.errors import ErrorCode
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

HANDSHAKE = SaslHandshakeRequest.api_key
AUTHENTICATE = SaslAuthenticateRequest.api_key

SASL_APIS = [
    ApiVersion(api_key=HANDSHAKE, min_version=0, max_version=1),
    ApiVersion(api_key=AUTHENTICATE, min_version=0, max_version=2),
]


class Scripted:
    """A mechanism whose conversation is a function of the broker's host."""

    name = "SCRIPT"

    def __init__(self, conversation: Callable[[str], Conversation]) -> None:
        self.converse = conversation


def say_once(host: str) -> Conversation:
    """Say one thing, as PLAIN does."""
    answer = yield b"\0user\0password"
    assert answer == b""


def work_then_say(host: str) -> Conversation:
    """Say what a piece of work has found."""
    token = yield Work(lambda: b"token", f"a token is asked of {host}")
    yield token


def versions(*apis: ApiVersion) -> NodeVersions:
    """Return what a broker that offers these APIs shares with this client."""
    return NodeVersions("b:9092", ApiVersionsResponse(api_keys=list(apis or SASL_APIS)))


def read(request: object) -> tuple[Any, int]:
    """Return a request and its version."""
    assert isinstance(request, bytes)
    header, body = frame.decode_request(request[4:])
    return body, header.version


def shake(request: object, code: int = 0, mechanisms: tuple[str, ...] = ("SCRIPT",)) -> bytes:
    """Answer a SaslHandshake."""
    body, version = read(request)
    assert (body.mechanism, version) == ("SCRIPT", 1)
    answer = SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms))
    return frame.encode_response(answer, version, 0)[4:]


def accept(request: object, auth_bytes: bytes = b"", lifetime_ms: int = 0) -> bytes:
    """Answer a SaslAuthenticate without an error."""
    _, version = read(request)
    answer = SaslAuthenticateResponse(auth_bytes=auth_bytes, session_lifetime_ms=lifetime_ms)
    return frame.encode_response(answer, version, 0)[4:]


def refuse(
    request: object, text: str | None, code: int = ErrorCode.SASL_AUTHENTICATION_FAILED
) -> bytes:
    """Answer a SaslAuthenticate with an error."""
    _, version = read(request)
    answer = SaslAuthenticateResponse(error_code=code, error_message=text)
    return frame.encode_response(answer, version, 0)[4:]
