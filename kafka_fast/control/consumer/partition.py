"""One assigned partition, as the control thread has it: its state, and how the state changes.

    ASSIGNED ──► AWAITS_COMMITTED ── none ──► AWAITS_OFFSET ◄──── out of range ─────┐
        │        (or …_ANEW)                    │      ▲                            │
        │              │ found                  │      └──────── BACKING_OFF ◄──────┤
        │              ▼                        │                │        ▲         │
        │      AWAITS_VALIDATION ◄──────────────│────────────────┘        │ later   │
        │              │    ▲                   │                         │         │
        │        valid │    └───── at once ─────│─────────────────── STOPPED ───────┤
        │              ▼                        ▼                         ▲         │
        │         AWAITS_LEADER ──► AWAITS_LINK ──► FETCHING ── error, ───┤         │
        │              (either, or both, may be left out)    link lost    │         │
        │                                               │                 │         │
        │                               leader moved    └──► STOPPING ────┘         │
        │                                                                           │
        └─► as with a seek                            TRUNCATED: log cut off ◄──────┘

    From every state: FAILED, where only a seek helps; RECREATED, when the topic was deleted and
    made again. The user's thread ends TRUNCATED and RECREATED: it seeks, or begins again. A seek
    leads from every state to AWAITS_VALIDATION, AWAITS_OFFSET, or to what follows these.

Three classes change the state. `Positions` finds where a partition is read from (ASSIGNED to
AWAITS_VALIDATION, RECREATED, FAILED). `FetchRoutes` finds the link (AWAITS_LEADER to STOPPING).
`Restarts` decides how a stopped partition goes on (STOPPED, BACKING_OFF, TRUNCATED). `diagnosis`
reads all states.

Thread: control; getters may be called from any.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kafka_fast.control.consumer.consumer_messages import generation
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

NOWHERE = 0
"""The link of a partition that is not fetched."""

NO_NODE = -1
NO_EPOCH = -1


class FetchState(enum.Enum):
    """What a partition waits for, or that it is fetched. The value continues "it …"."""

    ASSIGNED = "was assigned just now"
    AWAITS_COMMITTED = "waits for its committed offset"
    AWAITS_COMMITTED_ANEW = "waits for its committed offset in the topic that was recreated"
    AWAITS_OFFSET = "looks up where to start"
    AWAITS_VALIDATION = "has its position validated"
    AWAITS_LEADER = "waits for a leader"
    AWAITS_LINK = "waits for a connection"
    FETCHING = "is fetched"
    STOPPING = "waits for the end of its last fetch, to go on at another node"
    STOPPED = "is not fetched any more"
    BACKING_OFF = "waits for its backoff"
    TRUNCATED = "waits for a poll() to go back to where its log was truncated"
    RECREATED = "waits for a poll() to begin again, because its topic was deleted and recreated"
    FAILED = "waits for a seek"


AWAITING_COMMITTED = (FetchState.AWAITS_COMMITTED, FetchState.AWAITS_COMMITTED_ANEW)
AWAITING_WAY = (FetchState.AWAITS_LEADER, FetchState.AWAITS_LINK)
"""The partition has a valid position, and starts as soon as there is a connection."""

RUNNING = (FetchState.FETCHING, FetchState.STOPPING)
"""The data plane fetches the partition, or has not said yet that it stopped."""


class Position(NamedTuple):
    """Where reading goes on."""

    offset: int
    epoch: int = NO_EPOCH
    """Leader epoch of the record before the offset; -1 if unknown."""


class Absence(Value, frozen=False):
    """How long the brokers have denied that a partition exists; see `absent`."""

    since: float
    answers: int
    """How many answers about its topic there were when it was last looked at."""
    is_warned: bool = False
    confirmations: int = 0
    """Answers that denied it since the warning."""
    told: int | None = None
    """The partition's `seeks` when the user was told; None: the user was not told."""


