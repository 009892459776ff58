"""How stopped partitions go on: at once, at another place, or after their backoff.

    StreamsStopped ──┐               ┌─► Positions: validate, reset, truncate ─► FetchRoutes.start
    FetchPunt ───────┼─► Restarts ───┤
    topic recreated ─┘   (backoff)   └─► news for the user's thread

The data plane tells how far a stream has come. `answers` decides what an answer means, and this
module carries it out. A broker may give the same answer for ever, so each repeated try waits for
the backoff.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.backoff import KeyedBackoff
from kafka_fast.control.consumer.answers import FetchAction, FetchDecision, decide, fetch_error
from kafka_fast.control.consumer.fetch_routes import FetchRoutes
from kafka_fast.control.consumer.messages import (
    FetchPunt,
    News,
    PartitionFailed,
    Recreated,
    Reposition,
    StreamRow,
)
from kafka_fast.control.consumer.partition import (
    AWAITING_COMMITTED,
    AWAITING_WAY,
    NO_NODE,
    AssignedPartition,
    AssignedPartitions,
    FetchState,
    Position,
)
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.context import Context
from kafka_fast.control.metadata import LeaderHint
from kafka_fast.control.silence import some_of
from kafka_fast.errors import KafkaError, ProtocolError, error_name
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.fetch import FetchResponse, PartitionData
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.consumer")

FOLLOWS_LEADER = frozenset({FetchState.AWAITS_VALIDATION, FetchState.STOPPED, *AWAITING_WAY})
"""States in which a partition that gets a new leader is validated there."""


class Restarts:
    """Restarts one consumer's stopped partitions. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        partitions: AssignedPartitions,
        routes: FetchRoutes,
        positions: Positions,
        *,
        on_news: Callable[[News], None],
    ) -> None:
        """Begin without stopped partitions.

        Args:
            context: the client's.
            partitions: the assigned ones.
            routes: start streams.
            positions: find where to start.
            on_news: called with news for the user's thread.
        """
        backoff = context.backoff
        self._cluster = context.cluster
        self._discovery = context.discovery
        self._troubles = context.troubles
        self._partitions = partitions
        self._routes = routes
        self._positions = positions
        self._on_news = on_news
        self._quiet = backoff.maximum  # seconds after which a row of failures has ended
        self._pace: KeyedBackoff[TopicPartition] = KeyedBackoff(backoff)
        self._moves: KeyedBackoff[TopicPartition] = KeyedBackoff(backoff)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        waiting = self._partitions.in_state(FetchState.BACKING_OFF)
        return min((it.until for it in waiting), default=NEVER)

    # Commands

    def forget_failures(self, partition: TopicPartition) -> None:
        """Reset a partition's backoff, because it goes on at another position or topic."""
        self._pace.handle_success(partition)

    def remove(self, partition: TopicPartition) -> None:
        """Forget a partition."""
        self.forget_failures(partition)
        self._moves.handle_success(partition)

    def tick(self, now: float) -> None:
        """Let the partitions go on whose backoff is over."""
        for assigned in self._partitions.in_state(FetchState.BACKING_OFF):
            if assigned.then is not None and assigned.until <= now:
                assigned.then(now)

    # In

    def handle_stopped(self, row: StreamRow, now: float) -> None:
        """Start a stream again that stopped by command, or because its link is gone."""
        assigned = self._take_stop(row, now)
        if assigned is not None:
            self._positions.validate(assigned, now)

    def handle_moved(self, assigned: AssignedPartition, now: float) -> None:
        """Validate a stopped partition at its new leader."""
        if assigned.state in FOLLOWS_LEADER:
            self._positions.validate(assigned, now)

    def handle_recreated(self, topic: str, now: float) -> None:
        """Stop a topic that was recreated. It begins again once the user's thread knows."""
        lost = self._partitions.of_topic(topic)
        if lost:
            read = some_of(sorted(it.partition for it in lost))
            logger.warning("topic %r was deleted and created again; read here: %s", topic, read)
        for assigned in lost:
            self.remove(assigned.partition)
            self._troubles.clear(assigned.partition)
            self._routes.halt(assigned, now)
            if assigned.state not in AWAITING_COMMITTED:  # there the user has read nothing yet
                self._positions.suspend(assigned, now)
                self._on_news(Recreated(assigned.partition, assigned.seeks))

    def handle_truncated(self, assigned: AssignedPartition, end: Position, now: float) -> None:
        """Have the user's thread seek to where the log was truncated, which drops its records."""

        def tell(now: float) -> None:
            assigned.enter(FetchState.TRUNCATED, now)
            self._on_news(Reposition(assigned.partition, assigned.seeks, end.offset, end.epoch))

        self._move(assigned, tell, now, error=None)

    def handle_punt(self, event: FetchPunt, now: float) -> None:
        """Decide how each partition of a punted Fetch answer goes on."""
        stopped = [(self._take_stop(row, now), row) for row in event.rows]
        parts = self._read_punt(event, now)
        for assigned, row in stopped:
            if assigned is None:
                continue
            partition = assigned.partition
            decision = decide(
                partition,
                row.error_code,
                parts.get(partition),
                position=row.fetch_position,
                at_replica=assigned.replica != NO_NODE,
            )
            error = decision.error
            if error is None and row.error_code:
                error = fetch_error(partition, row.error_code)
            if error is not None:
                self._troubles.note(partition, error, now)
            # In another state, it goes on already, at a leader that the answer has named.
            if assigned.state is FetchState.STOPPED:
                self._carry_out(assigned, row, decision, error, now)

    # Details

    def _take_stop(self, row: StreamRow, now: float) -> AssignedPartition | None:
        """Take note of how far a stream has come; None if it was restarted or removed since."""
        assigned = self._partitions.of_stream(row.stream_id)
        if assigned is None or not assigned.is_running or assigned.generation != row.generation:
            return None
        assigned.enter(FetchState.STOPPED, now)
        before = assigned.position
        if before is not None and row.fetch_position != before.offset:
            assigned.position = Position(row.fetch_position, row.last_epoch)
        return assigned

    def _read_punt(self, event: FetchPunt, now: float) -> dict[TopicPartition, PartitionData]:
        """Return the answer by partition, and take the leaders that it names (KIP-951)."""
        try:
            _, body = frame.decode_response(FetchResponse, event.frame, event.version)
        except ProtocolError as error:
            logger.warning("a Fetch answer cannot be read: %s", error)
            return {}
        found: dict[TopicPartition, PartitionData] = {}
        hints: list[LeaderHint] = []
        for topic in body.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id)
            for data in topic.partitions if name else ():
                partition = TopicPartition(name or "", data.partition_index)
                found[partition] = data
                hint = data.current_leader
                if data.error_code and hint.leader_id >= 0:
                    hints.append(
                        LeaderHint(
                            topic.topic or topic.topic_id,
                            partition.partition,
                            hint.leader_id,
                            hint.leader_epoch,
                        )
                    )
        if hints:
            changes = self._cluster.apply_leader_hints(hints, body.node_endpoints, now=now)
            self._discovery.apply(changes, now)
        return found

    def _carry_out(
        self,
        assigned: AssignedPartition,
        row: StreamRow,
        decision: FetchDecision,
        error: KafkaError | None,
        now: float,
    ) -> None:
        partition, positions = assigned.partition, self._positions
        if decision.refresh:
            self._cluster.request_refresh(error_name(row.error_code), partition.topic)
        match decision.action:
            case FetchAction.AGAIN:
                positions.validate(assigned, now)
            case FetchAction.REPLICA:
                self._routes.prefer(assigned, decision.replica, now)
                positions.validate(assigned, now)
            case FetchAction.OUT_OF_RANGE:
                at = row.fetch_position
                self._move(
                    assigned,
                    lambda now: positions.apply_policy(assigned, now, out_of_range=at),
                    now,
                    error=error,
                )
            case FetchAction.TRUNCATED if decision.end is not None:
                positions.handle_truncation(assigned, decision.end, now)
            case _:
                if decision.error is not None:
                    failed = PartitionFailed(partition, assigned.seeks, decision.error, False)
                    self._on_news(failed)
                self._begin_again_later(assigned, now, error)

    def _begin_again_later(
        self, assigned: AssignedPartition, now: float, error: KafkaError | None
    ) -> None:
        """Start a partition again after its backoff. A quiet time resets the backoff."""
        partition, positions = assigned.partition, self._positions
        if now - self._pace.ready_at(partition) > self._quiet:
            self._pace.handle_success(partition)
        until = self._pace.handle_failure(partition, now)
        assigned.back_off(until, lambda now: positions.validate(assigned, now), now, error)

    def _move(
        self,
        assigned: AssignedPartition,
        move: Callable[[float], None],
        now: float,
        *,
        error: KafkaError | None,
    ) -> None:
        """Move a partition's position: at once, but repeated moves wait for a backoff.

        A broker may answer for ever, without delay, that a valid offset is out of range.
        """
        partition = assigned.partition
        until = self._moves.ready_at(partition)
        if now < until:
            again = partial(self._move, assigned, move, error=error)
            assigned.back_off(until, again, now, error)
            return
        if now - until > self._quiet:
            self._moves.handle_success(partition)
        self._moves.handle_failure(partition, now)
        move(now)
