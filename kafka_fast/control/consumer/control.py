"""The consumer's control plane: decides what is read from where. Sans-I/O.

    events from the data plane ─┐                        ┌─► commands for the data plane
    the user's assignment,      ├─► ConsumerControl ─────┼─► sockets and look-ups for the machine
    seeks and questions         │   positions, streams   └─► news for the user's thread
    sockets, look-ups, time ────┘

Thread: control. `now` comes in; randomness comes in; bytes of records stay out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from kafka_fast.config import ConsumerSettings, OffsetReset
from kafka_fast.control import link_events
from kafka_fast.control.backoff import Backoff, KeyedBackoff
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.consumer.answers import Decision, Step, decide, why_unreadable
from kafka_fast.control.consumer.assigned import NO_NODE, NOWHERE, Assigned, Phase, Position
from kafka_fast.control.consumer.lookup import Lookup
from kafka_fast.control.consumer.plane import (
    ConsumerCommand,
    ConsumerEvent,
    FetchPunt,
    PartitionFailed,
    Positioned,
    Recreated,
    Reposition,
    StreamRow,
    StreamsStopped,
    generation,
)
from kafka_fast.control.consumer.positions import Positions
from kafka_fast.control.consumer.streams import Streams
from kafka_fast.control.discovery import Discovery
from kafka_fast.control.group.committed import Fetched
from kafka_fast.control.group.group import Group
from kafka_fast.control.group.member import Subscription, TopicFailed
from kafka_fast.control.instants import NEVER
from kafka_fast.control.links import Link, Links
from kafka_fast.control.metadata import ClusterChanges
from kafka_fast.control.plane import LinkClosed, RepeatEnded, Response, Throttled, TopicSettled
from kafka_fast.control.topology import UNKNOWN_TOPIC_OR_PARTITION
from kafka_fast.errors import KafkaError, ProtocolError, broker_error, error_name
from kafka_fast.logs import get_logger
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.fetch import FetchResponse, PartitionData
from kafka_fast.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kafka_fast.consumer")


class ConsumerControl:
    """Policy of one consumer. Control thread only."""

    def __init__(
        self,
        settings: ConsumerSettings,
        client_id: str,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
    ) -> None:
        """Begin without connections and partitions.

        Args:
            settings: the consumer's configuration.
            client_id: of all requests.
            random: returns a float in [0, 1).
            wall_ms: returns the Unix time in ms.
        """
        self._settings = settings
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self.cluster = Cluster(
            settings, random, allow_auto_create_topics=settings.allow_auto_create_topics
        )
        self.links = Links(
            settings,
            client_id,
            random,
            on_ready=self._handle_ready,
            on_lost=self._handle_lost,
            on_failed=self._handle_connect_failed,
        )
        self.discovery = Discovery(
            settings,
            self.cluster,
            self.links,
            on_changes=self._handle_changes,
            on_fatal=self._handle_fatal,
        )
        self.streams = Streams(
            settings,
            self.cluster,
            self.links,
            self.discovery,
            client_id,
            on_moved=self._handle_moved,
            on_refused=self._tell,
        )
        self.positions = Positions(
            settings,
            self.cluster,
            self.links,
            self.discovery,
            random,
            wall_ms,
            on_ready=self._handle_positioned,
            on_failed=self._handle_failed,
            on_truncated=self._handle_truncated,
        )
        self.group: Group | None = None
        if settings.group_id is not None:
            self.group = Group(
                settings.group_id, settings, self.cluster, self.links, self.discovery, random
            )
        self.lookup = Lookup(settings, self.cluster, self.links, self.discovery, backoff)
        self._pace: KeyedBackoff[TopicPartition] = KeyedBackoff(backoff)
        self._later: set[TopicPartition] = set()  # stand still until their backoff is over
        self._moves: KeyedBackoff[TopicPartition] = KeyedBackoff(backoff)
        self._held: dict[TopicPartition, Callable[[float], None]] = {}  # moves that wait for theirs
        self._asked_committed: set[TopicPartition] = set()
        self._awaited: set[str] = set()  # topics whose partitions the user waits for
        self._subscribed: frozenset[str] = frozenset()  # topics, by name
        self._commands: deque[ConsumerCommand] = deque()
        self._now = 0.0  # of the last tick or event
        self.fatal: KafkaError | None = None
        self.throttle_ms = 0

    def describe(self) -> str:
        """Return the state of things in a few lines, for people."""
        lines = [
            f"cluster {self.cluster.cluster_id}, metadata generation {self.cluster.generation}",
            *map(str, self.cluster.nodes),
        ]
        lines += [
            f"{it.partition}: {it.phase.value}, position {it.position}, link {it.link_id}"
            for it in list(self.positions.partitions.values())
        ]
        return "\n".join(lines)

    # Commands of the user's thread

    def assign(
        self, streams: Iterable[tuple[TopicPartition, int]], now: float, *, committed: bool
    ) -> None:
        """Read these partitions from now on, and no others; what stays goes on undisturbed.

        Args:
            streams: partitions and the ids of their streams.
            now: the time.
            committed: start at the group's committed offsets where there are any.
        """
        wanted = dict(streams)
        for partition, assigned in list(self.positions.partitions.items()):
            if wanted.get(partition) != assigned.stream_id:
                self._forget_waits(partition)
                self.positions.remove(partition)
                self.streams.remove(assigned)
        for partition, stream_id in wanted.items():
            if partition not in self.positions.partitions:
                phase = Phase.COMMITTED if committed else Phase.RESET
                self.cluster.forget_error(partition.topic)
                assigned = Assigned(partition, stream_id, phase)
                self.streams.add(assigned)
                self.positions.add(assigned, now)

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Belong to the group with this subscription. There is a group."""
        assert self.group is not None
        self._subscribed = subscription.topics
        for topic in subscription.topics:
            self.cluster.forget_error(topic)
        self.group.member.subscribe(subscription, now)

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group."""
        assert self.group is not None
        self._subscribed = frozenset()
        self.group.leave(now, done)

    def seek(self, partition: TopicPartition, position: Position, seeks: int, now: float) -> None:
        """Read on from a position; `seeks` counts the user's moves of this partition."""
        assigned = self._begin_seek(partition, seeks)
        if assigned is not None:
            self.positions.move(assigned, position, now)

    def look_up(
        self, partition: TopicPartition, reset: OffsetReset, seeks: int, now: float
    ) -> None:
        """Read on from where the log begins, ends, or was at a Unix time in ms."""
        assigned = self._begin_seek(partition, seeks)
        if assigned is not None:
            self.positions.look_up(assigned, reset, now)

    def begin_again(self, partition: TopicPartition, seeks: int, now: float) -> None:
        """The user's thread has forgotten the topic that was deleted: read the one made anew."""
        assigned = self._begin_seek(partition, seeks)
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
        is_last: bool,
    ) -> None:
        """Commit these offsets for the group; see `Commits.commit`.

        One of a topic that was deleted is left out: under its name stands another one by now, and
        who went on from there would skip its records.
        """
        if self.group is None:
            return
        known = self.positions.partitions
        offsets = {
            partition: at
            for partition, at in offsets.items()
            if partition not in known or not known[partition].is_suspended
        }
        self.group.commits.commit(
            offsets, done, now, deadline=deadline, as_member=as_member, is_last=is_last
        )

    def _begin_seek(self, partition: TopicPartition, seeks: int) -> Assigned | None:
        assigned = self.positions.partitions.get(partition)
        if assigned is None:
            return None
        self._forget_waits(partition)
        self.streams.halt(assigned)
        assigned.seeks = seeks
        assigned.starts = 0
        assigned.is_suspended = False
        return assigned

    def _forget_waits(self, partition: TopicPartition) -> None:
        self._held.pop(partition, None)
        self._later.discard(partition)
        self._pace.handle_success(partition)

    def want_topic(self, topic: str, now: float) -> None:
        """The user waits for this topic's partitions; `TopicSettled` answers."""
        self._awaited.add(topic)
        self.cluster.forget_error(topic)
        self.cluster.want_topic(topic, now)
        if self.fatal is not None:
            self._commands.append(TopicSettled(topic, self.fatal))
        else:
            self._settle(topic)

    def give_up_topic(self, topic: str) -> None:
        """Nobody waits for this topic any more."""
        self._awaited.discard(topic)

    # Time

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._now = now
        self.links.tick(now)
        for topic in self._awaited:
            self.cluster.want_topic(topic, now)
        self.discovery.tick(now)
        for partition in [it for it in self._later if self._pace.is_ready(it, now)]:
            self._later.discard(partition)
            self.positions.validate(self.positions.partitions[partition], now)
        for partition in [it for it in self._held if self._moves.is_ready(it, now)]:
            self._move(partition, self._held.pop(partition), now)
        self.positions.tick(now)
        self.lookup.tick(now)
        if self.group is not None:
            self.group.tick(now)
            self._ask_committed(self.group, now)
        self.streams.tick(now)

    def _ask_committed(self, group: Group, now: float) -> None:
        """Ask for the group's offsets of the partitions that wait for them."""
        waiting = [
            it for it in self.positions.without_committed() if it not in self._asked_committed
        ]
        if not waiting:
            return
        self._asked_committed.update(waiting)

        def handle(found: Fetched | KafkaError) -> None:
            self._asked_committed.difference_update(waiting)
            for partition in waiting:
                assigned = self.positions.partitions.get(partition)
                if assigned is None or assigned.phase is not Phase.COMMITTED:
                    continue
                if isinstance(found, KafkaError):
                    self.positions.fail(assigned, found)
                    continue
                offset = found[partition]
                position = None if offset is None else Position(offset.offset, offset.leader_epoch)
                self.positions.set_committed(partition, position, self._now)

        group.committed.fetch(waiting, handle, now)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return min(
            self.group.next_deadline() if self.group is not None else NEVER,
            self.links.next_deadline(),
            self.discovery.next_deadline(),
            self.positions.next_deadline(),
            self.lookup.next_deadline(),
            *(self._pace.ready_at(partition) for partition in self._later),
            *(self._moves.ready_at(partition) for partition in self._held),
        )

    # Out

    def poll_command(self) -> ConsumerCommand | None:
        """Return the next thing to do; None if there is nothing."""
        if self._commands:
            return self._commands.popleft()
        if self.group is not None and (news := self.group.poll_news()) is not None:
            return news
        return self.streams.poll_command() or self.links.poll_command()

    # In

    def handle_event(self, event: ConsumerEvent, now: float) -> None:
        """Take an event of the data plane."""
        self._now = now
        match event:
            case Response():
                self.links.handle_response(event, now)
            case StreamsStopped(rows):
                for row in rows:
                    assigned = self._handle_stopped(row)
                    if assigned is not None:
                        self.positions.validate(assigned, now)
            case FetchPunt():
                self._handle_punt(event, now)
            case LinkClosed():
                self.links.handle_closed(event, now)
            case Throttled(_, throttle_ms):
                self.throttle_ms += throttle_ms
            case RepeatEnded() if self.group is not None:
                self.group.member.handle_overstayed(now)

    # Links and metadata

    def _handle_ready(self, link: Link, now: float) -> None:
        """What waits for this link is started by the next tick."""

    def _handle_lost(self, link: Link, error: KafkaError | None, now: float) -> None:
        self.streams.handle_lost(link)
        if error is not None:
            logger.info("%s", error)
            self.discovery.handle_lost(link)

    def _handle_connect_failed(self, node_id: int, failed: link_events.Failed, now: float) -> None:
        self.discovery.handle_connect_failed(node_id, failed, now)
        if self.group is not None:
            self.group.coordinator.handle_connect_failed(node_id, failed.error, now)
        for assigned in self.positions.partitions.values():
            if assigned.replica == node_id:
                assigned.replica = NO_NODE  # the leader has everything as well

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        """Bring positions and streams in line with what changed in the cluster."""
        for change in changes.recreated_topics:
            self.streams.handle_recreated(change.topic)
            for assigned in self._of_topic(change.topic):
                logger.warning("%s: its topic was made anew", assigned.partition)
                self._held.pop(assigned.partition, None)
                self.streams.halt(assigned)
                if assigned.phase is Phase.COMMITTED:  # the user's thread knows nothing of it yet
                    self.positions.begin_again(assigned, now)
                    continue
                self.positions.suspend(assigned)
                self._commands.append(Recreated(assigned.partition, assigned.seeks))
        for partition in changes.leaders:
            moved = self.positions.partitions.get(TopicPartition(*partition))
            if moved is not None:
                self.streams.handle_leader(moved, now)
        for topic in sorted(changes.topic_errors):
            self._judge(topic)
        for topic in sorted(self._awaited):
            self._settle(topic)
        if self.group is not None:
            self.group.member.handle_metadata(now)

    def _judge(self, topic: str) -> None:
        """Tell the user of a topic that cannot be read, as soon as it is to be read."""
        code = self.cluster.error(topic)
        reading = self._of_topic(topic)
        if not code or not (reading or topic in self._subscribed or topic in self._awaited):
            return
        error = broker_error(code, f"topic {topic!r}")
        if code == UNKNOWN_TOPIC_OR_PARTITION:
            logger.warning("there is no topic %r (yet)", topic)
        elif not error.retriable and reading:
            for assigned in reading:
                self._tell(assigned, error)
        elif not error.retriable and topic in self._subscribed:
            self._commands.append(TopicFailed(error))

    def _of_topic(self, topic: str) -> list[Assigned]:
        return [it for it in self.positions.partitions.values() if it.partition.topic == topic]

    def _settle(self, topic: str) -> None:
        """Tell the user who waits for a topic, if there is something to tell."""
        settled = self.cluster.settled(topic)
        if settled is not None:
            self._awaited.discard(topic)
            self._commands.append(settled)

    def _handle_fatal(self, error: KafkaError) -> None:
        logger.error("the consumer cannot go on: %s", error)
        self.fatal = error  # every call that has to wait raises it
        for topic in sorted(self._awaited):
            self._commands.append(TopicSettled(topic, error))
        self._awaited.clear()

    # Streams that stand still

    def _handle_stopped(self, row: StreamRow) -> Assigned | None:
        """Take note of how far a stream has come; None if that was in another life."""
        assigned = self.streams.stream(row.stream_id)
        if assigned is None or not assigned.is_running or assigned.generation != row.generation:
            return None
        assigned.link_id = NOWHERE
        assigned.stopping = False
        before = assigned.position
        if before is not None and row.fetch_position != before.offset:
            assigned.position = Position(row.fetch_position, row.last_epoch)
        return assigned

    def _handle_moved(self, assigned: Assigned, now: float) -> None:
        """A partition that stands still has another leader: see whether it is valid there."""
        waits = assigned.partition in self._later
        if assigned.phase in (Phase.READY, Phase.VALIDATE) and not waits:
            self.positions.validate(assigned, now)

    def _handle_punt(self, event: FetchPunt, now: float) -> None:
        """Decide for each partition of an answer that the data plane did not understand."""
        if not event.rows:
            self.links.troubles.note_malformed(FetchResponse)
            self.links.troubles.explain(event.link_id, why_unreadable(event))
            return
        stopped = [(self._handle_stopped(row), row) for row in event.rows]
        parts = self._read_punt(event, now)
        for assigned, row in stopped:
            if assigned is not None and not assigned.is_running:  # else a hint has moved it
                partition = assigned.partition
                at_replica = assigned.replica != NO_NODE
                data = parts.get(partition)
                decision = decide(partition, row.error_code, data, at_replica=at_replica)
                self._carry_out(assigned, row, decision, now)

    def _carry_out(
        self, assigned: Assigned, row: StreamRow, decision: Decision, now: float
    ) -> None:
        partition = assigned.partition
        if row.error_code:
            logger.info("%s: %s", partition, error_name(row.error_code))
        if decision.refresh:
            self.cluster.request_refresh(error_name(row.error_code), partition.topic)
        match decision.step:
            case Step.AGAIN:
                self.positions.validate(assigned, now)
            case Step.REPLICA:
                self.streams.prefer(assigned, decision.replica, now)
                self.positions.validate(assigned, now)
            case Step.OUT_OF_RANGE:
                self._move(
                    partition,
                    lambda now: self.positions.apply_policy(
                        assigned, now, out_of_range=row.fetch_position
                    ),
                    now,
                )
            case Step.TRUNCATED if decision.end is not None:
                self.positions.handle_truncation(assigned, decision.end, now)
            case _:
                if decision.error is not None:
                    self._tell(assigned, decision.error)
                self._begin_again_later(partition, now)

    def _begin_again_later(self, partition: TopicPartition, now: float) -> None:
        """Start a partition again once its backoff is over; a row of failures ends with quiet."""
        if now - self._pace.ready_at(partition) > self._settings.retry_backoff_max:
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
        if now - self._moves.ready_at(partition) > self._settings.retry_backoff_max:
            self._moves.handle_success(partition)
        self._moves.handle_failure(partition, now)
        move(now)

    def _read_punt(self, event: FetchPunt, now: float) -> dict[TopicPartition, PartitionData]:
        """Return the answer by partition, and take the leaders that it names (KIP-951)."""
        try:
            _, body = frame.decode_response(FetchResponse, event.frame, event.version)
        except ProtocolError as error:
            logger.warning("a Fetch answer cannot be read: %s", error)
            return {}
        found: dict[TopicPartition, PartitionData] = {}
        for topic in body.responses:
            name = topic.topic or self.cluster.topic_name(topic.topic_id)
            for data in topic.partitions if name else ():
                partition = TopicPartition(name or "", data.partition_index)
                found[partition] = data
                hint = data.current_leader
                if data.error_code and hint.leader_id >= 0:
                    changes = self.cluster.apply_leader_hint(
                        partition.topic,
                        partition.partition,
                        hint.leader_id,
                        hint.leader_epoch,
                        body.node_endpoints,
                    )
                    self.discovery.apply(changes, now)
        return found

    # News for the user

    def _handle_positioned(self, assigned: Assigned, now: float) -> None:
        """A position is valid: tell it if it is news, and read on from there."""
        position = assigned.position
        if assigned.is_moved and position is not None:
            assigned.is_moved = False
            start = generation(assigned.seeks, assigned.starts + 1)
            self._commands.append(Positioned(assigned.partition, start, position.offset))
        self.streams.start(assigned, now)

    def _tell(self, assigned: Assigned, error: KafkaError, *, is_final: bool = False) -> None:
        self._commands.append(PartitionFailed(assigned.partition, assigned.seeks, error, is_final))

    def _handle_failed(self, assigned: Assigned, error: KafkaError) -> None:
        self._tell(assigned, error, is_final=True)

    def _handle_truncated(self, assigned: Assigned, end: Position) -> None:
        news = Reposition(assigned.partition, assigned.seeks, end.offset, end.epoch)
        self._move(assigned.partition, lambda now: self._commands.append(news), self._now)
