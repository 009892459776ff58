"""One partition that this consumer reads, as the control plane sees it."""

from __future__ import annotations

import enum
from typing import NamedTuple

from kafka_fast.config import OffsetReset
from kafka_fast.control.consumer.plane import generation
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

NOWHERE = 0
"""The link of a stream that stands still."""

NO_NODE = -1
NO_EPOCH = -1


class Phase(enum.Enum):
    """How far a partition is on its way to being fetched."""

    COMMITTED = "waits for its committed offset"
    RESET = "looks up where to start"
    VALIDATE = "has its position validated"
    READY = "has a valid position"
    FAILED = "waits for a seek"


class Position(NamedTuple):
    """Where reading goes on."""

    offset: int
    epoch: int = NO_EPOCH
    """Leader epoch of the record before; -1 if it is not known."""


class Assigned(Value, frozen=False):
    """A partition and its stream."""

    partition: TopicPartition
    stream_id: int
    phase: Phase
    seeks: int = 0
    """How often the user has moved the position: the upper half of the generation."""
    starts: int = 0
    """How often the stream was started since: the lower half."""
    position: Position | None = None
    """Where the stream starts when it stands still; the data plane knows better while it runs."""
    reset: OffsetReset | None = None
    """What the look-up under way is for."""
    link_id: int = NOWHERE
    """The link that the stream runs on."""
    stopping: bool = False
    """The stream was told to stop and has not done so yet."""
    validated_epoch: int = NO_EPOCH
    """Leader epoch under which the position was found to be valid."""
    is_moved: bool = True
    """The position is another one than the user's thread knows."""
    is_anew: bool = False
    """The topic was made anew while the group was asked where to begin."""
    is_suspended: bool = False
    """The topic was made anew, and the user's thread goes by the old one yet."""
    replica: int = NO_NODE
    """The replica that the leader would rather have us read from (KIP-392)."""
    replica_until: float = 0.0

    @property
    def generation(self) -> int:
        """Of the stream's last start."""
        return generation(self.seeks, self.starts)

    @property
    def is_running(self) -> bool:
        """Whether the data plane fetches it, or has not said yet that it stopped."""
        return self.link_id != NOWHERE

    def move(self, position: Position | None, phase: Phase) -> None:
        """Begin anew at a position, or without one."""
        self.position = position
        self.phase = phase
        self.reset = None
        self.is_anew = False
        self.validated_epoch = NO_EPOCH
        self.is_moved = True
