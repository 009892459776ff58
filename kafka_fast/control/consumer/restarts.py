"""How stopped partitions go on: at once, at another place, or after their backoff.

    StreamsStopped ──┐               ┌─► Positions: validate, reset, truncate ─► FetchRoutes.start
    FetchPunt ───────┼─► Restarts ───┤
    topic recreated ─┘   (backoff)   └─► news for the user's thread

The data plane tells how far a stream has come. `answers` decides what an answer means, and this
module carries it out. A broker may give the same answer again and again, so each repeated try waits
for the backoff.

A node that goes down stops all partitions that it leads, which may be thousands. They are seen to
in pieces, one in a tick, so that other work of the control thread need not wait.

Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.backoff import KeyedBackoff
from kafka_fast.control.consumer.answers import FetchAction, FetchDecision, decide, fetch_error
from kafka_fast.control.consumer.consumer_messages import (
    FetchPunt,
    News,
    PartitionFailed,
    Recreated,
    Reposition,
    StreamRow,
)
from kafka_fast.control.consumer.fetch_routes import FetchRoutes
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
from kafka_fast.control.item_splitting import split_items
from kafka_fast.control.metadata.metadata import Endpoint, LeaderHint
from kafka_fast.errors import BrokerError, KafkaError, ProtocolError, error_name
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.logs import get_logger, some_of
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.fetch import FetchResponse, PartitionData
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.consumer")

FOLLOWS_LEADER = frozenset({FetchState.AWAITS_VALIDATION, FetchState.STOPPED, *AWAITING_WAY})
"""States in which a partition that gets a new leader is validated there."""

PIECE = 250
"""How many partitions are seen to in one tick."""


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
        """Make two backoffs for each partition: for restarts, and for moves of its position.

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
        self._work: deque[Iterator[None]] = deque()  # each yields between two pieces
        self._now = 0.0  # of the piece that is done

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        if self._work:
            return LONG_AGO
        waiting = self._partitions.in_state(FetchState.BACKING_OFF)
        return min((assigned.until for assigned in waiting), default=NEVER)

    # ---- commands ----

    def forget_failures(self, partition: TopicPartition) -> None:
        """Reset a partition's backoff, because it goes on at another position or topic."""
        self._pace.handle_success(partition)

    def forget_backoffs(self, partition: TopicPartition) -> None:
        """Forget a partition's backoffs."""
        self.forget_failures(partition)
        self._moves.handle_success(partition)

    def tick(self, now: float) -> None:
        """Let the partitions go on whose backoff is over."""
        self._do_work(now)
        waiting = self._partitions.in_state(FetchState.BACKING_OFF)
        due = (entry for entry in waiting if entry.then is not None and entry.until <= now)
        for assigned in islice(due, PIECE):
            if assigned.then is not None:
                assigned.then(now)

    # ---- in ----

    def handle_stopped(self, rows: Sequence[StreamRow], now: float) -> None:
        """Start streams again that stopped by command, or because their link is gone."""
        self._begin_work(self._start_again(rows), now)

    def _start_again(self, rows: Sequence[StreamRow]) -> Iterator[None]:
        for place, piece in enumerate(split_items(rows, PIECE)):
            if place:
                yield
            for row in piece:
                if (assigned := self._take_stop(row, self._now)) is not None:
                    self._positions.validate(assigned, self._now)

    def handle_moved(self, assigned: AssignedPartition, now: float) -> None:
        """Validate a stopped partition at its new leader."""
        if assigned.state in FOLLOWS_LEADER:
            self._positions.validate(assigned, now)

    def handle_recreated(self, topic: str, now: float) -> None:
        """Stop a topic that was recreated. It begins again once the user's thread knows."""
        lost = self._partitions.of_topic(topic)
        if lost:
            read = some_of(sorted(entry.partition for entry in lost))
            logger.warning("topic %r was deleted and created again; read here: %s", topic, read)
        for assigned in lost:
            self.forget_backoffs(assigned.partition)
            self._troubles.forget_subject(assigned.partition)
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
        stopped = [
            (assigned, row)
            for row in event.rows
            if (assigned := self._take_stop(row, now)) is not None
        ]
        self._begin_work(self._go_on(event, stopped), now)

    def _go_on(
        self, event: FetchPunt, stopped: Sequence[tuple[AssignedPartition, StreamRow]]
    ) -> Iterator[None]:
        parts, hints, endpoints = self._read_punt(event)
        for some in split_items(hints, PIECE):
            changes = self._cluster.apply_leader_hints(some, endpoints, now=self._now)
            self._discovery.apply(changes, self._now)
            if len(hints) > PIECE:
                yield
        for place, piece in enumerate(split_items(stopped, PIECE)):
            if place:
                yield
            for assigned, row in piece:
                self._judge(assigned, row, parts.get(assigned.partition))

    def _judge(
        self, assigned: AssignedPartition, row: StreamRow, data: PartitionData | None
    ) -> None:
        """Decide how a partition goes on by its part of an answer."""
        partition, now = assigned.partition, self._now
        decision = decide(
            partition,
            row.error_code,
            data,
            position=row.fetch_position,
            at_replica=assigned.replica != NO_NODE,
        )
        error = decision.error
        if error is None and row.error_code:
            error = fetch_error(partition, row.error_code)
        if error is not None:
            # Every partition of a deleted topic is refused; `WatchedTopics` or `AbsentPartitions`
            # says so.
            is_absence = isinstance(error, BrokerError) and error.refresh_metadata
            is_no_news = is_absence and self._cluster.is_absent(partition.topic)
            self._troubles.note(partition, error, now, is_no_news=is_no_news)
        # In another state or generation, it goes on already: at a leader that the answer has named,
        # or at another position.
        is_same = assigned.state is FetchState.STOPPED and assigned.generation == row.generation
        if is_same and self._partitions.get(partition) is assigned:
            self._carry_out(assigned, row, decision, error, now)

    # ---- details ----

    def _begin_work(self, work: Iterator[None], now: float) -> None:
        """Queue work behind earlier work; if there is none, do its first piece at once."""
        self._work.append(work)
        if len(self._work) == 1:
            self._do_work(now)

    def _do_work(self, now: float) -> None:
        """Do work up to the end of a piece."""
        self._now = now
        while self._work:
            for _ in self._work[0]:
                return
            self._work.popleft()

    def _take_stop(self, row: StreamRow, now: float) -> AssignedPartition | None:
        """Enter STOPPED at a stream's position; return None if it was restarted or removed."""
        assigned = self._partitions.of_stream(row.stream_id)
        if assigned is None or not assigned.is_running or assigned.generation != row.generation:
            return None
        assigned.enter(FetchState.STOPPED, now)
        before = assigned.position
        if before is not None and row.fetch_position != before.offset:
            assigned.position = Position(row.fetch_position, row.last_epoch)
        return assigned

    def _read_punt(
        self, event: FetchPunt
    ) -> tuple[dict[TopicPartition, PartitionData], list[LeaderHint], Sequence[Endpoint]]:
        """Return an answer by partition, and the leaders that it names, with their addresses."""
        try:
            _, body = frame.decode_response(
                FetchResponse, event.frame, event.version, later="responses"
            )
        except ProtocolError as error:
            logger.warning("a Fetch answer cannot be read: %s", error)
            return {}, [], ()
        parts: dict[TopicPartition, PartitionData] = {}
        hints: list[LeaderHint] = []
        for topic in body.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id)
            for data in topic.partitions if name else ():
                partition = TopicPartition(name or "", data.partition_index)
                parts[partition] = data
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
        return parts, hints, body.node_endpoints

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

        A broker may answer again and again, without delay, that a valid offset is out of range.
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