class AssignedPartition:
    """A partition that is assigned. Control thread; any thread may read the fields."""

    __slots__ = (
        "_by_state",
        "absence",
        "error",
        "is_by_hand",
        "is_position_told",
        "link_id",
        "node",
        "partition",
        "position",
        "replica",
        "replica_until",
        "seeks",
        "since",
        "starts",
        "state",
        "stream_id",
        "then",
        "topic_id",
        "until",
        "validated_epoch",
    )

    def __init__(
        self, partition: TopicPartition, stream_id: int, now: float, by_state: _ByState
    ) -> None:
        """Enter ASSIGNED, and the table of states. `AssignedPartitions.add` calls this.

        Args:
            partition: its name.
            stream_id: the id of its stream.
            now: the time.
            by_state: all partitions, each under its state.
        """
        self.partition = partition
        """Its name."""
        self.stream_id = stream_id
        """The id of its stream in the data plane. (The user's thread has made the stream.)."""
        self._by_state = by_state
        self.state = FetchState.ASSIGNED
        """See above. Only `enter`, `fetch`, `begin_stop` and `back_off` change it."""
        self.since = now
        """When it came into this state."""
        self.error: KafkaError | None = None
        """The error that led into this state; None if none did."""
        self.node: Node | None = None
        """The node that it is fetched from (RUNNING), or will be (AWAITS_LINK)."""
        self.link_id = NOWHERE
        """The link that it is fetched over; NOWHERE unless RUNNING."""
        self.until = NEVER
        """BACKING_OFF: when that ends."""
        self.then: Callable[[float], None] | None = None
        """BACKING_OFF: called at the end; leads into another state."""
        self.position: Position | None = None
        """Where the next fetch begins. While RUNNING, only the data plane knows it exactly."""
        self.is_position_told = False
        """The user's thread knows this position."""
        self.validated_epoch = NO_EPOCH
        """Leader epoch under which the position was found valid."""
        self.seeks = 0
        """How often the user has moved the position: the upper half of the generation."""
        self.starts = 0
        """How often the stream was started since the last seek: the lower half."""
        self.replica = NO_NODE
        """The replica from which it should be fetched, as its leader said (KIP-392)."""
        self.replica_until = 0.0
        """How long `replica` holds."""
        self.topic_id: bytes | None = None
        """The id by which the data plane names the topic; None: it has no name for it yet."""
        self.is_by_hand = False
        """The user assigned it, not the group."""
        self.absence: Absence | None = None
        """Set while the brokers deny a partition that was assigned by hand."""
        by_state[self.state][stream_id] = self

    # ---- getters ----

    @property
    def generation(self) -> int:
        """The generation of the stream's last start."""
        return generation(self.seeks, self.starts)

    @property
    def is_running(self) -> bool:
        """Whether the data plane fetches the partition, or has not said yet that it stopped."""
        return self.state in RUNNING

    # ---- commands ----

    def enter(
        self,
        state: FetchState,
        now: float,
        *,
        error: KafkaError | None = None,
        node: Node | None = None,
    ) -> None:
        """Change the state, and reset the fields that belonged to the former state."""
        if state is not self.state:
            del self._by_state[self.state][self.stream_id]
            self._by_state[state][self.stream_id] = self
            self.state = state
            self.since = now
        self.error = error
        self.node = node
        self.link_id = NOWHERE
        self.until = NEVER
        self.then = None

    def fetch(self, link_id: int, node: Node, now: float) -> None:
        """Enter FETCHING, from this node over this link."""
        self.enter(FetchState.FETCHING, now, node=node)
        self.link_id = link_id
        self.starts += 1

    def begin_stop(self, now: float) -> None:
        """Enter STOPPING, until the data plane says that the stream has stopped."""
        link_id, node = self.link_id, self.node
        self.enter(FetchState.STOPPING, now, node=node)
        self.link_id = link_id

    def back_off(
        self, until: float, then: Callable[[float], None], now: float, error: KafkaError | None
    ) -> None:
        """Enter BACKING_OFF because of an error; `then` is to be called at `until`."""
        self.enter(FetchState.BACKING_OFF, now, error=error)
        self.until = until
        self.then = then

    def move(self, position: Position | None) -> None:
        """Take a position that the user's thread does not know yet, or none."""
        self.position = position
        self.is_position_told = False
        self.validated_epoch = NO_EPOCH

    def end_assignment(self) -> None:
        """Leave the table of states: the partition is assigned no more."""
        del self._by_state[self.state][self.stream_id]


_ByState = dict[FetchState, dict[int, AssignedPartition]]
"""Partitions by the ids of their streams, in the order in which they came into a state."""


class AssignedPartitions:
    """All partitions that one consumer is assigned. Control thread; getters from any."""

    def __init__(self) -> None:
        self._by_name: dict[TopicPartition, AssignedPartition] = {}
        self._by_topic: dict[str, dict[int, AssignedPartition]] = {}  # by name, then by number
        self._by_stream: dict[int, AssignedPartition] = {}
        self._by_state: _ByState = {state: {} for state in FetchState}

    def __iter__(self) -> Iterator[AssignedPartition]:
        """Iterate over the partitions as they are now."""
        return iter(list(self._by_name.values()))

    def __contains__(self, partition: TopicPartition) -> bool:
        """Tell whether a partition is assigned."""
        return partition in self._by_name

    def __getitem__(self, partition: TopicPartition) -> AssignedPartition:
        """Return a partition that is assigned."""
        return self._by_name[partition]

    def get(self, partition: TopicPartition) -> AssignedPartition | None:
        """Return a partition; None if it is not assigned."""
        return self._by_name.get(partition)

    def of_stream(self, stream_id: int) -> AssignedPartition | None:
        """Return the partition of a stream; None if it is not assigned any more."""
        return self._by_stream.get(stream_id)

    @property
    def topics(self) -> list[str]:
        """The topics of the assigned partitions."""
        return list(self._by_topic)

    def of_topic(self, topic: str) -> list[AssignedPartition]:
        """Return the assigned partitions of a topic."""
        return list(self._by_topic.get(topic, {}).values())

    def in_state(self, *states: FetchState) -> list[AssignedPartition]:
        """Return the partitions in these states, state by state."""
        return [assigned for state in states for assigned in self._by_state[state].values()]

    def add(self, partition: TopicPartition, stream_id: int, now: float) -> AssignedPartition:
        """Add a partition, as ASSIGNED."""
        added = AssignedPartition(partition, stream_id, now, self._by_state)
        self._by_name[partition] = self._by_stream[stream_id] = added
        self._by_topic.setdefault(partition.topic, {})[partition.partition] = added
        return added

    def remove(self, gone: AssignedPartition) -> None:
        """Remove a partition."""
        del self._by_name[gone.partition]
        del self._by_stream[gone.stream_id]
        topic, number = gone.partition
        del self._by_topic[topic][number]
        if not self._by_topic[topic]:
            del self._by_topic[topic]
        gone.end_assignment()
