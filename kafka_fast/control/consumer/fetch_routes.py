"""Over which link each partition is fetched: the consumer's forwarding table.

    valid positions ─► start ─► StartStream ─► FETCHING ─► StreamsStopped / FetchPunt
                         ▲                                          │
                         └── leader or preferred replica, link ◄────┘ position, epoch

A stream runs on the link to its leader, or to the replica that the leader named as nearer
(KIP-392). A stream that moves to another link is stopped first, because only the data plane knows
how far it has come.

Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Link
from kafka_fast.control.consumer.consumer_messages import (
    ConsumerCommand,
    NameStream,
    ProgramFetch,
    RemoveStream,
    StartStream,
    StopStream,
)
from kafka_fast.control.consumer.partition import (
    AWAITING_WAY,
    NO_NODE,
    AssignedPartition,
    AssignedPartitions,
    FetchState,
)
from kafka_fast.control.context import Context
from kafka_fast.control.metadata.metadata import NO_TOPIC_ID, Node
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.fetch import FetchRequest
from kafka_fast.types import TopicPartition

STARTS_AT_ONCE = 500
"""How many partitions a tick starts. More would keep the control thread from other work."""

FIRST_VERSION_WITH_IDS = 13
LAST_VERSION_WITH_NAMES = 12
FORMAT_VERSIONS = (4, 12, FIRST_VERSION_WITH_IDS)
"""A Fetch version of each form of the topic's field: string, compact string, id."""


