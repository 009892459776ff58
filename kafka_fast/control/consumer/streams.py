"""Which stream runs over which link, and what the data plane hears of it.

    READY positions ─► start ─► StartStream ─► … running … ─► StreamsStopped / FetchPunt
                         ▲                                             │
                         └──── leader or preferred replica, link ◄─────┘ position, epoch

A stream runs on the link to its leader, or to the replica that the leader named as nearer
(KIP-392). To move it, it is stopped first: only the data plane knows how far it has come.

Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.consumer.assigned import NO_NODE, NOWHERE, Assigned, Phase
from kafka_fast.control.consumer.plane import (
    ConsumerCommand,
    NameStream,
    ProgramFetch,
    RemoveStream,
    StartStream,
    StopStream,
)
from kafka_fast.control.context import Context
from kafka_fast.control.link import Link
from kafka_fast.control.metadata import NO_TOPIC_ID, Node
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.fetch import FetchRequest

FIRST_VERSION_WITH_IDS = 13
LAST_VERSION_WITH_NAMES = 12
FORMAT_VERSIONS = (4, 12, FIRST_VERSION_WITH_IDS)
"""A Fetch version of each form of the topic's field: string, compact string, id."""


class Streams:
    """The consumer's forwarding table. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        *,
        on_moved: Callable[[Assigned, float], None],
        on_refused: Callable[[Assigned, KafkaError], None],
    ) -> None:
        """Begin without streams.

        Args:
            context: the client's.
            on_moved: called with a partition that stands still and has another leader than before.
            on_refused: called with a partition whose node cannot be fetched from, and why.
        """
        self._settings = context.settings
        self._cluster = context.cluster
        self._links = context.links
        self._ways = context.requester.ways
        self._client_id = context.client_id
        self._on_moved = on_moved
        self._on_refused = on_refused
        self._streams: dict[int, Assigned] = {}
        self._ids: dict[int, bytes] = {}  # topic ids as the data plane knows them, by stream
        self._programmed: dict[int, int] = {}  # link id -> Fetch version
        self._waiting: set[int] = set()  # streams that could run, and have no link
        self._commands: deque[ConsumerCommand] = deque()

    # Getters

    def stream(self, stream_id: int) -> Assigned | None:
        """Return what a stream belongs to; None if it was removed."""
        return self._streams.get(stream_id)

    def poll_command(self) -> ConsumerCommand | None:
        """Return the next thing to do; None if there is nothing."""
        return self._commands.popleft() if self._commands else None

    # Commands

    def add(self, assigned: Assigned) -> None:
        """Take over a partition's stream, which the user's thread has made."""
        self._streams[assigned.stream_id] = assigned

    def remove(self, assigned: Assigned) -> None:
        """Forget a partition's stream and what was fetched of it."""
        del self._streams[assigned.stream_id]
        self._ids.pop(assigned.stream_id, None)
        self._waiting.discard(assigned.stream_id)
        self._commands.append(RemoveStream(assigned.stream_id))

    def start(self, assigned: Assigned, now: float) -> None:
        """Fetch a partition from its position, as soon as there is a link for it."""
        if assigned.is_running or assigned.phase is not Phase.READY or assigned.position is None:
            return
        node = self._node_for(assigned, now)
        link = None if node is None else self._ways.want_data(node.id, now)
        if node is None:
            self._cluster.request_refresh("a partition has no leader", assigned.partition.topic)
        if link is None:
            self._waiting.add(assigned.stream_id)
            return
        self._name(assigned)
        try:
            self._program(link)
        except UnsupportedVersionError as error:
            self._waiting.add(assigned.stream_id)
            self._links.refuse(link, error, now)
            self._on_refused(assigned, error)
            return
        self._waiting.discard(assigned.stream_id)
        assigned.starts += 1
        assigned.link_id = link.id
        assigned.stopping = False
        self._commands.append(
            StartStream(
                assigned.stream_id,
                link.id,
                assigned.generation,
                assigned.position.offset,
                self._cluster.leader_epoch(*assigned.partition),
            )
        )

    def stop(self, assigned: Assigned) -> None:
        """Have a running stream stopped; `handle_stopped` hears of it."""
        self._waiting.discard(assigned.stream_id)
        if assigned.is_running and not assigned.stopping:
            assigned.stopping = True
            self._commands.append(StopStream(assigned.stream_id, assigned.generation))

    def halt(self, assigned: Assigned) -> None:
        """Take a stream for stopped: its generation is over, what it still brings is dropped."""
        self.stop(assigned)
        assigned.link_id = NOWHERE
        assigned.stopping = False

    def prefer(self, assigned: Assigned, node_id: int, now: float) -> None:
        """Read a partition from this replica for a while; -1: from its leader."""
        assigned.replica = node_id
        assigned.replica_until = now + self._settings.metadata_max_age

    def tick(self, now: float) -> None:
        """Start what can be started by now."""
        for stream_id in sorted(self._waiting):
            self.start(self._streams[stream_id], now)

    # In

    def handle_leader(self, assigned: Assigned, now: float) -> None:
        """The partition's leader has changed, or been elected anew: stop, and begin anew there."""
        if assigned.is_running:
            self.stop(assigned)
        else:
            self._on_moved(assigned, now)

    def handle_recreated(self, topic: str) -> None:
        """The topic's id has changed: streams that start from now on are named by the new one."""
        for stream_id, assigned in self._streams.items():
            if assigned.partition.topic == topic:
                self._ids.pop(stream_id, None)

    def handle_lost(self, link: Link) -> None:
        """Take note that a link is gone; `StreamsStopped` says what ran on it."""
        self._programmed.pop(link.id, None)

    # Details

    def _node_for(self, assigned: Assigned, now: float) -> Node | None:
        """Return the node to read a partition from."""
        if assigned.replica != NO_NODE:
            replica = self._cluster.node(assigned.replica)
            if replica is not None and now < assigned.replica_until:
                return replica
            assigned.replica = NO_NODE
        return self._cluster.leader(*assigned.partition)

    def _name(self, assigned: Assigned) -> None:
        """Tell how requests name the stream's topic, if that is news."""
        topic = assigned.partition.topic
        topic_id = self._cluster.topic_id(topic) or NO_TOPIC_ID
        if self._ids.get(assigned.stream_id) == topic_id:
            return
        self._ids[assigned.stream_id] = topic_id
        for version in FORMAT_VERSIONS:
            field = frame.fetch_topic_prefix(version, topic, topic_id)
            self._commands.append(NameStream(assigned.stream_id, version, field))

    def _program(self, link: Link) -> None:
        """Let a link carry Fetch requests in the highest version that all its streams can use.

        Version 13 names topics by id, which brokers before 2.8 do not have: with one of those in
        the cluster a topic may be without.
        """
        has_ids = all(topic_id != NO_TOPIC_ID for topic_id in self._ids.values())
        version = link.versions.pick(FetchRequest, None if has_ids else LAST_VERSION_WITH_NAMES)
        if self._programmed.get(link.id) == version:
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
