"""Topics and their partitions, as an admin client creates and describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka_fast.control.admin.types.acls import AclOperation
from kafka_fast.values import Value

BROKER_DEFAULT = -1
"""The number of partitions or replicas that the cluster's configuration has for new topics."""


class NewTopic(Value):
    """A topic to create."""

    name: str
    num_partitions: int = BROKER_DEFAULT
    """-1: num.partitions of the cluster. Needs Kafka 2.4."""
    replication_factor: int = BROKER_DEFAULT
    """-1: default.replication.factor of the cluster. Needs Kafka 2.4."""
    assignments: Mapping[int, Sequence[int]] | None = None
    """The brokers of each partition, the preferred leader first, in place of the two numbers."""
    configs: Mapping[str, str | None] = {}
    """The topic's configuration, by name."""


class CreatedTopic(Value):
    """A topic that was created, or would be."""

    topic_id: str | None
    """None: the brokers are older than 2.8, or nothing was created (`validate_only`)."""
    partition_count: int | None
    """None: the brokers are older than 2.4, or this client may not see it."""
    replication_factor: int | None
    """None as above."""
    configs: Mapping[str, str | None] | None
    """All of the topic's configuration; None as above."""


class NewPartitions(Value):
    """More partitions for a topic."""

    total_count: int
    """How many the topic is to have."""
    assignments: Sequence[Sequence[int]] | None = None
    """The brokers of each new partition, the preferred leader first; None: the cluster chooses."""


class TopicListing(Value):
    """A topic in the list of all topics."""

    name: str
    topic_id: str | None
    """None: the brokers are older than 2.8."""
    is_internal: bool
    """Brokers keep it for themselves, as __consumer_offsets."""


class TopicPartitionInfo(NamedTuple):
    """A partition of a described topic.

    A named tuple: a cluster may have a hundred thousand of them, and no other object with names is
    made as quickly.
    """

    partition: int
    leader: int | None
    """Id of the broker that leads it; None while there is no leader."""
    leader_epoch: int
    """The leader epoch, which counts the partition's leaders; -1 if the broker does not say."""
    replicas: tuple[int, ...]
    """Ids of the brokers with a replica, the preferred leader first."""
    isr: tuple[int, ...]
    """Ids of the brokers whose replica is in sync."""
    offline_replicas: tuple[int, ...]
    """Ids of the brokers whose replica is not available."""
    elr: tuple[int, ...] | None = None
    """Ids of the brokers that may lead it without losing records (KIP-966); None: not told."""
    last_known_elr: tuple[int, ...] | None = None
    """The same, of the time before all of them were lost; None: not told."""


class TopicDescription(Value):
    """A topic with its partitions."""

    name: str
    topic_id: str | None
    """None: the brokers are older than 2.8."""
    is_internal: bool
    """Brokers keep it for themselves, as __consumer_offsets."""
    partitions: tuple[TopicPartitionInfo, ...]
    """In the order of their numbers."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What this client may do with the topic; None: not asked for."""
