"""The records that pass between the control plane and what it programs.

Events come up from the data plane. Commands go down to it and to the host (sockets, look-ups). Both
are plain records. net/ carries them, so control/ and dataplane/ never import each other, and a
simulation can carry them too.

A *link* is one established connection, numbered through the client's life. A *queue* is a
partition's queue; `Routes` gives it its id.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeAlias

from kafka_fast.control.connection_key import ConnectionKey
from kafka_fast.errors import KafkaError, Outcome
from kafka_fast.values import Value

# ---- events ----


class CloseReason(enum.IntEnum):
    """Why the data plane closed a link."""

    BY_US = 1
    EOF = 2
    OS_ERROR = 3
    TIMEOUT = 4
    BAD_FRAME = 5
    BAD_RESPONSE = 6
    CORRELATION = 7
    IDLE = 8


class Awaited(enum.IntEnum):
    """The oldest request on a link that was closed."""

    NOTHING = 0
    RAW = 1
    PRODUCE = 2
    FETCH = 3
    HEARTBEAT = 4


class Misfit(enum.IntEnum):
    """How a Produce or Fetch answer does not fit its request."""

    FORM = 0
    """It does not follow its schema."""
    FOREIGN = 1
    """It names a partition that was not asked for."""
    TWICE = 2
    """It names a partition twice."""
    MISSING = 3
    """It leaves out a partition that was asked for."""
    SESSION = 4
    """It names another fetch session than the request."""


class QueueRow(NamedTuple):
    """A frozen queue, in a report."""

    queue_id: int
    generation: int
    """Of the freeze that the report is about; verdicts carry it."""
    next_sequence: int
    may_have_gap: bool
    """A batch that was sent has expired, so the sequences may have a gap."""


class BatchRow(NamedTuple):
    """One of a frozen queue's unresolved batches, in a report."""

    queue_id: int
    generation: int
    """The same as in the `QueueRow`."""
    serial: int
    """`serial` and `slice` together name the batch."""
    slice: int
    error_code: int
    """The last answer's error code; 0: the link was closed without an answer."""
    base_offset: int
    """The base offset in the last answer, or -1."""
    base_sequence: int
    record_count: int
    attempts: int
    maybe_written: bool
    """The batch may be in the log."""


class RawResponse(Value):
    """The answer to a raw request; `frame` is None if its link was closed first."""

    link_id: int
    token: int
    frame: bytes | None
    reason: int


class ProducePunt(Value):
    """A Produce answer in which not everything is plain success."""

    link_id: int
    version: int
    frame: bytes


class LinkClosed(Value):
    """A link is gone; its batches are back in their queues."""

    link_id: int
    reason: CloseReason
    detail: int
    """errno, a frame's length or a correlation id, as the reason has it."""
    head: bytes = b""
    """The first bytes of an incomplete frame. They may tell what kind of server sent them."""
    awaited: Awaited = Awaited.NOTHING


class BadAnswer(Value):
    """A Produce or Fetch answer for which the link is closed next."""

    link_id: int
    api_key: int
    version: int
    frame: bytes
    misfit: Misfit
    asked: int
    """MISSING: the queue or stream that the answer leaves out."""
    place: int
    """FOREIGN, TWICE: the index of the partition in the answer."""
    was_well: bool
    """Earlier answers of this API over the same link were readable."""


class Throttled(Value):
    """A broker throttles this client, and the data plane pauses as asked."""

    link_id: int
    throttle_ms: int


class RouteWanted(Value):
    """Queues that have data and no link."""

    queue_ids: tuple[int, ...]


class QueueReport(Value):
    """A frozen queue has nothing in flight any more, and waits for verdicts."""

    queue: QueueRow
    batches: tuple[BatchRow, ...]


class HeartbeatsEnded(Value):
    """Heartbeats are not sent any more: the user has not polled for too long."""

    link_id: int
    token: int


PlaneEvent: TypeAlias = (
    RawResponse
    | ProducePunt
    | BadAnswer
    | LinkClosed
    | Throttled
    | RouteWanted
    | QueueReport
    | HeartbeatsEnded
)


# ---- commands for the machine ----


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


class CloseLink(Value):
    """Close a link, or give up opening it."""

    link_id: int


# ---- commands for the data plane ----


