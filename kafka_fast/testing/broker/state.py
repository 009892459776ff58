"""What all brokers of the cluster agree on: topics, leaders, live nodes, producer ids.

Stands in for the controller's metadata log. Every replica shares the leader's log, so a change of
leader loses nothing; what a real cluster may lose is left to real-broker tests.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_fast.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidTopicException,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.groups.classic import ClassicGroup
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.offsets import GroupOffsets
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.partitions.cluster_topics import (
    NO_LEADER,
    Partition,
    Topic,
    TopicConfig,
    check_topic_name,
    colliding_name,
)
from kafka_fast.testing.broker.partitions.log import PartitionLog
from kafka_fast.testing.broker.security import Security, SecurityState
from kafka_fast.testing.broker.transactions.settings import NEWEST_VERSION, TransactionSettings
from kafka_fast.testing.broker.transactions.transaction import Transaction

MAX_PARTITIONS = 10_000  # of one topic; Kafka has no such limit, a test broker's memory has
FIRST_PRODUCER_ID = 1000
UUID_LEN = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fixed when a cluster is made."""

    partitions: int = 1
    """Of a topic that does not say."""
    replication_factor: int = 1
    """Of a topic that does not say."""
    auto_create: bool = True
    """Topics come into being when a client asks for their metadata."""
    topic_config: Mapping[str, str] = field(default_factory=dict)
    """Over Kafka's defaults."""
    unix_ms_at_zero: int = 0
    """Wall clock, Unix ms, when `now` is 0.0."""
    max_frame_size: int = 100 * 1024 * 1024
    """Kafka's socket.request.max.bytes."""
    max_connections: int = 1000
    """Of one broker."""
    read_ahead: int = 4 * 1024 * 1024
    """Bytes of frames that wait, before reading stops."""
    fetch_sessions: int = 1000
    """Of one broker; 0: fetches are always full."""
    first_epoch: int = 0
    """Of new producer ids: Kafka's is 0, clients wear theirs out by and by."""
    closest_replica: bool = False
    """Consumers are sent to a replica in their rack (KIP-392)."""
    groups: GroupSettings = field(default_factory=GroupSettings)
    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    security: Security = field(default_factory=lambda: Security(mechanisms=()))


