"""What commands read from the descriptions of topics, groups and transactions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition
from kafka_fast.errors import KafkaError, UnknownTopicOrPartition

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import TopicDescription, TopicPartitionInfo


def partition_infos(
    topics: Mapping[str, TopicDescription],
) -> dict[TopicPartition, TopicPartitionInfo]:
    """Return the partitions of topics that were described by name, in the order of the topics."""
    return {
        TopicPartition(name, info.partition): info
        for name, topic in topics.items()
        for info in topic.partitions
    }


def split_known(
    admin: Admin, partitions: Collection[TopicPartition]
) -> tuple[list[TopicPartition], dict[TopicPartition, KafkaError]]:
    """Return the partitions that there are, and what is wrong with the others."""
    described = admin.describe_topics(dict.fromkeys(one.topic for one in partitions))
    known = partition_infos(described.succeeded)
    errors = {
        one: described.errors.get(one.topic)
        or UnknownTopicOrPartition(f"there is no partition {one}")
        for one in partitions
        if one not in known
    }
    return [one for one in partitions if one in known], errors


def told(word: str) -> str | None:
    """Return Kafka's word for a type or a state; None: brokers have told one that nobody knows."""
    return None if word == "Unknown" else word
