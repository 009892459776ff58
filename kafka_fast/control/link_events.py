"""What a `Connection` asks of its shell, and what it tells its owner."""

from typing import TypeAlias

from kafka_fast.config import Address
from kafka_fast.control.negotiation import NodeVersions
from kafka_fast.errors import KafkaError
from kafka_fast.values import Value

__all__ = ["CloseLink", "Event", "Failed", "Open", "Ready", "Resolve", "SendFrame"]


class Resolve(Value):
    """Look up all addresses of `host`, in a thread: it may hang, and is not waited for then.

    While an earlier lookup of the same host still hangs, none is begun: its answer counts.
    """

    host: str
    deadline: float


class Open(Value):
    """Open link number `link` to `ip`; `host` is the name that TLS verifies."""

    link: int
    ip: str
    port: int
    host: str
    deadline: float


class SendFrame(Value):
    """Write a whole request frame; its answer is for `handle_frame`."""

    link: int
    data: bytes


class Ready(Value):
    """The link may carry requests."""

    link: int
    endpoint: Address
    versions: NodeVersions
    next_correlation_id: int


class CloseLink(Value):
    """Close the socket of this link, whatever it is doing."""

    link: int
    reason: str


class Failed(Value):
    """A round failed, or the link was lost."""

    error: KafkaError
    retry_at: float
    rebootstrap: bool
    """The broker says that it is not the one it was taken for (KIP-1242)."""
    since: float = 0.0
    """When the row of failures began that this one goes on."""


Event: TypeAlias = Resolve | Open | SendFrame | Ready | CloseLink | Failed
