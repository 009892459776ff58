"""What a Metadata answer says, as immutable records, and how it is merged with what was known.

The records are replaced, never changed, so any thread may read one it holds. The merge's rules:

* A leader epoch below one that was seen before is outdated, and leaves the partition as it was. An
  equal or higher epoch is taken. Brokers before 2.4 (Metadata v8 and lower) may report outdated
  epochs, so theirs are not compared.
* If a topic's id changes, the topic was deleted and recreated: nothing known of the old one holds.
* A topic cannot lose partitions while it keeps its id, so a shorter list is outdated.
* A broker that cannot be addressed (no valid host, port out of range) is left out.

`cluster.py` is the only caller of the merge; everything else reads the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from kafka_fast.errors import ErrorCode, KafkaError
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.types import PartitionInfo, TopicPartition
from kafka_fast.values import Value, field, replace

__all__ = [
    "ClusterChanges",
    "Endpoint",
    "LeaderChange",
    "LeaderHint",
    "Node",
    "Partition",
    "PartitionCountChange",
    "Topic",
    "TopicRecreated",
]

NO_LEADER = -1
NO_EPOCH = -1
NO_TOPIC_ID = bytes(16)
FIRST_RELIABLE_EPOCH_VERSION = 9
"""In answers below this Metadata version, leader epochs may be outdated."""

GETS_ROUND = 3.0
"""Seconds for which brokers may deny a topic that was just created. They hear of it one after the
other, and a broker that creates a topic on a request denies it in the answer to that request."""


class Endpoint(Protocol):
    """A broker as Metadata, Produce and Fetch answers describe it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Node(Value):
    """A broker and the address it advertises."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port

    @property
    def name(self) -> str:
        """The node's name in errors."""
        return f"node {self.id}"

    def __str__(self) -> str:
        return f"{self.name} at {self.host}:{self.port}"


class Partition(NamedTuple):
    """One partition as the brokers described it last; a tuple, as a client may know thousands."""

    id: int
    leader_id: int = NO_LEADER
    """The leader's node id, or -1; ask `Cluster.leader` for a leader that can be reached."""
    leader_epoch: int = NO_EPOCH
    """The epoch of this leader, or -1 where the broker is too old to be trusted with it."""
    newest_epoch: int = NO_EPOCH
    """The highest leader epoch ever seen; it never falls while the topic keeps its id."""
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    error: int = 0


class Topic(Value):
    """One topic; `partitions[i].id == i`."""

    name: str
    topic_id: bytes | None
    """The 16 bytes of its id; None from a broker before 2.8."""
    partitions: tuple[Partition, ...]
    is_internal: bool = False


class ListedTopic(NamedTuple):
    """One of all existing topics: what the pattern of a subscription is matched against."""

    name: str
    is_internal: bool


class LeaderChange(Value):
    """A partition got another leader, lost it, or its leader was elected again."""

    topic: str
    partition: int
    old_leader_id: int
    """-1: the partition had no leader that could be reached."""
    leader_id: int
    """-1: the partition has no such leader now."""
    leader_epoch: int


class PartitionCountChange(Value):
    """A topic has more partitions, or fewer; only a topic without an id can have fewer."""

    topic: str
    old_count: int
    count: int


class TopicRecreated(Value):
    """A topic was deleted and recreated: offsets and sequences of the old topic are void.

    So they are if another cluster took the place of the first one.
    """

    topic: str
    old_topic_id: bytes
    """`NO_TOPIC_ID`: it was not known. So for the new id; both only for another cluster."""
    topic_id: bytes


class LeaderHint(NamedTuple):
    """A leader that a Produce or Fetch answer names (KIP-951)."""

    topic: str | bytes
    """Name or topic id."""
    partition: int
    leader_id: int
    leader_epoch: int


