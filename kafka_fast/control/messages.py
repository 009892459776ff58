"""The messages between every client's control plane and what it programs.

Events come up from the data plane. Commands go down to it and to the host (sockets, look-ups). A
*carrier* passes them on, so control/ and dataplane/ never import each other, and a simulation can
carry them too. `producer_messages` and `consumer_messages` add what only those clients have.
`control.message_fields` says how the data plane's code follows from its commands and events.

A *link* is one established connection, numbered through the client's life.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeAlias

from kafka_fast.control.authentication.mechanism import Work
from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.message_fields import AddedText, Int16, Int32, Int64, OwnedLink
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.records.fetch import FetchRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.values import Value

# ---- events ----


class CloseReason(enum.IntEnum):
    """Why the data plane closed a link."""

    BY_US = 1
    """The control plane asked for it."""
    EOF = 2
    """The peer closed."""
    OS_ERROR = 3
    """A read or write failed; `detail` is errno."""
    TIMEOUT = 4
    """A request's time passed without an answer."""
    BAD_FRAME = 5
    """A length was out of range; `detail` is the length."""
    BAD_RESPONSE = 6
    """A Produce or Fetch answer did not fit its request."""
    CORRELATION = 7
    """An answer came to no request in flight; `detail` is its id."""
    IDLE = 8
    """connections.max.idle.ms passed without a request."""
    LAYER = 9
    """The layer above the socket failed: TLS. `detail` is a number of its own, `head` its words."""


class Awaited(enum.IntEnum):
    """The kinds of requests: of the oldest one on a link that was closed."""

    NOTHING = 0
    RAW = 1
    """The control plane's: the answer goes up as it came."""
    PRODUCE = 2
    FETCH = 3
    HEARTBEAT = 4
    """Or one sent between two. An expected answer does not go up."""


API_KEYS = {Awaited.PRODUCE: ProduceRequest.api_key, Awaited.FETCH: FetchRequest.api_key}


class Misfit(enum.IntEnum):
    """How a Produce or Fetch answer does not fit its request."""

    FORM = 0
    """The answer does not follow its schema."""
    FOREIGN = 1
    """The answer names a partition that was not asked for."""
    TWICE = 2
    """The answer names a partition twice."""
    MISSING = 3
    """The answer leaves out a partition that was asked for."""
    SESSION = 4
    """The answer names another fetch session than the request."""


class RawResponse(Value):
    """The answer to a raw request; `frame` is None if its link was closed first."""

    link_id: Int32
    token: Int64
    frame: bytes | None
    reason: Int32
    """Without a frame: the `CloseReason`."""


class LinkClosed(Value):
    """A link is gone; its batches are back in their queues."""

    link_id: Int32
    reason: CloseReason
    detail: Int64
    """errno, a frame's length or a correlation id, as the reason has it."""
    head: bytes = b""
    """The first bytes of an incomplete frame. They may tell what kind of server sent them."""
    awaited: Awaited = Awaited.NOTHING
    words: AddedText = ""
    """LAYER: what the layer says, after the name of the other side."""


class BadAnswer(Value):
    """A Produce or Fetch answer for which the link is closed next."""

    link_id: Int32
    request: Awaited
    version: Int16
    frame: bytes
    misfit: Misfit
    asked: Int64
    """MISSING: the queue or stream that the answer leaves out."""
    place: Int32
    """FOREIGN, TWICE: the index of the partition in the answer."""
    was_well: bool
    """Earlier answers of this API over the same link were readable."""

    @property
    def api_key(self) -> int:
        """The API of the request."""
        return API_KEYS[self.request]


class Throttled(Value):
    """A broker throttles this client, and the data plane pauses as asked."""

    link_id: Int32
    throttle_ms: Int32


class HeartbeatsEnded(Value):
    """Heartbeats are not sent any more: the user has not polled for too long."""

    link_id: Int32
    token: Int64


class GateShut(Value):
    """A link's requests wait at its gate, and all before them are answered; see `OpenGate`."""

    link_id: Int32


class LinkTraces(Value):
    """The latest events of a link, in answer to `DumpLinks`."""

    link_id: Int32
    node_id: Int32
    in_flight: Int32
    """Requests."""
    ring: bytes
    """As `read_traces` of the data plane takes it."""


class TracesEnded(Value):
    """All links have answered the `DumpLinks` under this token."""

    token: Int64


class UnknownCommand(Value):
    """The data plane does not know a command, which is our own fault."""

    side: Int32
    kind: Int32


DumpEvent: TypeAlias = LinkTraces | TracesEnded
"""For people: the control plane does not get them."""

