"""Throttles of replication: set before replicas move, removed when none is moving any more.

These settings are a throttle:

    brokers   leader.replication.throttled.rate, follower.replication.throttled.rate
    topics    leader.replication.throttled.replicas    whose data is read: PARTITION:BROKER,...
          follower.replication.throttled.replicas  who gets it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from kafka_fast.errors import KafkaError, UnknownTopicOrPartition
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import PartitionReassignment

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"

_SET_HERE = (ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG)


class Move(Value):
    """A partition that is to move."""

    before: tuple[int, ...]
    """Ids of the brokers that have it."""
    after: tuple[int, ...]

    @property
    def arriving(self) -> list[int]:
        """Ids of the brokers that get a replica."""
        return [broker for broker in self.after if broker not in self.before]


def settled(move: PartitionReassignment) -> tuple[int, ...]:
    """Return the brokers that had a partition before the move that is under way."""
    return tuple(broker for broker in move.replicas if broker not in move.adding_replicas)


def set_throttles(
    admin: Admin, moves: Mapping[TopicPartition, Move], rate: int
) -> dict[ConfigResource, KafkaError]:
    """Limit what the moves may take of each broker's network.

    Args:
        admin: the client.
        moves: what is to move.
        rate: bytes a second, of each broker that has or gets a replica and is up: one that is down
            sends nothing, and cannot be asked.

    Returns:
        What could not be set.
    """
    up = {node.id for node in admin.describe_cluster().nodes}
    brokers = {broker for move in moves.values() for broker in (*move.before, *move.after)} & up
    changes = {
        _broker(broker): [AlterConfigOp(name, str(rate)) for name in RATES]
        for broker in sorted(brokers)
    }
    for topic in dict.fromkeys(partition.topic for partition in moves):
        of_topic = {one.partition: moves[one] for one in moves if one.topic == topic}
        leaders = [(number, b) for number, move in of_topic.items() for b in move.before]
        followers = [(number, b) for number, move in of_topic.items() for b in move.arriving]
        changes[_topic(topic)] = [
            AlterConfigOp(name, ",".join(f"{number}:{broker}" for number, broker in replicas))
            for name, replicas in ((LEADERS, leaders), (FOLLOWERS, followers))
            if replicas
        ]
    return admin.incremental_alter_configs(changes).errors


def remove_throttles(
    admin: Admin, topics: Iterable[str]
) -> tuple[list[ConfigResource], dict[ConfigResource, KafkaError]]:
    """Remove the throttles of topics and of all brokers, as far as there are any.

    Args:
        admin: the client.
        topics: the topics whose partitions have moved.

    Returns:
        Whose throttles were removed, and whose could not be.
    """
    brokers = [_broker(node.id) for node in admin.describe_cluster().nodes]
    described = admin.describe_configs([*brokers, *map(_topic, dict.fromkeys(topics))])
    changes = {}
    for resource, entries in described.succeeded.items():
        names = [
            name
            for name in (*RATES, LEADERS, FOLLOWERS)
            if name in entries and entries[name].source in _SET_HERE
        ]
        if names:
            changes[resource] = [AlterConfigOp(name, op=AlterConfigOpType.DELETE) for name in names]
    errors = {
        resource: error
        for resource, error in described.errors.items()
        if not isinstance(error, UnknownTopicOrPartition)  # its throttle went with the topic
    }
    if not changes:
        return [], errors
    removed = admin.incremental_alter_configs(changes)
    return list(removed.succeeded), errors | removed.errors


def _broker(broker: int) -> ConfigResource:
    return ConfigResource(ConfigResourceType.BROKER, str(broker))


def _topic(topic: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, topic)