class SendRaw(Value):
    """Send a whole request; its answer comes as `RawResponse`."""

    link_id: int
    token: int
    frame: bytes
    timeout: float


class StartHeartbeats(Value):
    """Send a frame after `delay`, then every `period` seconds, while the user polls often enough.

    An answer that equals `expected` (without the correlation id) is swallowed; any other one comes
    up as a `RawResponse`. So does the end of the link, which ends the heartbeats.

    Attributes:
        epoch_pos: where the member's epoch or generation stands in the frame. The data plane
            writes the one of the last answer there: to a ConsumerGroupHeartbeat, which tells the
            period as well, or to a JoinGroup that was sent between two heartbeats. Before there is
            such an answer, no heartbeat is sent. 0: the frame stays as it is.
    """

    link_id: int
    token: int
    frame: bytes
    period: float
    expected: bytes
    timeout: float
    delay: float = 0.0
    epoch_pos: int = 0


class StopHeartbeats(Value):
    """Send no more of these heartbeats."""

    token: int


class SendBetween(Value):
    """Send another request once, as soon as no heartbeat of these is in flight.

    Its answer comes up as a `RawResponse` under its own token, whatever the answer says. The
    request may have been built before the control plane saw the latest answer to a heartbeat. The
    data plane then drops it.

    Attributes:
        token: of the heartbeats.
        own_token: of the request.
        heard: how many responses, to heartbeats and to requests between, came up so far.
        frame: the request.
        timeout: seconds for its answer.
    """

    token: int
    own_token: int
    heard: int
    frame: bytes
    timeout: float


class ProgramProduce(Value):
    """Let a link carry Produce requests of this version."""

    link_id: int
    version: int
    prefix: bytes


class NameTopic(Value):
    """Set the field that names the topic, for requests of the same form as `version`."""

    topic: str
    version: int
    field: bytes


class SetPartitions(Value):
    """Make queues for a topic's partitions from `first` on."""

    topic: str
    first: int
    queue_ids: range


class SetAvailable(Value):
    """Say whether a partition has a leader."""

    queue_id: int
    available: bool


class RouteQueue(Value):
    """Send a queue's batches over this link; 0: over no link."""

    queue_id: int
    link_id: int


class SetProducerId(Value):
    """Use this identity for queues without unresolved batches."""

    producer_id: int
    epoch: int


class FailBatch(Value):
    """End a batch of a frozen queue without success."""

    row: BatchRow
    error_code: int
    outcome: Outcome


class CompleteBatch(Value):
    """End a batch of a frozen queue as delivered at this offset (-1: not known)."""

    row: BatchRow
    base_offset: int


class SplitBatch(Value):
    """Replace a batch of a frozen queue by batches of at most `size` bytes, or fail it."""

    row: BatchRow
    size: int
    error_code: int


class RenumberQueue(Value):
    """Give new sequences to a frozen queue's batches; none of them may be in the log.

    Only batches behind (`serial`, `slice`) get new sequences. With producer id -1 they keep their
    producer id and epoch.
    """

    queue_id: int
    generation: int
    producer_id: int
    epoch: int
    base_sequence: int
    serial: int = -1
    slice: int = -1


class ThawQueue(Value):
    """Let a frozen queue go on at the time `at`; `single`: with one batch in flight at first."""

    queue_id: int
    generation: int
    at: float
    single: bool


class FailQueue(Value):
    """Fail a queue's batches that are in no request, each with what is known of it."""

    queue_id: int
    error_code: int


class RefuseRecords(Value):
    """Accept no record from now on: sends raise this error."""

    error: KafkaError


class TopicSettled(Value):
    """Tell those who wait for a topic that its partitions are known, or why they never will be."""

    topic: str
    error: KafkaError | None


Command: TypeAlias = (
    ResolveHost
    | OpenLink
    | CloseLink
    | SendRaw
    | StartHeartbeats
    | StopHeartbeats
    | SendBetween
    | ProgramProduce
    | NameTopic
    | SetPartitions
    | SetAvailable
    | RouteQueue
    | SetProducerId
    | FailBatch
    | CompleteBatch
    | SplitBatch
    | RenumberQueue
    | ThawQueue
    | FailQueue
    | RefuseRecords
    | TopicSettled
)
