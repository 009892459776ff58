"""The states of a `Connection`, what it asks for, and what it tells its owner."""

from __future__ import annotations

import enum
from typing import TypeAlias

from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.control.messages import (
    CloseLink,
    DoWork,
    OpenGate,
    OpenLink,
    ResolveHost,
    SendRaw,
)
from kafka_fast.errors import KafkaError
from kafka_fast.values import Value

__all__ = [
    "ConnectionFailed",
    "ConnectionOutput",
    "ConnectionReady",
    "ConnectionState",
    "LinkThrottled",
    "LoginEnded",
]


class ConnectionState(enum.Enum):
    """Where a connection stands; see the drawing in `connection.py`."""

    IDLE = "idle"
    BACKOFF = "backoff"
    RESOLVING = "resolving"
    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    REAUTHENTICATING = "reauthenticating"
    CLOSED = "closed"


class ConnectionReady(Value):
    """The link may carry requests."""

    link_id: int
    versions: NodeVersions


class ConnectionFailed(Value):
    """A round failed, or the link was lost."""

    error: KafkaError
    retry_at: float
    rebootstrap: bool
    """The broker is not the expected one, and says so (KIP-1242)."""
    since: float = 0.0
    """When the first failure of this row was."""
    is_refused: bool = False
    """A login or a certificate was refused: the next try will most likely end the same way."""


class LinkThrottled(Value):
    """The answer to ApiVersions says that the broker throttles this client (KIP-219)."""

    link_id: int
    throttle_ms: int


class LoginEnded(Value):
    """A dialogue over a link has ended."""

    is_first: bool
    """The dialogue was the first over its link, not a renewal."""
    error: KafkaError | None
    """Why the login failed; None: the broker has accepted it."""


ConnectionOutput: TypeAlias = (
    ResolveHost
    | OpenLink
    | SendRaw
    | DoWork
    | OpenGate
    | CloseLink
    | ConnectionReady
    | ConnectionFailed
    | LinkThrottled
    | LoginEnded
)
