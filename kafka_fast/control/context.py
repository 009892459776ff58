"""What the parts of one client's control plane share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.connections.links import Links
from kafka_fast.control.diagnosis.troubles import Troubles
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.discovery import Discovery
from kafka_fast.control.requests.requester import Requester
from kafka_fast.values import Value

S_co = TypeVar("S_co", bound=CommonSettings, covariant=True)


class Context(Value, Generic[S_co]):
    """One client, as the parts of its control plane see it; `ClientControl` makes it."""

    settings: S_co
    """The client's configuration."""
    client_id: str
    """The client id in all requests."""
    random: Callable[[], float]
    """Returns a float in [0, 1)."""
    wall_ms: Callable[[], int]
    """Returns the Unix time in ms. All other times are monotonic, and come in as `now`."""
    backoff: Backoff
    """The waits between two tries of a request: retry.backoff.ms."""
    troubles: Troubles
    """What has gone wrong lately, for errors and the log."""
    cluster: Cluster
    """Nodes, topics and leaders, as far as they are known."""
    connections: Connections
    """Connections, and the requests that go over them."""
    links: Links
    """The links that may be used now: those of `connections`."""
    discovery: Discovery
    """Asks for metadata, and closes connections to nodes that moved or left."""
    requester: Requester
    """Sends calls, and decides when they are tried again."""
    call_in_thread: Callable[[Callable[[], object], Callable[[object, float], None]], None]
    """Calls a function in a thread of its own; see `messages.CallInThread`."""
