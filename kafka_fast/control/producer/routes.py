"""Over which link each queue is sent: the producer's forwarding table.

A queue is a partition's queue in the data plane. Its id is given here: ids count the partitions in
the order in which they were set up. Only queues with data ask for a route, so the client connects
only to the leaders it needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, KeysView

from kafka_fast.config import ProducerSettings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Link
from kafka_fast.control.context import Context
from kafka_fast.control.metadata.metadata import NO_LEADER, NO_TOPIC_ID
from kafka_fast.control.producer.producer_messages import (
    NameTopic,
    ProducerCommand,
    ProgramProduce,
    RestartTopic,
    RouteQueue,
    SetAvailable,
    SetPartitionCount,
    SetPartitions,
)
from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

FIRST_VERSION_WITH_IDS = 13
LAST_VERSION_WITH_NAMES = 12
LAST_VERSION_BY_TRANSACTIONS = {1: 11, 2: None}
"""The last Produce version whose records go into a transaction of such a version (KIP-890)."""
FORMAT_VERSIONS = (3, 9, FIRST_VERSION_WITH_IDS)
"""A Produce version of each form of the topic's field: string, compact string, id."""

NOWHERE = 0


class Queue(Value, frozen=False):
    """One partition's place in the table."""

    id: int
    topic: str
    partition: int
    link_id: int = NOWHERE
    awaited_node: int | None = None
    """The leader to which this queue, which has data, needs a link; `NO_LEADER`: there is none."""