class ClusterChanges(Value, frozen=False):
    """What one answer, or a part of it, changed in the cluster. False if it changed nothing."""

    answered: list[str] = field(factory=list)
    """The topics that the answer was about, changed or not."""
    new_topics: list[str] = field(factory=list)
    removed_topics: list[str] = field(factory=list)
    """The broker knows these no more. What is known of them is kept, as they may return."""
    returned_topics: list[str] = field(factory=list)
    recreated_topics: list[TopicRecreated] = field(factory=list)
    identified_topics: list[str] = field(factory=list)
    """Topics whose id is known now, because a broker was upgraded."""
    expired_topics: list[str] = field(factory=list)
    """Not used for metadata.max.idle.ms, and forgotten."""
    topic_errors: dict[str, int] = field(factory=dict)
    """Topics whose error changed: name → the new code (0: no error any more)."""
    resized: list[PartitionCountChange] = field(factory=list)
    leaders: dict[tuple[str, int], LeaderChange] = field(factory=dict)
    """By (topic, partition), of topics known before. Partitions of new and recreated topics, and
    added partitions, are left out: read all of those from the cluster."""
    nodes_added: list[Node] = field(factory=list)
    nodes_removed: list[Node] = field(factory=list)
    nodes_readdressed: list[tuple[Node, Node]] = field(factory=list)
    """(before, after): the same id at another host or port, so its connection leads elsewhere."""
    cluster_replaced: bool = False
    """Bootstrap servers lead to another cluster; everything known of the old one is void.

    Its topics come in `recreated_topics`, as soon as an answer has them.
    """
    foreign_cluster_id: str | None = None
    """The cluster that an answer was about, which was dropped."""
    rebootstrap: bool = False
    """Forget the nodes and begin again at bootstrap.servers (KIP-899, KIP-1102)."""
    failure: KafkaError | None = None
    """Why the answer was not used."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self._fields if name != "answered")

    def note_leader(self, change: LeaderChange) -> None:
        """Note a change of leader. Two changes of one partition become one."""
        key = (change.topic, change.partition)
        earlier = self.leaders.get(key)
        if earlier is not None:
            change = replace(change, old_leader_id=earlier.old_leader_id)
        self.leaders[key] = change

    def forget_leaders(self, topic: Topic, first: int = 0) -> None:
        """Drop the changes of leaders of a topic's partitions from `first` on.

        These partitions are gone, or all of them are read from the cluster anyway.
        """
        for partition in topic.partitions[first:] if self.leaders else ():
            self.leaders.pop((topic.name, partition.id), None)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions' numbers by topic, in the order in which they come."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def read_nodes(brokers: Iterable[Endpoint]) -> dict[int, Node]:
    """Return the brokers that can be addressed, by id."""
    nodes: dict[int, Node] = {}
    for broker in brokers:
        if broker.node_id >= 0 and is_address(broker.host, broker.port):
            nodes.setdefault(
                broker.node_id, Node(broker.node_id, broker.host, broker.port, broker.rack)
            )
    return nodes


def is_address(host: str, port: int) -> bool:
    """Tell whether what a broker names as its address can be one."""
    return host.isprintable() and host.split() == [host] and 0 < port < 65536


def known_topic_id(topic_id: bytes) -> bytes | None:
    """Return a topic's id, or None for the zero id of a broker that has none."""
    return None if topic_id == NO_TOPIC_ID else topic_id


def partition_infos(topic: Topic | None) -> list[PartitionInfo]:
    """Return a topic's partitions as the user gets them; none if the topic is not known."""
    if topic is None:
        return []
    from base64 import urlsafe_b64encode  # here: only who asks for partitions sees topic ids

    raw = topic.topic_id
    topic_id = None if raw is None else urlsafe_b64encode(raw).decode().rstrip("=")
    return [
        PartitionInfo(
            topic.name,
            partition.id,
            partition.leader_id,
            partition.leader_epoch,
            partition.replicas,
            partition.isr,
            partition.offline_replicas,
            topic_id,
        )
        for partition in topic.partitions
    ]


def merge_topic(
    name: str, known: Topic | None, reported: MetadataResponseTopic, version: int
) -> Topic:
    """Return what is known of a topic after a broker reported it without an error.

    Args:
        name: of the topic.
        known: what was known; None for a new, recreated or returned-without-id topic.
        reported: the topic in the answer.
        version: of the Metadata answer.
    """
    topic_id = known_topic_id(reported.topic_id)
    before: Sequence[Partition] = ()
    count = len(reported.partitions)
    if known is not None:
        before = known.partitions
        topic_id = topic_id or known.topic_id
        if known.topic_id is not None:
            count = max(count, len(before))
    by_index: dict[int, MetadataResponsePartition] = {}
    for partition in reported.partitions:
        by_index.setdefault(partition.partition_index, partition)
    partitions = tuple(
        _merge_partition(
            index, before[index] if index < len(before) else None, by_index.get(index), version
        )
        for index in range(count)
    )
    return Topic(name, topic_id, partitions, reported.is_internal)


def _merge_partition(
    index: int, known: Partition | None, reported: MetadataResponsePartition | None, version: int
) -> Partition:
    """Return the newer of two descriptions of a partition."""
    if reported is None:
        return known or Partition(index, error=ErrorCode.LEADER_NOT_AVAILABLE)
    epoch = reported.leader_epoch if version >= FIRST_RELIABLE_EPOCH_VERSION else NO_EPOCH
    newest = NO_EPOCH if known is None else known.newest_epoch
    if known is not None and NO_EPOCH < epoch < newest:
        return known
    return Partition(
        id=index,
        leader_id=reported.leader_id,
        leader_epoch=epoch,
        newest_epoch=max(epoch, newest),
        replicas=tuple(reported.replica_nodes),
        isr=tuple(reported.isr_nodes),
        offline_replicas=tuple(reported.offline_replicas),
        error=reported.error_code,
    )


def with_leaders(topic: Topic, hints: Iterable[LeaderHint]) -> Topic:
    """Return `topic` with other leaders for some partitions."""
    partitions = list(topic.partitions)
    for hint in hints:
        partitions[hint.partition] = partitions[hint.partition]._replace(
            leader_id=hint.leader_id,
            leader_epoch=hint.leader_epoch,
            newest_epoch=hint.leader_epoch,
            error=0,
        )
    return replace(topic, partitions=tuple(partitions))
