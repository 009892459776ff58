"""A partition in the buffer: how far the user's thread has read it, and what keeps a poll from it.

Thread: the user's; `describe` may be called from any.
"""

from __future__ import annotations

import enum
from collections import deque

from kafka_fast.control.consumer.diagnosis import FetchStatus
from kafka_fast.control.consumer.partition import Position
from kafka_fast.errors import KafkaError, fresh_copy
from kafka_fast.records._reading import PartitionReader
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value, field


class ReadState(enum.Enum):
    """Why polls bring nothing of a partition, whatever its `FetchState`. The value follows "it"."""

    PAUSED = "is paused"
    RAISES = "has an error that a poll() raises"
    AT_END = "is fetched, and has been read to the end of its log"


class BufferedPartition(Value, frozen=False, eq=False):
    """An assigned partition in the `FetchBuffer`. User's thread."""

    id: int
    """The id of the partition's stream in the data plane."""
    partition: TopicPartition
    reader: PartitionReader
    seeks: int = 0
    """How often the user has moved the partition. Chunks and news from before the last move are
    dropped.
    """
    is_paused: bool = False
    is_failed: bool = False
    """Whether the reader has met a batch or record that it cannot read. Until the user moves the
    partition, nothing is fetched.
    """
    is_waiting: bool = False
    """Whether there is no position until the control plane finds one."""
    is_queued: bool = False
    """Whether the partition is in `FetchBuffer._ready`."""
    fed: int = -1
    """Generation of the last chunk that the reader got."""
    jump: Position | None = None
    """Where reading goes on once the reader is empty."""
    errors: deque[KafkaError] = field(factory=deque)
    """Errors to raise, once each, after all records fetched before have been handed over."""
    failure: KafkaError | None = None
    """An error that every poll raises, after these records, until the user moves the partition."""

    def take_error(self) -> KafkaError | None:
        """Return the error to raise now, if there is one."""
        if self.errors:
            return self.errors.popleft()
        return None if self.failure is None else fresh_copy(self.failure)

    def describe(self, fetched: FetchStatus, *, is_at_end: bool) -> str:
        """Return one line on how far the partition is read, and what holds it up. Any thread.

        Args:
            fetched: what the control plane says of the partition.
            is_at_end: whether all records that the broker had at the last fetch are handed over.
        """
        read = "nothing handed over yet"
        if not self.is_waiting:
            read = f"handed over up to offset {self.reader.position}"
        raises = self._raises()
        state = self._state(raises, is_at_end=is_at_end and fetched.is_undisturbed)
        if state is None:
            obstacle = "" if fetched.obstacle is None else f"; {fetched.obstacle.text}"
            return f"{self.partition}: {fetched.where}, {read}{obstacle}"
        said = f"{self.partition}: {state.name}, {read}"
        return "; ".join(part for part in (said, raises, str(fetched)) if part)

    def _state(self, raises: str, *, is_at_end: bool) -> ReadState | None:
        """Return the state that hides the control plane's; None: there is none."""
        if self.is_paused:
            return ReadState.PAUSED
        if raises:
            return ReadState.RAISES
        return ReadState.AT_END if is_at_end else None

    def _raises(self) -> str:
        """Return what polls raise once there are no records before it; "": nothing."""
        if self.is_failed:
            return "every poll() raises that the next record cannot be read"
        once = list(self.errors)  # the user's thread may take one meanwhile
        if once:
            return f"a poll() raises {once[0]}"
        return "" if self.failure is None else f"every poll() raises {self.failure}"
