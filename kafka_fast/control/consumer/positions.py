"""Where each assigned partition is read from: the state machine behind `position`.

    COMMITTED ──► found: VALIDATE ──► READY ──► started ──► running
        │                  ▲            ▲                      │ error, link lost, leader moved
        └─ none ─► RESET ──┘────────────┘◄─────────────────────┘
                     │ policy `none`
                     ▼
                   FAILED ──► (seek)

A position is *validated* when the epoch of the record before it is known: the leader is asked where
that epoch ends in its log, and an end below the position means that the log was truncated and
written anew meanwhile (KIP-320). It is asked again whenever the leader's epoch has changed.

Thread: control. Streams are started and stopped by `Streams`; this module says where.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import LATEST, NONE, ConsumerSettings, OffsetReset
from kafka_fast.control.consumer.assigned import NO_EPOCH, Assigned, Phase, Position
from kafka_fast.control.consumer.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    EpochAnswer,
    EpochEnds,
    OffsetsByTime,
    TimeAnswer,
)
from kafka_fast.control.context import Context
from kafka_fast.control.troubles import Reason
from kafka_fast.errors import (
    KafkaError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnsupportedVersionError,
)
from kafka_fast.logs import get_logger
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.consumer")

SPECIAL_TIMESTAMPS = {"earliest": EARLIEST_TIMESTAMP, LATEST: LATEST_TIMESTAMP}


class Positions:
    """The positions of one consumer. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        *,
        on_ready: Callable[[Assigned, float], None],
        on_failed: Callable[[Assigned, KafkaError], None],
        on_truncated: Callable[[Assigned, Position, float], None],
    ) -> None:
        """Begin without partitions.

        Args:
            context: the client's; its wall clock is for policies that count back from now.
            on_ready: called with a partition whose position is valid.
            on_failed: called with a partition that only a seek can bring back, and why.
            on_truncated: called with a partition and where its log was cut off: what was fetched
                and not handed over may never have been in the log as it is now.
        """
        self._policy = context.settings.auto_offset_reset
        self._cluster = context.cluster
        self._wall_ms = context.wall_ms
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._on_truncated = on_truncated
        self.partitions: dict[TopicPartition, Assigned] = {}
        self._lookups = OffsetsByTime(
            context, on_result=self._handle_offset, on_error=self._handle_lookup_refused
        )
        self._validations = EpochEnds(
            context, on_result=self._handle_epoch_end, on_error=self._handle_validation_refused
        )

    # Getters

    def of_topic(self, topic: str) -> list[Assigned]:
        """Return the assigned partitions of a topic."""
        return [it for it in self.partitions.values() if it.partition.topic == topic]

    def without_committed(self) -> list[TopicPartition]:
        """Return the partitions that wait for their committed offsets."""
        return [it.partition for it in self.partitions.values() if it.phase is Phase.COMMITTED]

    def silence(self, partition: TopicPartition) -> Reason:
        """Return what a partition's position waits for, and why. Any thread."""
        assigned = self.partitions.get(partition)
        if assigned is None:  # the control thread has not heard of it yet
            return Reason(Phase.RESET.value)
        reason = self._lookups.silence(partition) or self._validations.silence(partition)
        if reason is None:
            return Reason(assigned.phase.value)
        return Reason(f"{assigned.phase.value}, but {reason.text}", reason.cause)

    # Commands

    def add(self, assigned: Assigned, now: float) -> None:
        """Begin to find out where a partition is to be read from."""
        self.partitions[assigned.partition] = assigned
        self._cluster.want_topic(assigned.partition.topic, now)
        if assigned.phase is Phase.RESET:
            self.apply_policy(assigned, now)
        elif assigned.phase is Phase.VALIDATE:
            self.validate(assigned, now)

    def remove(self, partition: TopicPartition) -> None:
        """Forget a partition."""
        self._drop_questions(partition)
        del self.partitions[partition]

    def move(self, assigned: Assigned, position: Position, now: float) -> None:
        """Read on from here; validated first if the epoch is known."""
        self._drop_questions(assigned.partition)
        assigned.move(position, Phase.VALIDATE)
        self.validate(assigned, now)

    def look_up(self, assigned: Assigned, reset: OffsetReset, now: float) -> None:
        """Read on from the first, the next, or the first record since then (ms of Unix time)."""
        self._drop_questions(assigned.partition)
        assigned.move(None, Phase.RESET)
        assigned.reset = reset
        timestamp = SPECIAL_TIMESTAMPS.get(reset) if isinstance(reset, str) else reset
        if timestamp is None:
            raise ValueError(f"not a place in a log: {reset!r}")
        self._lookups.add(assigned.partition, timestamp, now)

    def apply_policy(
        self, assigned: Assigned, now: float, *, out_of_range: int | None = None
    ) -> None:
        """Do what auto.offset.reset says.

        Args:
            assigned: the partition.
            now: the time.
            out_of_range: the offset that its log does not hold; None if there was none at all.
        """
        policy = self._policy
        if policy == NONE:
            self.fail(assigned, _no_position(assigned.partition, out_of_range))
        elif isinstance(policy, str):
            self.look_up(assigned, policy, now)
        else:
            self.look_up(assigned, max(0, self._wall_ms() - policy), now)

    def suspend(self, assigned: Assigned) -> None:
        """The topic was deleted and made anew, and the user's thread has to hear of it first."""
        self._drop_questions(assigned.partition)
        assigned.phase = Phase.RESET
        assigned.is_suspended = True

    def begin_again(self, assigned: Assigned, now: float) -> None:
        """The topic was deleted and made anew: nothing of the old one's offsets holds.

        Under `latest` too this begins with the first record: all there is was written after what
        has been read, and going to the end would skip it.
        """
        if self._policy == LATEST:
            self.look_up(assigned, "earliest", now)
        else:
            offset = assigned.position.offset if assigned.position is not None else None
            self.apply_policy(assigned, now, out_of_range=offset)

    def set_committed(
        self, partition: TopicPartition, committed: Position | None, now: float
    ) -> None:
        """Take the group's offset for a partition that waits for it (None: there is none)."""
        assigned = self.partitions.get(partition)
        if assigned is None or assigned.phase is not Phase.COMMITTED:
            return
        if committed is not None:
            self.move(assigned, committed, now)
        elif assigned.is_anew:
            self.begin_again(assigned, now)
        else:
            self.apply_policy(assigned, now)

    def validate(self, assigned: Assigned, now: float) -> None:
        """Have the position validated under the present leader, if that is needed and possible."""
        position = assigned.position
        if position is None:
            return
        leader = self._cluster.leader(*assigned.partition)
        leader_epoch = self._cluster.leader_epoch(*assigned.partition)
        is_known = leader is not None and leader_epoch in (NO_EPOCH, assigned.validated_epoch)
        if position.epoch < 0 or is_known:
            self._pass(assigned, now)
        else:
            assigned.phase = Phase.VALIDATE
            self._validations.add(assigned.partition, position.epoch, now)

    def fail(self, assigned: Assigned, error: KafkaError) -> None:
        """Give a partition up until the user seeks."""
        self._drop_questions(assigned.partition)
        assigned.phase = Phase.FAILED
        self._on_failed(assigned, error)

    def touch(self, now: float) -> None:
        """Keep the metadata of everything assigned."""
        for topic in sorted({partition.topic for partition in self.partitions}):
            self._cluster.want_topic(topic, now)

    # In

    def _handle_offset(
        self, partition: TopicPartition, timestamp: int, answer: TimeAnswer, now: float
    ) -> None:
        assigned = self.partitions[partition]
        if answer.offset < 0:  # nothing that young: whatever comes next
            self.look_up(assigned, LATEST, now)
            return
        logger.info("%s starts at offset %d", partition, answer.offset)
        # The epoch is that of the record at the offset, not of the one before: not to be validated.
        assigned.move(Position(answer.offset), Phase.READY)
        self._pass(assigned, now)

    def _handle_lookup_refused(
        self, partition: TopicPartition, timestamp: int, error: KafkaError, now: float
    ) -> None:
        self.fail(self.partitions[partition], error)

    def _handle_epoch_end(
        self, partition: TopicPartition, epoch: int, answer: EpochAnswer, now: float
    ) -> None:
        assigned = self.partitions[partition]
        position = assigned.position
        if position is None:
            return
        # A leader that knows nothing of the epoch cannot say that anything was lost.
        if answer.end_offset < 0 or answer.epoch < 0 or answer.end_offset >= position.offset:
            self._pass(assigned, now)
        else:
            self.handle_truncation(assigned, Position(answer.end_offset, answer.epoch), now)

    def _handle_validation_refused(
        self, partition: TopicPartition, epoch: int, error: KafkaError, now: float
    ) -> None:
        assigned = self.partitions[partition]
        if isinstance(error, UnsupportedVersionError):
            self._pass(assigned, now)
        else:
            self.fail(assigned, error)

    def handle_truncation(self, assigned: Assigned, end: Position, now: float) -> None:
        """The log was cut off at `end`, below the position: what was read behind it is not in it.

        With policy `none` the user decides; else reading goes on where the logs diverged.
        """
        position = assigned.position
        at = position.offset if position is not None else end.offset
        error = LogTruncationError(
            f"the log of {assigned.partition} was truncated to offset {end.offset} (epoch "
            f"{end.epoch}) after it had been read up to {at}: records in between were lost and "
            "may have been replaced; seek to go on",
            topic=assigned.partition.topic,
            partition=assigned.partition.partition,
            offset=end.offset,
            position=at,
        )
        if self._policy == NONE:
            self.fail(assigned, error)
            return
        logger.warning("%s", error)
        assigned.move(end, Phase.READY)
        assigned.validated_epoch = self._cluster.leader_epoch(*assigned.partition)
        self._on_truncated(assigned, end, now)

    def _pass(self, assigned: Assigned, now: float) -> None:
        """The position is valid under the present leader: a new one has it validated again."""
        assigned.phase = Phase.READY
        assigned.validated_epoch = self._cluster.leader_epoch(*assigned.partition)
        self._on_ready(assigned, now)

    def _drop_questions(self, partition: TopicPartition) -> None:
        self._lookups.discard(partition)
        self._validations.discard(partition)


def _no_position(partition: TopicPartition, out_of_range: int | None) -> KafkaError:
    """Return what policy `none` makes of a partition without a valid position."""
    if out_of_range is None:
        return NoOffsetForPartitionError(
            f"no committed offset for {partition}, and auto.offset.reset is none: seek to go on",
            topic=partition.topic,
            partition=partition.partition,
        )
    return OffsetOutOfRangeError(
        f"offset {out_of_range} of {partition} is not in its log, and auto.offset.reset is none: "
        "seek to go on",
        topic=partition.topic,
        partition=partition.partition,
        offset=out_of_range,
    )