class FetchRoutes:
    """The consumer's forwarding table. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        partitions: AssignedPartitions,
        *,
        on_moved: Callable[[AssignedPartition, float], None],
        on_refused: Callable[[AssignedPartition, KafkaError], None],
    ) -> None:
        """Start without streams; `start_fetching` adds them.

        Args:
            context: the client's.
            partitions: the assigned ones.
            on_moved: called with a stopped partition that has another leader than before.
            on_refused: called with a partition whose node cannot serve Fetch, and the error.
        """
        self._settings = context.settings
        self._cluster = context.cluster
        self._connections = context.connections
        self._links = context.links
        self._requester = context.requester
        self._client_id = context.client_id
        self._on_moved = on_moved
        self._on_refused = on_refused
        self._partitions = partitions
        self._programmed: dict[int, int] = {}  # link id -> Fetch version
        self._nameless: set[int] = set()  # the streams of topics without an id
        # Partitions that wait for a leader, by topic, and for a link, by node; and those that may
        # have what they waited for. Each by the id of its stream. Some may be gone meanwhile.
        self._without_leader: dict[str, dict[int, AssignedPartition]] = {}
        self._without_link: dict[int, dict[int, AssignedPartition]] = {}
        self._due: dict[int, AssignedPartition] = {}
        # Partitions that a replica is preferred for. Each holds for as long as the others, so the
        # first one in here is over first.
        self._at_replicas: dict[TopicPartition, AssignedPartition] = {}
        self._commands: deque[ConsumerCommand] = deque()

    # ---- getters ----

    def poll_command(self) -> ConsumerCommand | None:
        """Return the next thing to do; None if there is nothing."""
        return self._commands.popleft() if self._commands else None

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return LONG_AGO if self._due else self._replicas_are_over_at()

    # ---- commands ----

    def remove_stream(self, assigned: AssignedPartition) -> None:
        """Forget a partition's stream and what was fetched of it."""
        self._at_replicas.pop(assigned.partition, None)
        stream_id = assigned.stream_id
        self._nameless.discard(stream_id)
        self._due.pop(stream_id, None)
        self._without_leader.get(assigned.partition.topic, {}).pop(stream_id, None)
        if assigned.node is not None:
            self._without_link.get(assigned.node.id, {}).pop(stream_id, None)
        self._commands.append(RemoveStream(assigned.stream_id))

    def start_fetching(self, assigned: AssignedPartition, now: float) -> None:
        """Fetch a partition from its valid position, as soon as there is a link for it."""
        position = assigned.position
        assert position is not None
        assert not assigned.is_running
        self._drop_replica_that_is_over(assigned, now)
        node = self._node_for(assigned)
        if node is None:
            self._await_leader(assigned, now)
            return
        link = self._requester.want_data_link(node.id, now)
        if link is None:
            self._await_link(assigned, node, now)
            return
        self._name(assigned)
        try:
            self._program(link, assigned)
        except UnsupportedVersionError as error:
            self._await_link(assigned, node, now, error=error)
            self._connections.refuse_link(link, error, now)
            self._on_refused(assigned, error)
            return
        assigned.fetch(link.id, node, now)
        self._commands.append(
            StartStream(
                assigned.stream_id,
                link.id,
                assigned.generation,
                position.offset,
                self._cluster.leader_epoch(*assigned.partition),
            )
        )

    def stop_fetching(self, assigned: AssignedPartition, now: float) -> None:
        """Have a partition's fetching stopped. `Restarts.handle_stopped` is called in the end."""
        if assigned.state is FetchState.FETCHING:
            assigned.begin_stop(now)
            self._commands.append(StopStream(assigned.stream_id, assigned.generation))

    def halt(self, assigned: AssignedPartition, now: float) -> None:
        """Take a partition for stopped at once. Records that it still brings are dropped."""
        self.stop_fetching(assigned, now)
        if assigned.is_running:
            assigned.enter(FetchState.STOPPED, now)

    def prefer(self, assigned: AssignedPartition, node_id: int, now: float) -> None:
        """Read a partition from this replica for metadata.max.age.ms; -1: from its leader.

        Then its leader is asked again. A replica that has been cut off from the leader brings no
        records, and no error either.
        """
        self._prefer_leader(assigned)
        if node_id != NO_NODE:
            assigned.replica = node_id
            assigned.replica_until = now + self._settings.metadata_max_age
            self._at_replicas[assigned.partition] = assigned

    def tick(self, now: float) -> None:
        """Start partitions that waited for a leader or a link and may have one now.

        If there are many, the next tick starts the others. This one comes back to its thread soon.
        """
        self._return_to_leaders(now)
        for node_id in list(self._without_link):
            # A partition whose node has left the cluster needs another one.
            is_gone = self._cluster.node(node_id) is None
            if is_gone or self._requester.want_data_link(node_id, now) is not None:
                self._due |= self._without_link.pop(node_id)
        for stream_id in list(islice(self._due, STARTS_AT_ONCE)):
            assigned = self._due.pop(stream_id)
            is_assigned = self._partitions.of_stream(stream_id) is assigned
            if is_assigned and assigned.state in AWAITING_WAY:
                self.start_fetching(assigned, now)

    def _return_to_leaders(self, now: float) -> None:
        """Stop the partitions that have been read from a replica for long: they start anew."""
        while self._replicas_are_over_at() <= now:
            assigned = self._at_replicas.pop(next(iter(self._at_replicas)))
            if assigned.state is FetchState.AWAITS_LINK:
                self._due[assigned.stream_id] = assigned
            self.stop_fetching(assigned, now)

    def _replicas_are_over_at(self) -> float:
        """Return when the first partition goes back to its leader."""
        for assigned in self._at_replicas.values():
            return assigned.replica_until
        return NEVER

    # ---- in ----

    def handle_answer(self, topics: Iterable[str]) -> None:
        """Let `tick` try the partitions of these topics that had no leader before."""
        for topic in topics:
            self._due |= self._without_leader.pop(topic, {})

    def handle_leader(self, assigned: AssignedPartition, now: float) -> None:
        """Stop a partition whose leader has changed or was elected again, to start it there."""
        if assigned.is_running:
            self.stop_fetching(assigned, now)
        else:
            self._on_moved(assigned, now)

    def handle_recreated(self, topic: str) -> None:
        """Forget a topic's old id, and its replicas.

        Streams that start from now on are named by the new id, and begin at their leaders.
        """
        for assigned in self._partitions.of_topic(topic):
            assigned.topic_id = None
            self._prefer_leader(assigned)
            self._nameless.discard(assigned.stream_id)

    def handle_connect_failed(self, key: ConnectionKey) -> None:
        """Prefer the leader again for partitions whose replica's node cannot be reached."""
        if key.role is not Role.DATA:
            return
        for assigned in self._partitions:
            if assigned.replica == key.node_id:
                self._prefer_leader(assigned)
                if assigned.state is FetchState.AWAITS_LINK:
                    self._due[assigned.stream_id] = assigned

    def handle_lost(self, link: Link) -> None:
        """Forget the Fetch version of a lost link. `StreamsStopped` names the streams on it."""
        self._programmed.pop(link.id, None)

    # ---- details ----

    def _await_leader(self, assigned: AssignedPartition, now: float) -> None:
        topic = assigned.partition.topic
        assigned.enter(FetchState.AWAITS_LEADER, now)
        self._without_leader.setdefault(topic, {})[assigned.stream_id] = assigned
        self._cluster.request_refresh("a partition has no leader", topic)

    def _await_link(
        self, assigned: AssignedPartition, node: Node, now: float, error: KafkaError | None = None
    ) -> None:
        assigned.enter(FetchState.AWAITS_LINK, now, node=node, error=error)
        self._without_link.setdefault(node.id, {})[assigned.stream_id] = assigned

    def _node_for(self, assigned: AssignedPartition) -> Node | None:
        """Return the node to read a partition from."""
        if assigned.replica != NO_NODE:
            return self._cluster.node(assigned.replica)
        return self._cluster.leader(*assigned.partition)

    def _drop_replica_that_is_over(self, assigned: AssignedPartition, now: float) -> None:
        """Prefer the leader again if the replica has left the cluster, or its time is up."""
        if self._cluster.node(assigned.replica) is None or now >= assigned.replica_until:
            self._prefer_leader(assigned)

    def _prefer_leader(self, assigned: AssignedPartition) -> None:
        assigned.replica = NO_NODE
        self._at_replicas.pop(assigned.partition, None)

    def _name(self, assigned: AssignedPartition) -> None:
        """Tell the data plane how requests name the stream's topic, if that has changed."""
        topic = assigned.partition.topic
        topic_id = self._cluster.topic_id(topic) or NO_TOPIC_ID
        if assigned.topic_id == topic_id:
            return
        assigned.topic_id = topic_id
        if topic_id == NO_TOPIC_ID:
            self._nameless.add(assigned.stream_id)
        else:
            self._nameless.discard(assigned.stream_id)
        for version in FORMAT_VERSIONS:
            field = frame.fetch_topic_prefix(version, topic, topic_id)
            self._commands.append(NameStream(assigned.stream_id, version, field))

    def _program(self, link: Link, assigned: AssignedPartition) -> None:
        """Let a link carry Fetch requests in the highest version that all its streams can use.

        Version 13 names topics by id. Brokers before 2.8 have no ids, so with such a broker in
        the cluster a topic may have none.
        """
        programmed = self._programmed.get(link.id, 0)
        if programmed >= FIRST_VERSION_WITH_IDS and assigned.topic_id != NO_TOPIC_ID:
            return  # all other streams have ids too, or the version would be lower
        limit = LAST_VERSION_WITH_NAMES if self._nameless else None
        version = link.versions.pick(FetchRequest, limit)
        if programmed == version:
            return
        self._programmed[link.id] = version
        self._links.hold(link)
        settings = self._settings
        parts = frame.fetch_parts(
            version,
            self._client_id,
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            read_committed=settings.is_read_committed,
            rack_id=settings.client_rack,
        )
        self._commands.append(ProgramFetch(link.id, version, parts.prefix, parts.suffix))
