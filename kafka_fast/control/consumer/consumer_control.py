"""The consumer's control plane: decides what is read from where. Sans-I/O.

    events from the data plane ─┐                        ┌─► commands for the data plane
    the user's assignment,      ├─► ConsumerControl ─────┼─► sockets and look-ups for the host
    seeks and look-ups          │                        └─► news for the user's thread
    sockets, look-ups, time ────┘

This module wires the consumer's parts. `partitions` holds the assigned partitions, each in its
state. `positions` finds where they are read, `fetch_routes` over which links. `restarts` decides
how stopped ones go on, and `diagnosis` tells why one is not read. `topics` tells the user of
topics, `lookup` looks up offsets for the user, and `group` is the consumer's place in its group.

Thread: control. `now` comes in; randomness comes in; bytes of records stay out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka_fast.config import ConsumerSettings, OffsetReset
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.connection_outputs import ConnectionFailed
from kafka_fast.control.connections.links import Link
from kafka_fast.control.connections.unreadable import UNREADABLE_PATIENCE, Row, UnreadableAnswers
from kafka_fast.control.consumer.absent import AbsentPartitions
from kafka_fast.control.consumer.committed_starts import CommittedStarts
from kafka_fast.control.consumer.consumer_messages import (
    BrokerFailed,
    ConsumerCommand,
    FetchEvent,
    FetchPunt,
    OwnCommand,
    PartitionFailed,
    Positioned,
    StreamsStopped,
    generation,
)
from kafka_fast.control.consumer.consumer_view import ConsumerView
from kafka_fast.control.consumer.diagnosis import Diagnosis
from kafka_fast.control.consumer.fetch_routes import FetchRoutes
from kafka_fast.control.consumer.lookup import Lookup
from kafka_fast.control.consumer.partition import (
    AssignedPartition,
    AssignedPartitions,
    FetchState,
    Position,
)
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.consumer.restarts import Restarts
from kafka_fast.control.consumer.watched_topics import WatchedTopics
from kafka_fast.control.group.group import Group
from kafka_fast.control.group.member import Subscription
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.records.fetch import FetchRequest
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from kafka_fast.values import assert_never

logger = get_logger("kafka_fast.consumer")


class ConsumerControl(ClientControl[ConsumerSettings, OwnCommand, FetchEvent]):
    """Policy of one consumer. Control thread only."""

    view: ConsumerView
    kind = "consumer"
    logger = logger

    def __init__(
        self,
        settings: ConsumerSettings,
        client_id: str,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
        mechanism: Mechanism | None = None,
    ) -> None:
        """Make the consumer's parts and wire them. No broker is contacted yet.

        Args:
            settings: the consumer's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            wall_ms: returns the Unix time in ms.
            mechanism: for the login over each connection; None: there is none.
        """
        cluster = Cluster(
            settings, random, allow_auto_create_topics=settings.allow_auto_create_topics
        )
        patience = min(UNREADABLE_PATIENCE, settings.default_api_timeout)
        self._unreadable = unreadable = UnreadableAnswers(self._handle_unreadable, patience)
        super().__init__(settings, client_id, random, wall_ms, cluster, unreadable, mechanism)
        self.view = ConsumerView(self)
        self.partitions = AssignedPartitions()
        self.fetch_routes = FetchRoutes(
            self.context, self.partitions, on_moved=self._handle_moved, on_refused=self._tell
        )
        self.positions = Positions(
            self.context,
            self.partitions,
            on_ready=self._handle_positioned,
            on_failed=self._handle_failed,
            on_truncated=self._handle_truncated,
        )
        tell = self._commands.append
        self.restarts = Restarts(
            self.context, self.partitions, self.fetch_routes, self.positions, on_news=tell
        )
        self.topics = WatchedTopics(self.cluster, self.partitions, on_news=tell)
        self.absent = AbsentPartitions(self.cluster, self.partitions, on_news=tell)
        self.group: Group | None = None
        self._starts: CommittedStarts | None = None
        if settings.group_id is not None:
            self.group = Group(settings.group_id, self.context)
            self._starts = CommittedStarts(
                self.group.committed, self.partitions, self.positions, lambda: self._now
            )
        self.lookup = Lookup(self.context)
        self.diagnosis = Diagnosis(self.context, self.partitions, self.positions, self.group)

    # ---- getters ----

    def is_over(self, failed: BrokerFailed) -> bool:
        """Tell whether what was wrong with a node is over. Any thread."""
        if failed.refused is not None:
            return self.troubles.now(failed.refused) is None
        return failed.unreadable is not None and not self._unreadable.goes_on(failed.unreadable)

    # ---- commands of the user's thread ----

    def assign(
        self,
        streams: Iterable[tuple[TopicPartition, int]],
        now: float,
        *,
        committed: bool,
        by_hand: bool = True,
    ) -> None:
        """Read these partitions from now on, and no others. Those that stay go on undisturbed.

        Args:
            streams: partitions and the ids of their streams.
            now: the time.
            committed: start at the group's committed offsets where there are any.
            by_hand: the user assigned them, not the group.
        """
        stream_ids = dict(streams)
        for assigned in self.partitions:
            if stream_ids.get(assigned.partition) != assigned.stream_id:
                self.restarts.forget_backoffs(assigned.partition)
                self.positions.drop_requests(assigned)
                self.fetch_routes.remove_stream(assigned)
                self.partitions.remove(assigned)
        new = [stream for stream in stream_ids.items() if stream[0] not in self.partitions]
        for topic in dict.fromkeys(partition.topic for partition, _ in new):
            self.cluster.forget_error(topic)
            self.cluster.want_topic(topic, now)
        added = [self.partitions.add(partition, stream_id, now) for partition, stream_id in new]
        self.absent.watch(by_hand=by_hand)
        if not committed or self._starts is None:
            for assigned in added:
                self.positions.apply_policy(assigned, now)
        elif added:
            for assigned in added:
                self.positions.await_committed(assigned, now)
            self._starts.fetch_committed(added)

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group with this subscription; only for a consumer with a group."""
        assert self.group is not None
        self.topics.subscribe(subscription.topics)
        self.group.member.subscribe(subscription, now)

    def leave_group(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group; only for a consumer with a group."""
        assert self.group is not None
        self.topics.subscribe(frozenset())
        self.group.leave(now, done)

    def seek(self, partition: TopicPartition, position: Position, seeks: int, now: float) -> None:
        """Read on from a position; `seeks` counts the user's moves of this partition."""
        assigned = self._begin_seek(partition, seeks, now)
        if assigned is not None:
            self.positions.move(assigned, position, now)

    def look_up(
        self, partition: TopicPartition, reset: OffsetReset, seeks: int, now: float
    ) -> None:
        """Read on from the log's beginning, its end, or a Unix time in ms."""
        assigned = self._begin_seek(partition, seeks, now)
        if assigned is not None:
            self.positions.look_up(assigned, reset, now)

    def begin_again(self, partition: TopicPartition, seeks: int, now: float) -> None:
        """Read a recreated topic: the user's thread has forgotten the deleted one."""
        assigned = self._begin_seek(partition, seeks, now)
        if assigned is not None:
            self.positions.begin_again(assigned, now)

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[KafkaError | None], None],
        now: float,
        *,
        deadline: float,
        as_member: bool,
        skips_unknown: bool,
    ) -> None:
        """Commit these offsets for the group; see `Commits.commit`.

        Offsets of a deleted topic are left out if a new topic has its name. A member that began
        the new topic at such an offset would skip records.
        """
        if self.group is None:
            return
        gone = {assigned.partition for assigned in self.partitions.in_state(FetchState.RECREATED)}
        offsets = {partition: at for partition, at in offsets.items() if partition not in gone}
        self.group.commits.commit(
            offsets, done, deadline=deadline, as_member=as_member, skips_unknown=skips_unknown
        )

    def _begin_seek(
        self, partition: TopicPartition, seeks: int, now: float
    ) -> AssignedPartition | None:
        assigned = self.partitions.get(partition)
        if assigned is None:
            return None
        self.restarts.forget_failures(partition)
        self.fetch_routes.halt(assigned, now)
        assigned.seeks = seeks
        assigned.starts = 0
        return assigned

    # ---- time ----

    def _want_metadata(self, now: float) -> None:
        self.topics.tick(now)

    def _tick(self, now: float) -> None:
        self.restarts.tick(now)
        self.lookup.tick(now)
        if self.group is not None:
            self.group.tick(now)
        self.fetch_routes.tick(now)

    def _next_deadline(self) -> float:
        return min(
            self.group.next_deadline() if self.group is not None else NEVER,
            self.topics.next_deadline(),
            self.lookup.next_deadline(),
            self.fetch_routes.next_deadline(),
            self.restarts.next_deadline(),
        )

    # ---- out and in ----

    def _poll_own(self) -> ConsumerCommand | None:
        if self.group is not None and (news := self.group.poll_news()) is not None:
            return news
        return self.fetch_routes.poll_command()

    def _handle_own(self, event: FetchEvent, now: float) -> None:
        match event:
            case StreamsStopped(rows):
                self.restarts.handle_stopped(rows, now)
            case FetchPunt():
                self.restarts.handle_punt(event, now)
            case _:
                assert_never(event)

    def _handle_heartbeats_ended(self, token: int, now: float) -> None:
        """Leave the group, as its coordinator expects of a member that does not poll."""
        if self.group is not None and self.connections.requests.handle_ended(token):
            self.group.member.handle_overstayed(now)

    # ---- links and metadata ----

    def handle_lost(self, link: Link, error: KafkaError | None, now: float) -> None:
        """Forget the Fetch version of a lost link, and ask for new metadata if it was used."""
        self.fetch_routes.handle_lost(link)
        super().handle_lost(link, error, now)

    def handle_connect_failed(
        self, key: ConnectionKey, failed: ConnectionFailed, now: float
    ) -> None:
        """Look for another node in place of one that cannot be reached."""
        super().handle_connect_failed(key, failed, now)
        self.fetch_routes.handle_connect_failed(key)
        if failed.is_refused and key.role is not Role.SLOW:
            is_urgent = key.role is Role.DATA
            self._commands.append(BrokerFailed(failed.error, is_urgent, now, key))

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        """Bring positions and streams in line with what changed in the cluster."""
        for change in changes.recreated_topics:
            self.fetch_routes.handle_recreated(change.topic)
            self.restarts.handle_recreated(change.topic, now)
            if self._starts is not None:
                self._starts.handle_recreated(change.topic, now)
        for partition in changes.leaders:
            moved = self.partitions.get(TopicPartition(*partition))
            if moved is not None:
                self.fetch_routes.handle_leader(moved, now)
        self.topics.handle_changes(changes)
        self.absent.handle_answer(changes.answered, now)
        self.fetch_routes.handle_answer(changes.answered)
        if self.group is not None:
            self.group.member.handle_metadata(now)

    def _handle_unreadable(self, row: Row, error: KafkaError) -> None:
        """Tell the user who polls that a node sends only unreadable answers."""
        is_urgent = row[1] == FetchRequest.api_key
        self._commands.append(BrokerFailed(error, is_urgent, self._now, unreadable=row))

    def _partition_of(self, stream_id: int) -> TopicPartition | None:
        assigned = self.partitions.of_stream(stream_id)
        return None if assigned is None else assigned.partition

    def _stop(self, error: KafkaError) -> None:
        self.topics.fail_all(error)  # all other calls that wait raise `fatal`

    # ---- positions and streams ----

    def _handle_moved(self, assigned: AssignedPartition, now: float) -> None:
        self.restarts.handle_moved(assigned, now)

    def _handle_truncated(self, assigned: AssignedPartition, end: Position, now: float) -> None:
        self.restarts.handle_truncated(assigned, end, now)

    def _handle_positioned(self, assigned: AssignedPartition, now: float) -> None:
        """Read on from a valid position, and tell the user's thread of a new one."""
        position = assigned.position
        if not assigned.is_position_told and position is not None:
            assigned.is_position_told = True
            start = generation(assigned.seeks, assigned.starts + 1)
            self._commands.append(Positioned(assigned.partition, start, *position))
        self.fetch_routes.start_fetching(assigned, now)

    def _tell(
        self, assigned: AssignedPartition, error: KafkaError, *, is_final: bool = False
    ) -> None:
        self._commands.append(PartitionFailed(assigned.partition, assigned.seeks, error, is_final))

    def _handle_failed(self, assigned: AssignedPartition, error: KafkaError) -> None:
        self._tell(assigned, error, is_final=True)