class Routes:
    """The forwarding table. Control thread only."""

    def __init__(self, context: Context[ProducerSettings]) -> None:
        """Start without queues; `set_up` adds those of a topic.

        Args:
            context: the producer's.
        """
        self._cluster = context.cluster
        self._links = context.links
        self._client_id = context.client_id
        self._acks = context.settings.acks
        self._transactional_id = context.settings.transactional_id
        self._last_version: int | None = None
        self.may_send: Callable[[TopicPartition], bool] = lambda partition: True
        """Tells whether records may go to a partition now; `release_added` if that changes."""
        if self._transactional_id is not None:
            self._last_version = LAST_VERSION_BY_TRANSACTIONS[1]
        self._timeout_ms = context.settings.request_timeout_ms
        self._queues: list[Queue] = []
        self._by_topic: dict[str, list[Queue]] = {}
        self._counts: dict[str, int] = {}  # partitions to which records may go, by topic
        self._waiting: dict[int, dict[int, Queue]] = {}  # by awaited node, then by id
        self._over: dict[int, dict[int, Queue]] = {}  # link id -> its queues, by id
        self._ids: dict[str, bytes] = {}  # topic ids as the data plane knows them
        self._nameless: set[str] = set()  # topics without an id
        self._versions: dict[int, int] = {}  # link id -> version of its Produce requests
        self._commands: deque[ProducerCommand] = deque()

    # ---- getters ----

    def queue(self, queue_id: int) -> Queue:
        """Return a queue by its id."""
        return self._queues[queue_id]

    def queue_of(self, topic: str, partition: int) -> Queue | None:
        """Return a partition's queue, or None if it was never set up."""
        queues = self._by_topic.get(topic, ())
        return queues[partition] if 0 <= partition < len(queues) else None

    def queues_of(self, topic: str) -> tuple[Queue, ...]:
        """Return the queues of a topic, those of partitions that it has lost included."""
        return tuple(self._by_topic.get(topic, ()))

    @property
    def topics(self) -> KeysView[str]:
        """The topics that were set up."""
        return self._by_topic.keys()

    @property
    def queue_ids(self) -> range:
        """The ids of all queues."""
        return range(len(self._queues))

    def wanted_nodes(self) -> list[int]:
        """Return the ids of the nodes to which queues with data need a link."""
        return [node_id for node_id in self._waiting if node_id != NO_LEADER]

    def without_link(self) -> Iterator[TopicPartition]:
        """Yield the partitions whose records wait for a link to their leader."""
        for queues in self._waiting.values():
            yield from (TopicPartition(queue.topic, queue.partition) for queue in queues.values())

    def without_leader(self) -> list[Queue]:
        """Return the queues whose records wait for a leader."""
        return list(self._waiting.get(NO_LEADER, {}).values())

    def with_data(self) -> Iterator[TopicPartition]:
        """Yield the partitions that have, or once had, records to send."""
        yield from self.without_link()
        for queues in self._over.values():
            yield from (TopicPartition(queue.topic, queue.partition) for queue in queues.values())

    def poll_command(self) -> ProducerCommand | None:
        """Return the next thing to do; None if there is nothing."""
        return self._commands.popleft() if self._commands else None

    # ---- in ----

    def set_up(self, topic: str) -> list[tuple[Link, UnsupportedVersionError]]:
        """Bring the topic's queues, names and routes in line with the cluster's metadata.

        Returns:
            The links that can no longer carry Produce requests, and why. Close them.
        """
        count = self._cluster.partition_count(topic) or 0
        queues = self._by_topic.setdefault(topic, [])
        unusable = self._name(topic)
        self._resize(topic, queues, count)
        for queue in queues:
            available = self._cluster.leader(topic, queue.partition) is not None
            self._commands.append(SetAvailable(queue.id, available))
            self._follow_leader(queue)
        return unusable

    def is_another(self, topic: str) -> bool:
        """Tell whether the topic was deleted and created again since it was set up last."""
        before, now = self._ids.get(topic), self._cluster.topic_id(topic)
        return before not in (None, NO_TOPIC_ID) and now is not None and before != now

    def restart(self, topic: str) -> None:
        """Let the queues of a topic begin with empty logs; `set_up` follows."""
        if topic in self._by_topic:
            self._commands.append(RestartTopic(topic))

    def _resize(self, topic: str, queues: list[Queue], count: int) -> None:
        """Make the queues that are missing. Those of partitions that are gone stay, unused.

        Records wait in them, and the partitions may return. A topic without any partition is not
        there yet, so the old number holds.
        """
        first, first_id = len(queues), len(self._queues)
        if count > first:
            for partition in range(first, count):
                queue = Queue(len(self._queues), topic, partition)
                queues.append(queue)
                self._queues.append(queue)
            queue_ids = range(first_id, len(self._queues))
            self._commands.append(SetPartitions(topic, first, queue_ids))
        elif 0 < count != self._counts[topic]:
            self._commands.append(SetPartitionCount(topic, count))
        self._counts[topic] = count or self._counts.get(topic, 0)

    def _name(self, topic: str) -> list[tuple[Link, UnsupportedVersionError]]:
        """Tell the data plane how requests name the topic, if that has changed.

        Requests with ids must not be built while a topic has no id. So links are programmed for
        names before the topic loses its id, and for ids after it has got one.
        """
        topic_id = self._cluster.topic_id(topic) or NO_TOPIC_ID
        if self._ids.get(topic) == topic_id:
            return []
        self._ids[topic] = topic_id
        names = [
            NameTopic(topic, version, frame.produce_topic_prefix(version, topic, topic_id))
            for version in FORMAT_VERSIONS
        ]
        if topic_id == NO_TOPIC_ID:
            self._nameless.add(topic)
            unusable = self._reprogram()
            self._commands.extend(names)
        else:
            self._nameless.discard(topic)
            self._commands.extend(names)
            unusable = self._reprogram()
        return unusable

    def _reprogram(self) -> list[tuple[Link, UnsupportedVersionError]]:
        """Program the links that now need another version; return those without such a version."""
        unusable = []
        for link in self._links.ready:
            if link.id in self._versions:
                try:
                    self.program(link)
                except UnsupportedVersionError as error:
                    unusable.append((link, error))
        return unusable

    def program(self, link: Link) -> None:
        """Let a link carry Produce requests, in the highest version that can be used now.

        Version 13 names topics by id. Brokers before 2.8 have no ids.

        Raises:
            UnsupportedVersionError: the node and this client share no version of Produce.
        """
        limit = LAST_VERSION_WITH_NAMES if self._nameless else None
        if self._last_version is not None:
            limit = self._last_version
        version = link.versions.pick(ProduceRequest, limit)
        if self._versions.get(link.id) == version:
            return
        self._versions[link.id] = version
        prefix = frame.produce_prefix(
            version, self._client_id, self._transactional_id, self._acks, self._timeout_ms
        )
        self._commands.append(ProgramProduce(link.id, version, prefix))

    def route_queue(self, queue_id: int) -> None:
        """Send a queue with data over the link to its leader, or have it wait for that link."""
        queue = self._queues[queue_id]
        self._put(queue, NOWHERE)
        self._await_leader(queue)
        self.route(queue)

    def route(self, queue: Queue) -> None:
        """Send a queue over the link to its leader, if there is one by now and it may be sent."""
        if not self.may_send(TopicPartition(queue.topic, queue.partition)):
            return
        link = self._link_to_leader(queue)
        if link is not None and link.id != queue.link_id:
            self._put(queue, link.id)
            self._await_nothing(queue)
            self._commands.append(RouteQueue(queue.id, link.id))

    def _follow_leader(self, queue: Queue) -> None:
        """Route a queue with data to its leader, or hold it until there is a link."""
        if queue.link_id == NOWHERE and queue.awaited_node is None:
            return
        if self._link_to_leader(queue) is not None:
            self.route(queue)
            return
        if queue.link_id != NOWHERE:
            self._put(queue, NOWHERE)
            self._commands.append(RouteQueue(queue.id, NOWHERE))
        self._await_leader(queue)

    def release(self, queue: Queue) -> None:
        """Forget that a queue has data: its records fail. It asks again if it gets more."""
        self._await_nothing(queue)
        self._commands.append(RouteQueue(queue.id, NOWHERE))

    # ---- transactions ----

    def use_transactions(self, version: int) -> list[tuple[Link, UnsupportedVersionError]]:
        """Send records by the rules of this version of transactions; returns as `set_up` does."""
        self._last_version = LAST_VERSION_BY_TRANSACTIONS[version]
        return self._reprogram()

    def release_added(self, partition: TopicPartition) -> None:
        """Send a partition's records: it belongs to the transaction now."""
        queue = self.queue_of(*partition)
        if queue is not None:
            self.route(queue)

    def hold_added(self, partitions: Iterable[TopicPartition]) -> None:
        """Send no records to these partitions: they do not belong to the next transaction.

        A queue that waits for its partition to be added may ask anew, too.
        """
        for partition in partitions:
            queue = self.queue_of(*partition)
            if queue is not None:
                self._put(queue, NOWHERE)
                self.release(queue)

    def _link_to_leader(self, queue: Queue) -> Link | None:
        leader = self._cluster.leader(queue.topic, queue.partition)
        return None if leader is None else self._links.link_to(ConnectionKey(Role.DATA, leader.id))

    def _await_leader(self, queue: Queue) -> None:
        """Note that a queue needs a link to whoever leads its partition now."""
        self._await_nothing(queue)
        leader = self._cluster.leader(queue.topic, queue.partition)
        queue.awaited_node = NO_LEADER if leader is None else leader.id
        self._waiting.setdefault(queue.awaited_node, {})[queue.id] = queue

    def _await_nothing(self, queue: Queue) -> None:
        """Note that a queue has a link."""
        if queue.awaited_node is not None:
            waiting = self._waiting[queue.awaited_node]
            del waiting[queue.id]
            if not waiting:
                del self._waiting[queue.awaited_node]
            queue.awaited_node = None

    def _put(self, queue: Queue, link_id: int) -> None:
        """Note over which link a queue is sent."""
        if queue.link_id != NOWHERE:
            self._over[queue.link_id].pop(queue.id)
        if link_id != NOWHERE:
            self._over.setdefault(link_id, {})[queue.id] = queue
        queue.link_id = link_id

    def handle_ready(self, link: Link) -> None:
        """Route the queues that waited for this link."""
        for queue in list(self._waiting.get(link.key.node_id, {}).values()):
            self.route(queue)

    def handle_lost(self, link: Link) -> None:
        """Forget the routes over a link that is gone, as the data plane has done already."""
        self._versions.pop(link.id, None)
        for queue in self._over.pop(link.id, {}).values():
            queue.link_id = NOWHERE