@dataclass(slots=True)
class Node:
    """One broker as the others see it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    alive: bool = True
    paused: bool = False
    """It stands still: other brokers get no answer either."""

    @property
    def serves(self) -> bool:
        """Tell whether another broker that asks gets an answer."""
        return self.alive and not self.paused


class ClusterState:
    """Topics, leaders and nodes, with the rules that change them."""

    def __init__(
        self, nodes: Iterable[Node], settings: Settings, random_source: random.Random
    ) -> None:
        """Make a cluster without topics; ids are drawn from `random_source`."""
        self.settings = settings
        self.nodes = {node.node_id: node for node in nodes}
        if not self.nodes:
            raise ValueError("a cluster needs at least one node")
        self.cluster_id = "embedded-" + random_source.randbytes(8).hex()
        self.topics: dict[str, Topic] = {}
        self.changes = 0  # grows with all that a waiting request may wait for
        self.leader_changes = 0  # grows with every change of topics and leaders
        self.groups: dict[str, ClassicGroup | ConsumerGroup] = {}  # by group id
        self.offsets: dict[str, GroupOffsets] = {}  # by group id
        self.transactions: dict[str, Transaction] = {}  # by transactional id
        self.transaction_version = settings.transactions.version  # the feature, finalized
        self.features_epoch = 0  # grows with every change of features
        self._random = random_source
        self.topic_names: dict[bytes, str] = {}  # by topic id
        self._next_producer_id = FIRST_PRODUCER_ID
        self.security = SecurityState(settings.security, random_source)

    # ---- getters ----

    @property
    def live_nodes(self) -> list[Node]:
        """Return the nodes that run, by id."""
        return [node for _, node in sorted(self.nodes.items()) if node.alive]

    @property
    def controller_id(self) -> int:
        """Return the node that stands as controller in Metadata answers, -1 if none runs."""
        return self.live_nodes[0].node_id if self.live_nodes else NO_LEADER

    def unix_ms(self, now: float) -> int:
        """Return the wall clock at `now`, in Unix milliseconds."""
        return self.settings.unix_ms_at_zero + int(now * 1000)

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition.

        Raises:
            UnknownTopicOrPartition: there is none.
        """
        topic_state = self.topics.get(topic)
        if topic_state is None or not 0 <= index < len(topic_state.partitions):
            raise UnknownTopicOrPartition(f"no partition {index} of topic {topic!r}")
        return topic_state.partitions[index]

    def topic_by_id(self, topic_id: bytes) -> Topic:
        """Return a topic.

        Raises:
            UnknownTopicId: there is none.
        """
        if topic_id not in self.topic_names:
            raise UnknownTopicId(f"no topic with id {topic_id.hex()}")
        return self.topics[self.topic_names[topic_id]]

    # ---- topics ----

    def check_new_topic(self, name: str) -> None:
        """Refuse a name that is not legal, taken, or collides with one in metric names.

        Raises:
            InvalidTopicException, TopicAlreadyExists
        """
        if name in self.topics:
            raise TopicAlreadyExists(f"topic {name!r} exists already")
        check_topic_name(name)
        for other in self.topics:
            if colliding_name(other) == colliding_name(name):
                raise InvalidTopicException(f"{name!r} collides with the topic {other!r}")

    def plan_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignment: Mapping[int, Sequence[int]] | None = None,
        config: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """Return the topic as `add_topic` would add it; nothing changes yet.

        Args:
            name: the topic's name.
            partitions: their number; -1 takes the cluster's default.
            replication_factor: replicas of each; -1 takes the cluster's default.
            assignment: partition to node ids, instead of the two counts.
            config: topic settings.

        Raises:
            BrokerError: the answer that a client gets.
        """
        self.check_new_topic(name)
        topic_config = TopicConfig.from_texts({**self.settings.topic_config, **(config or {})})
        if assignment:
            replicas = self._given_replicas(assignment)
        else:
            replicas = self._chosen_replicas(partitions, replication_factor)
        topic_id = self._random.randbytes(UUID_LEN)
        topic = Topic(name, topic_id, topic_config)
        for node_ids in replicas:
            self._add_partition(topic, node_ids)
        return topic

    def add_topic(self, topic: Topic) -> None:
        """Make a planned topic real."""
        self.topics[topic.name] = topic
        self.topic_names[topic.topic_id] = topic.name
        self.changes += 1
        self.leader_changes += 1

    def plan_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> list[list[int]]:
        """Return the nodes of the partitions that a topic lacks to have `count`; nothing changes.

        Args:
            name: the topic's name.
            count: of its partitions, with those that it has.
            assignments: the nodes of each new one; None: as many as the first partition has.

        Raises:
            InvalidPartitions: it has as many already.
            InvalidReplicaAssignment: the assignments do not fit.
            UnknownTopicOrPartition: there is no such topic.
        """
        factor = len(self.partition(name, 0).replicas)
        present = len(self.topics[name].partitions)
        if count <= present:
            raise InvalidPartitions(f"{name!r} has {present} partitions already")
        if assignments is None:
            return self._chosen_replicas(count, factor)[present:]
        if len(assignments) != count - present:
            raise InvalidReplicaAssignment(f"{len(assignments)} assignments for {count - present}")
        replicas = self._given_replicas(dict(enumerate(assignments)))
        if len(replicas[0]) != factor:
            raise InvalidReplicaAssignment(f"{len(replicas[0])} replicas, and not {factor}")
        return replicas

    def add_planned_partitions(self, name: str, replicas: Iterable[list[int]]) -> None:
        """Let a topic have these partitions more."""
        topic = self.topics[name]
        for node_ids in replicas:
            self._add_partition(topic, node_ids)
        self.changes += 1
        self.leader_changes += 1

    def set_topic_config(
        self, topic: Topic, texts: Mapping[str, str | None], *, validate_only: bool
    ) -> None:
        """Give a topic other settings, all of them.

        Raises:
            InvalidConfig: Kafka does not know a setting, or does not take its value.
        """
        config = TopicConfig.from_texts(texts)
        if validate_only:
            return
        topic.config = config
        for partition in topic.partitions:
            partition.log.retention_bytes = config.retention_bytes
        self.changes += 1

    def delete_topic(self, name: str) -> None:
        """Forget a topic and its records.

        Raises:
            UnknownTopicOrPartition: there is none.
        """
        topic = self.topics.pop(name, None)
        if topic is None:
            raise UnknownTopicOrPartition(f"no topic {name!r}")
        del self.topic_names[topic.topic_id]
        for offsets in self.offsets.values():
            offsets.forget_topic(name)
        self.changes += 1
        self.leader_changes += 1

    def _add_partition(self, topic: Topic, node_ids: list[int]) -> None:
        isr = [node_id for node_id in node_ids if self.nodes[node_id].alive]
        leader = isr[0] if isr else NO_LEADER
        log = PartitionLog(topic.config.retention_bytes)
        log.begin_epoch(0)
        index = len(topic.partitions)
        topic.partitions.append(Partition(topic.name, index, node_ids, isr, leader, 0, log))

    def _given_replicas(self, assignment: Mapping[int, Sequence[int]]) -> list[list[int]]:
        if sorted(assignment) != list(range(len(assignment))):
            raise InvalidReplicaAssignment("partitions must be numbered from 0 without gaps")
        factor = len(assignment[0])
        for node_ids in assignment.values():
            if len(set(node_ids)) != len(node_ids) or not node_ids:
                raise InvalidReplicaAssignment("each partition needs different nodes")
            if len(node_ids) != factor:
                raise InvalidReplicaAssignment("partitions differ in their number of replicas")
            unknown = [node_id for node_id in node_ids if node_id not in self.nodes]
            if unknown:
                raise InvalidReplicaAssignment(f"no node {unknown[0]}")
        return [list(assignment[index]) for index in range(len(assignment))]

    def _chosen_replicas(self, partitions: int, replication_factor: int) -> list[list[int]]:
        count = self.settings.partitions if partitions == -1 else partitions
        factor = self.settings.replication_factor
        factor = factor if replication_factor == -1 else replication_factor
        if not 1 <= count <= MAX_PARTITIONS:
            raise InvalidPartitions(f"{count} partitions; 1 to {MAX_PARTITIONS} are possible")
        live = [node.node_id for node in self.live_nodes]
        if not 1 <= factor <= len(live):
            raise InvalidReplicationFactor(f"{factor} replicas on {len(live)} live brokers")
        return [[live[(i + j) % len(live)] for j in range(factor)] for i in range(count)]

    # ---- features ----

    def set_transaction_version(self, version: int) -> None:
        """Let producers and brokers speak another version of transactions, from now on."""
        if not 0 <= version <= NEWEST_VERSION:
            raise ValueError(f"transaction.version is 0 to {NEWEST_VERSION}, not {version}")
        self.transaction_version = version
        self.features_epoch += 1
        self.changes += 1

    # ---- leaders and nodes ----

    def move_leader(self, partition: Partition, node_id: int) -> None:
        """Make a live node the leader; one that is no replica replaces the old leader as one."""
        if not self.nodes[node_id].alive:
            raise ValueError(f"node {node_id} does not run")
        if node_id not in partition.replicas:
            old = partition.leader if partition.leader in partition.replicas else None
            partition.replicas[partition.replicas.index(old) if old is not None else 0] = node_id
        if node_id not in partition.isr:
            partition.isr.append(node_id)
        partition.isr = [replica for replica in partition.isr if replica in partition.replicas]
        self._set_leader(partition, node_id)

    def node_died(self, node_id: int) -> None:
        """Take the node out of the cluster; its partitions go to the next replica in sync."""
        self.nodes[node_id].alive = False
        for partition in self._all_partitions():
            if node_id in partition.isr and len(partition.isr) > 1:
                partition.isr.remove(node_id)  # the last one in sync stays, as in Kafka
            if partition.leader == node_id:
                heirs = [replica for replica in partition.isr if self.nodes[replica].alive]
                self._set_leader(partition, heirs[0] if heirs else NO_LEADER)
        self.changes += 1

    def node_returned(self, node_id: int) -> None:
        """Take the node back; it is in sync at once and leads what nobody leads."""
        self.nodes[node_id].alive = True
        for partition in self._all_partitions():
            if node_id not in partition.replicas:
                continue
            if partition.leader == NO_LEADER and node_id in partition.isr:
                self._set_leader(partition, node_id)
            if partition.leader != NO_LEADER and node_id not in partition.isr:
                partition.isr.append(node_id)
        self.changes += 1

    def clear_lags(self) -> None:
        """Let every replica have the whole log again."""
        for partition in self._all_partitions():
            partition.replica_ends.clear()
        self.changes += 1

    def _all_partitions(self) -> Iterable[Partition]:
        return (partition for topic in self.topics.values() for partition in topic.partitions)

    def _set_leader(self, partition: Partition, node_id: int) -> None:
        partition.leader = node_id
        partition.leader_epoch += 1
        if node_id != NO_LEADER:
            partition.log.begin_epoch(partition.leader_epoch)
        self.changes += 1
        self.leader_changes += 1

    # ---- ids ----

    def new_uuid(self) -> str:
        """Return a random id, as text."""
        return str(uuid.UUID(bytes=self._random.randbytes(UUID_LEN), version=4))

    def new_producer_id(self) -> int:
        """Return a producer id that was never given before."""
        self._next_producer_id += 1
        return self._next_producer_id - 1
