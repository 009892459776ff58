"""The messages between a producer's control plane and the produce side of its data plane.

`control.messages` has those of every client. A *queue* is a partition's queue; `Routes` gives it
its id. A *freeze* stops a queue; each has a number, the `generation` of the rows.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kafka_fast.control.message_fields import Int16, Int32, Int64, QueueId, Size, TopicName
from kafka_fast.control.messages import ClientCommand, TransportEvent
from kafka_fast.errors import KafkaError, Outcome
from kafka_fast.values import Value

ABORTED = -105
"""Error code of records whose transaction is aborted before they are sent: no broker's.
`KF_ERROR_ABORTED` in `src_c/kf_batch.h`."""

# ---- events ----


class QueueRow(NamedTuple):
    """A frozen queue, in a report."""

    queue_id: Int64
    generation: Int64
    """Of the freeze that the report is about; verdicts carry it."""
    next_sequence: Int32
    may_have_gap: bool
    """A batch that was sent has expired, so the sequences may have a gap."""


class BatchRow(NamedTuple):
    """One of a frozen queue's unresolved batches, in a report."""

    queue_id: Int64
    generation: Int64
    """The same as in the `QueueRow`."""
    serial: Int64
    """`serial` and `slice` together name the batch."""
    slice: Int32
    error_code: Int16
    """The last answer's error code; 0: the link was closed without an answer."""
    base_offset: Int64
    """The base offset in the last answer, or -1."""
    base_sequence: Int32
    record_count: Int32
    size: Size
    """Bytes, not compressed."""
    wire_size: Size
    """Bytes in a request."""
    failures: Int32
    """Tries of this batch that have failed, and not for another batch's sake."""
    maybe_written: bool
    """The batch may be in the log."""


class ProducePunt(Value):
    """A Produce answer in which not everything is plain success."""

    link_id: Int32
    version: Int16
    frame: bytes
    batches: tuple[BatchRow, ...]
    """Those that the answer refuses, under the generation before."""


class RouteWanted(Value):
    """Queues that have data and no link."""

    queue_ids: tuple[Int64, ...]


class QueueReport(Value):
    """A frozen queue has nothing in flight any more, and waits for verdicts."""

    queue: QueueRow
    batches: tuple[BatchRow, ...]


ProduceEvent: TypeAlias = ProducePunt | RouteWanted | QueueReport
"""What only a producer has."""

ProducerEvent: TypeAlias = TransportEvent | ProduceEvent


# ---- commands for the produce side ----


class ProgramProduce(Value):
    """Let a link carry Produce requests of this version."""

    link_id: Int32
    version: Int16
    prefix: bytes


class NameTopic(Value):
    """Set the field that names the topic, for requests of the same form as `version`."""

    topic: TopicName
    version: Int16
    field: bytes


class RestartTopic(Value):
    """A topic's logs are empty: it was deleted and created again."""

    topic: TopicName


class LimitTopic(Value):
    """Make no larger batches for a topic."""

    topic: TopicName
    size: Size
    """Bytes of a full batch, not compressed; 0: as many as elsewhere."""
    wire_size: Size
    """Bytes of a batch in a request, beyond which it is split; 0: it never is."""


class RouteQueue(Value):
    """Send a queue's batches over this link; 0: over no link."""

    queue_id: QueueId
    link_id: Int32


class SetProducerId(Value):
    """Use this identity for queues without unresolved batches."""

    producer_id: Int64
    epoch: Int16


class FailBatch(Value):
    """End a batch of a frozen queue without success."""

    row: BatchRow
    error_code: Int32
    outcome: Outcome
    detail: bytes | None = None
    """What the leader said of single records; see `refusals`."""


class CompleteBatch(Value):
    """End a batch of a frozen queue as delivered at this offset (-1: not known)."""

    row: BatchRow
    base_offset: Int64


class SplitBatch(Value):
    """Replace a batch of a frozen queue by batches of at most `size` bytes, or fail it."""

    row: BatchRow
    size: Size
    error_code: Int32


class ForgiveBatch(Value):
    """Do not count the last failure of a frozen queue's batch: it was another batch's."""

    row: BatchRow


class RenumberQueue(Value):
    """Give new sequences to a frozen queue's batches; none of them may be in the log.

    Only batches behind (`serial`, `slice`) get new sequences. With producer id -1 they keep their
    producer id and epoch.
    """

    queue_id: QueueId
    generation: Int64
    producer_id: Int64
    epoch: Int16
    base_sequence: Int32
    serial: Int64 = -1
    slice: Int32 = -1


class ThawQueue(Value):
    """Let a frozen queue go on at the time `at`; `single`: with one batch in flight at first."""

    queue_id: QueueId
    generation: Int64
    at: float
    single: bool


class FailQueue(Value):
    """Fail a queue's batches that are in no request, each with what is known of it."""

    queue_id: QueueId
    error_code: Int32
    """0: the producer cannot go on, and the error of that is told; or `ABORTED`."""


ProduceCommand: TypeAlias = (
    ProgramProduce
    | NameTopic
    | RestartTopic
    | LimitTopic
    | RouteQueue
    | SetProducerId
    | FailBatch
    | CompleteBatch
    | SplitBatch
    | ForgiveBatch
    | RenumberQueue
    | ThawQueue
    | FailQueue
)


# ---- changes of the queues, which are made at once ----


class SetPartitions(Value):
    """Make queues for a topic's partitions from `first` on."""

    topic: str
    first: int
    queue_ids: range


class SetPartitionCount(Value):
    """Let records go to a topic's first partitions only; the queues of the others stay."""

    topic: str
    count: int


class SetAvailable(Value):
    """Say whether a partition has a leader."""

    queue_id: int
    available: bool


class RefuseRecords(Value):
    """Accept no record from now on: sends raise this error."""

    error: KafkaError


class HoldRecords(Value):
    """Accept no record until another transaction is begun: sends raise this error."""

    error: KafkaError


QueueChange: TypeAlias = (
    SetPartitions | SetPartitionCount | SetAvailable | RefuseRecords | HoldRecords
)

OwnCommand: TypeAlias = ProduceCommand | QueueChange
"""What only a producer has."""

ProducerCommand: TypeAlias = ClientCommand | OwnCommand
