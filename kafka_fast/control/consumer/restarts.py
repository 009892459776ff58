"""How partitions whose streams stand still go on: at once, elsewhere, or after their backoff.

    StreamsStopped ─┐               ┌─► Positions: validate, reset, cut back ─► Streams.start
    FetchPunt ──────┼─► Restarts ───┤
    topic made anew ┘   (backoff)   └─► news for the user's thread

The data plane says how far a stream has come; what its answer means is decided in `answers`, and
carried out here. Whatever a broker may answer for ever is tried again in its backoff.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.backoff import KeyedBackoff
from kafka_fast.control.consumer.answers import Decision, Step, decide, fetch_error
from kafka_fast.control.consumer.assigned import NO_NODE, NOWHERE, Assigned, Phase, Position
from kafka_fast.control.consumer.plane import (
    FetchPunt,
    News,
    PartitionFailed,
    Recreated,
    Reposition,
    StreamRow,
)
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.consumer.streams import Streams
from kafka_fast.control.context import Context
from kafka_fast.control.instants import NEVER
from kafka_fast.errors import ProtocolError, error_name
from kafka_fast.logs import get_logger
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.fetch import FetchResponse, PartitionData
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.consumer")


class Restarts:
    """What becomes of one consumer's streams that stand still. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        streams: Streams,
        positions: Positions,
        *,
        on_news: Callable[[News], None],
    ) -> None:
        """Begin with nothing that stands still.

        Args:
            context: the client's.
            streams: are started again.
            positions: say where.
            on_news: called with what the user's thread has to know.
        """
        backoff = context.backoff
        self._cluster = context.cluster
        self._links = context.links
        self._discovery = context.discovery
        self._streams = streams
        self._positions = positions
        self._on_news = on_news
        self._quiet = backoff.maximum  # seconds after which a row of failures has ended
        self._pace: KeyedBackoff[TopicPartition] = KeyedBackoff(backoff)
        self._later: set[TopicPartition] = set()  # stand still until their backoff is over
        self._moves: KeyedBackoff[TopicPartition] = KeyedBackoff(backoff)
        self._held: dict[TopicPartition, Callable[[float], None]] = {}  # moves that wait for theirs

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        paced = map(self._pace.ready_at, self._later)
        held = map(self._moves.ready_at, self._held)
        return min(chain(paced, held), default=NEVER)

    # Commands

    def forget_waits(self, partition: TopicPartition) -> None:
        """The partition goes on elsewhere: what it waits for here is void."""
        self._held.pop(partition, None)
        self._later.discard(partition)
        self._pace.handle_success(partition)

    def remove(self, partition: TopicPartition) -> None:
        """Forget a partition."""
        self.forget_waits(partition)
        self._moves.handle_success(partition)

    def tick(self, now: float) -> None:
        """Go on with what has waited long enough."""
        for partition in [it for it in self._later if self._pace.is_ready(it, now)]:
            self._later.discard(partition)
            self._positions.validate(self._positions.partitions[partition], now)
        for partition in [it for it in self._held if self._moves.is_ready(it, now)]:
            self._move(partition, self._held.pop(partition), now)

    # In

    def handle_stopped(self, row: StreamRow, now: float) -> None:
        """A stream stands still by command, or because its link is gone: begin it again."""
        assigned = self._take_stop(row)
        if assigned is not None:
            self._positions.validate(assigned, now)

    def handle_moved(self, assigned: Assigned, now: float) -> None:
        """A partition that stands still has another leader: see whether it is valid there."""
        waits = assigned.partition in self._later
        if assigned.phase in (Phase.READY, Phase.VALIDATE) and not waits:
            self._positions.validate(assigned, now)

    def handle_recreated(self, topic: str, now: float) -> None:
        """The topic was deleted and made anew: begin again once the user's thread knows."""
        for assigned in self._positions.of_topic(topic):
            logger.warning("%s: its topic was made anew", assigned.partition)
            self.forget_waits(assigned.partition)  # else it would start where the old one was
            self._streams.halt(assigned)
            if assigned.phase is not Phase.COMMITTED:  # then the user's thread knows nothing of it
                self._positions.suspend(assigned)
                self._on_news(Recreated(assigned.partition, assigned.seeks))

    def handle_truncated(self, assigned: Assigned, end: Position, now: float) -> None:
        """The log was cut off: have the user's thread seek there, which drops what it has."""
        news = Reposition(assigned.partition, assigned.seeks, end.offset, end.epoch)
        self._move(assigned.partition, lambda now: self._on_news(news), now)

    def handle_punt(self, event: FetchPunt, now: float) -> None:
        """Decide for each partition of an answer that the data plane did not understand."""
        stopped = [(self._take_stop(row), row) for row in event.rows]
        parts = self._read_punt(event, now)
        for assigned, row in stopped:
            if assigned is not None and not assigned.is_running:  # else a hint has moved it
                partition = assigned.partition
                at_replica = assigned.replica != NO_NODE
                data = parts.get(partition)
                decision = decide(
                    partition,
                    row.error_code,
                    data,
                    position=row.fetch_position,
                    at_replica=at_replica,
                )
                self._carry_out(assigned, row, decision, now)

    # Details

    def _take_stop(self, row: StreamRow) -> Assigned | None:
        """Take note of how far a stream has come; None if that was in another life."""
        assigned = self._streams.stream(row.stream_id)
        if assigned is None or not assigned.is_running or assigned.generation != row.generation:
            return None
        assigned.link_id = NOWHERE
        assigned.stopping = False
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
        for topic in body.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id)
            for data in topic.partitions if name else ():
                partition = TopicPartition(name or "", data.partition_index)
                found[partition] = data
                hint = data.current_leader
                if data.error_code and hint.leader_id >= 0:
                    changes = self._cluster.apply_leader_hint(
                        partition.topic,
                        partition.partition,
                        hint.leader_id,
                        hint.leader_epoch,
                        body.node_endpoints,
                    )
                    self._discovery.apply(changes, now)
        return found

    def _carry_out(
        self, assigned: Assigned, row: StreamRow, decision: Decision, now: float
    ) -> None:
        partition, positions = assigned.partition, self._positions
        self._note(partition, row.error_code, decision, now)
        if decision.refresh:
            self._cluster.request_refresh(error_name(row.error_code), partition.topic)
        match decision.step:
            case Step.AGAIN:
                positions.validate(assigned, now)
            case Step.REPLICA:
                self._streams.prefer(assigned, decision.replica, now)
                positions.validate(assigned, now)
            case Step.OUT_OF_RANGE:
                at = row.fetch_position
                self._move(
                    partition,
                    lambda now: positions.apply_policy(assigned, now, out_of_range=at),
                    now,
                )
            case Step.TRUNCATED if decision.end is not None:
                positions.handle_truncation(assigned, decision.end, now)
            case _:
                if decision.error is not None:
                    failed = PartitionFailed(partition, assigned.seeks, decision.error, False)
                    self._on_news(failed)
                self._begin_again_later(partition, now)

    def _note(self, partition: TopicPartition, code: int, decision: Decision, now: float) -> None:
        """Keep what a partition's leader answers, and warn of it once."""
        error = decision.error
        if error is None and code:
            error = fetch_error(partition, code)
        if error is not None:
            self._links.troubles.note(partition, error, now)

    def _begin_again_later(self, partition: TopicPartition, now: float) -> None:
        """Start a partition again once its backoff is over; a row of failures ends with quiet."""
        if now - self._pace.ready_at(partition) > self._quiet:
            self._pace.handle_success(partition)
        self._pace.handle_failure(partition, now)
        self._later.add(partition)

    def _move(self, partition: TopicPartition, move: Callable[[float], None], now: float) -> None:
        """Move a partition's position at once, but a row of moves in their backoff.

        A broker may tell for ever, and without delay, that its log does not hold what it holds.
        """
        if not self._moves.is_ready(partition, now):
            self._held[partition] = move
            return
        if now - self._moves.ready_at(partition) > self._quiet:
            self._moves.handle_success(partition)
        self._moves.handle_failure(partition, now)
        move(now)
