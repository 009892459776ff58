"""Where each assigned partition is read from: committed offset, reset policy, validation.

The states are those of `partition`. A position is *validated* if the leader epoch of the record
before it is known: the leader is asked where that epoch ends in its log. An end below the position
means that the log was truncated meanwhile (KIP-320). A new leader epoch needs another validation.

Thread: control. Streams are started and stopped by `FetchRoutes`; this module says where.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import LATEST, NONE, ConsumerSettings, OffsetReset
from kafka_fast.control.consumer.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    EpochAnswer,
    EpochEnds,
    OffsetsByTime,
    TimeAnswer,
)
from kafka_fast.control.consumer.partition import (
    AWAITING_COMMITTED,
    NO_EPOCH,
    AssignedPartition,
    AssignedPartitions,
    FetchState,
    Position,
)
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.errors import (
    KafkaError,
    LogTruncationError,
    NoOffsetForPartitionError,
    PositionOutOfRangeError,
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
        partitions: AssignedPartitions,
        *,
        on_ready: Callable[[AssignedPartition, float], None],
        on_failed: Callable[[AssignedPartition, KafkaError], None],
        on_truncated: Callable[[AssignedPartition, Position, float], None],
    ) -> None:
        """Make the calls that find positions: offsets by time, and the ends of leader epochs.

        Args:
            context: the client's. Policies by duration use its wall clock.
            partitions: the assigned ones.
            on_ready: called with a partition whose position is valid; changes its state.
            on_failed: called with a partition that needs a seek, and the error.
            on_truncated: called with a partition and the offset at which its log was truncated;
                changes its state. Records that were fetched and not handed over may be gone.
        """
        self._policy = context.settings.auto_offset_reset
        self._cluster = context.cluster
        self._wall_ms = context.wall_ms
        self._partitions = partitions
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._on_truncated = on_truncated
        self._lookups = OffsetsByTime(
            context, on_result=self._handle_offset, on_error=self._handle_lookup_refused
        )
        self._validations = EpochEnds(
            context, on_result=self._handle_epoch_end, on_error=self._handle_validation_refused
        )

    # ---- getters ----

    def why_waiting(self, partition: TopicPartition) -> Reason | None:
        """Return why the leader has not answered a request for a position; None: there is none."""
        return self._lookups.why_waiting(partition) or self._validations.why_waiting(partition)

    # ---- commands ----

    def await_committed(self, assigned: AssignedPartition, now: float) -> None:
        """Let a partition wait for its committed offset, which `set_committed` brings."""
        assigned.enter(FetchState.AWAITS_COMMITTED, now)

    def drop_requests(self, assigned: AssignedPartition) -> None:
        """Drop the requests for a partition."""
        self._drop_requests(assigned.partition)

    def move(self, assigned: AssignedPartition, position: Position, now: float) -> None:
        """Read on from a position. It is validated first if its epoch is known."""
        assigned.move(position)
        self.validate(assigned, now)

    def look_up(self, assigned: AssignedPartition, reset: OffsetReset, now: float) -> None:
        """Read on from the log's beginning, its end, or a Unix time in ms."""
        timestamp = SPECIAL_TIMESTAMPS.get(reset) if isinstance(reset, str) else reset
        if timestamp is None:
            raise ValueError(f"not a place in a log: {reset!r}")
        self._drop_requests(assigned.partition)
        assigned.move(None)
        assigned.enter(FetchState.AWAITS_OFFSET, now)
        self._lookups.add_partition(assigned.partition, timestamp, now)

    def apply_policy(
        self, assigned: AssignedPartition, now: float, *, out_of_range: int | None = None
    ) -> None:
        """Do what auto.offset.reset says.

        Args:
            assigned: the partition.
            now: the time.
            out_of_range: the offset that is not in its log; None: there is no committed offset.
        """
        policy = self._policy
        if policy == NONE:
            self.fail_partition(assigned, _no_position(assigned.partition, out_of_range), now)
        elif isinstance(policy, str):
            self.look_up(assigned, policy, now)
        else:
            self.look_up(assigned, max(0, self._wall_ms() - policy), now)

    def suspend(self, assigned: AssignedPartition, now: float) -> None:
        """Wait until the user's thread knows that the topic was deleted and recreated."""
        self._drop_requests(assigned.partition)
        assigned.enter(FetchState.RECREATED, now)

    def begin_again(self, assigned: AssignedPartition, now: float) -> None:
        """Find a position in a topic that was deleted and recreated: the old offsets are void.

        The policy `latest` counts as `earliest` here. All records in the new topic were written
        after those that were read, and going to the end would skip them.
        """
        if self._policy == LATEST:
            self.look_up(assigned, "earliest", now)
        else:
            offset = assigned.position.offset if assigned.position is not None else None
            self.apply_policy(assigned, now, out_of_range=offset)

    def set_committed(
        self, assigned: AssignedPartition, committed: Position | None, now: float
    ) -> None:
        """Take the committed offset of a partition that waits for it; None: it has none."""
        if committed is not None:
            self.move(assigned, committed, now)
        elif assigned.state is FetchState.AWAITS_COMMITTED_ANEW:
            self.begin_again(assigned, now)
        else:
            self.apply_policy(assigned, now)

    def handle_recreated(self, assigned: AssignedPartition, now: float) -> None:
        """Let a partition wait for its committed offset in the topic that was recreated meanwhile.

        If the group has no offset for the new topic, `begin_again` finds a position.
        """
        assert assigned.state in AWAITING_COMMITTED
        assigned.enter(FetchState.AWAITS_COMMITTED_ANEW, now)

    def validate(self, assigned: AssignedPartition, now: float) -> None:
        """Validate the position under the present leader, if that is needed and possible."""
        position = assigned.position
        assert position is not None
        self._drop_requests(assigned.partition)
        leader = self._cluster.leader(*assigned.partition)
        leader_epoch = self._cluster.leader_epoch(*assigned.partition)
        is_known = leader is not None and leader_epoch in (NO_EPOCH, assigned.validated_epoch)
        if position.epoch < 0 or is_known:
            self._pass(assigned, now)
        else:
            assigned.enter(FetchState.AWAITS_VALIDATION, now)
            self._validations.add_partition(assigned.partition, position.epoch, now)

    def fail_partition(self, assigned: AssignedPartition, error: KafkaError, now: float) -> None:
        """Enter FAILED: the partition stands still until the user seeks."""
        self._drop_requests(assigned.partition)
        assigned.enter(FetchState.FAILED, now, error=error)
        self._on_failed(assigned, error)

    def touch(self, now: float) -> None:
        """Keep the metadata of all assigned topics."""
        for topic in sorted(self._partitions.topics):
            self._cluster.want_topic(topic, now)

    # ---- in ----

    def _handle_offset(
        self, partition: TopicPartition, timestamp: int, answer: TimeAnswer, now: float
    ) -> None:
        assigned = self._partitions[partition]
        if answer.offset < 0:  # no record is that young: begin with the next one
            self.look_up(assigned, LATEST, now)
            return
        logger.info("%s starts at offset %d", partition, answer.offset)
        # The answer's epoch is that of the record at the offset. A validation needs the one before.
        assigned.move(Position(answer.offset))
        self._pass(assigned, now)

    def _handle_lookup_refused(
        self, partition: TopicPartition, timestamp: int, error: KafkaError, now: float
    ) -> None:
        self.fail_partition(self._partitions[partition], error, now)

    def _handle_epoch_end(
        self, partition: TopicPartition, epoch: int, answer: EpochAnswer, now: float
    ) -> None:
        assigned = self._partitions[partition]
        position = assigned.position
        assert position is not None
        # A leader that does not know the epoch cannot tell of a truncation.
        if answer.end_offset < 0 or answer.epoch < 0 or answer.end_offset >= position.offset:
            self._pass(assigned, now)
        else:
            self.handle_truncation(assigned, Position(answer.end_offset, answer.epoch), now)

    def _handle_validation_refused(
        self, partition: TopicPartition, epoch: int, error: KafkaError, now: float
    ) -> None:
        assigned = self._partitions[partition]
        if isinstance(error, UnsupportedVersionError):
            self._pass(assigned, now)
        else:
            self.fail_partition(assigned, error, now)

    def handle_truncation(self, assigned: AssignedPartition, end: Position, now: float) -> None:
        """Go back to `end`, where the log was truncated below the position.

        With the policy `none` the partition fails instead, and the user decides.
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
            self.fail_partition(assigned, error, now)
            return
        logger.warning("%s", error)
        assigned.move(end)
        assigned.validated_epoch = self._cluster.leader_epoch(*assigned.partition)
        self._on_truncated(assigned, end, now)

    def _pass(self, assigned: AssignedPartition, now: float) -> None:
        """Take the position for valid under the present leader epoch."""
        assigned.validated_epoch = self._cluster.leader_epoch(*assigned.partition)
        self._on_ready(assigned, now)

    def _drop_requests(self, partition: TopicPartition) -> None:
        self._lookups.discard(partition)
        self._validations.discard(partition)


def _no_position(partition: TopicPartition, out_of_range: int | None) -> KafkaError:
    """Return the error of a partition without a valid position, under the policy `none`."""
    if out_of_range is None:
        return NoOffsetForPartitionError(
            f"no committed offset for {partition}, and auto.offset.reset is none: seek to go on",
            topic=partition.topic,
            partition=partition.partition,
        )
    return PositionOutOfRangeError(
        f"offset {out_of_range} of {partition} is not in its log, and auto.offset.reset is none: "
        "seek to go on",
        topic=partition.topic,
        partition=partition.partition,
        offset=out_of_range,
    )