TransportEvent: TypeAlias = (
    RawResponse | BadAnswer | LinkClosed | Throttled | HeartbeatsEnded | GateShut | UnknownCommand
)


# ---- commands for the host ----


class ResolveHost(Value):
    """Look up all addresses of a host; answered by `handle_resolved`.

    A look-up may hang, so it takes a thread, and `owner` does not wait for it after `deadline`.
    """

    owner: ConnectionKey
    host: str
    deadline: float


class OpenLink(Value):
    """Connect a socket; answered by `handle_connected` or `handle_connect_failed`."""

    link_id: int
    key: ConnectionKey
    host: str
    """The broker's advertised or configured name, which its TLS certificate must have."""
    ip: str
    port: int
    deadline: float


class DoWork(Value):
    """Do a piece of work of a link's login; answered by `handle_work_done`.

    The work may hang, so it takes a thread, and the link stops waiting at a deadline.
    """

    link_id: int
    work: Work


class CallInThread(Value):
    """Call a function that may take long in a thread of its own."""

    function: Callable[[], object]
    """Called in that thread."""
    done: Callable[[object, float], None]
    """Called on the control thread with what the function has returned or raised, and the time."""


# ---- commands for the data plane ----


class AddLink(Value):
    """Take a connected link; the host's pump sends this."""

    link: OwnedLink


class CloseLink(Value):
    """Close a link, or give up opening it, which is the host's part."""

    link_id: Int32


class SendRaw(Value):
    """Send a whole request; its answer comes as `RawResponse`."""

    link_id: Int32
    token: Int64
    frame: bytes
    timeout: float
    is_of_login: bool = False
    """It logs in, so it does not wait at the link's gate."""


class OpenGate(Value):
    """Let a link's requests pass until some time, at which its session is about to end.

    Then the data plane shuts the link's gate by itself. All that is to be sent waits there, in
    order. When the requests in flight have been answered, `GateShut` comes up, and this client logs
    in again. NEVER: the gate stays open.
    """

    link_id: Int32
    until: float


THROTTLE_MAX = 60.0
"""The longest pause in seconds that a broker may ask for at a time, as in the data plane."""


def pause_seconds(throttle_ms: int) -> float:
    """Return for how long an answer's throttle time keeps this client from a broker."""
    return min(throttle_ms / 1000, THROTTLE_MAX)


class PauseLink(Value):
    """A broker throttles this client over a link (KIP-219), and reads nothing from it meanwhile.

    So Produce and Fetch wait, and the time of the requests in flight does not run.
    """

    link_id: Int32
    seconds: float


class StartHeartbeats(Value):
    """Send a frame after `delay`, then every `period` seconds, while the user polls often enough.

    An answer that equals `expected` (without the correlation id) is swallowed; any other one comes
    up as a `RawResponse`. So does the end of the link, which ends the heartbeats.
    """

    link_id: Int32
    token: Int64
    frame: bytes
    period: float
    expected: bytes
    timeout: float
    delay: float = 0.0
    epoch_pos: Int32 = 0
    """Where the member's epoch or generation stands in the frame. The data plane writes the one of
    the last answer there: to a ConsumerGroupHeartbeat, which tells the period as well, or to a
    JoinGroup that was sent between two heartbeats. Before there is such an answer, no heartbeat is
    sent. 0: the frame stays as it is.
    """


class StopHeartbeats(Value):
    """Send no more heartbeats: those that `StartHeartbeats` began under this token."""

    token: Int64


class SendBetween(Value):
    """Send another request once, as soon as none of the heartbeats under `token` is in flight.

    Its answer comes up as a `RawResponse` under its own token, whatever the answer says. The
    request may have been built before the control plane saw the latest answer to a heartbeat. The
    data plane then drops it.
    """

    token: Int64
    """Of the heartbeats."""
    own_token: Int64
    """Of the request."""
    heard: Int64
    """How many responses, to heartbeats and to requests between, came up so far."""
    frame: bytes
    """The request."""
    timeout: float
    """Seconds for its answer."""


class DumpLinks(Value):
    """Report every link's debug ring under `token`."""

    token: Int64


TransportCommand: TypeAlias = (
    AddLink
    | CloseLink
    | SendRaw
    | OpenGate
    | PauseLink
    | StartHeartbeats
    | StopHeartbeats
    | SendBetween
    | DumpLinks
)


# ---- news for the users' threads ----


class TopicSettled(Value):
    """Tell those who wait for a topic that its partitions are known, or why they never will be."""

    topic: str
    error: KafkaError | None


HostCommand: TypeAlias = ResolveHost | OpenLink | CloseLink | DoWork | CallInThread | TopicSettled
ClientCommand: TypeAlias = HostCommand | TransportCommand
