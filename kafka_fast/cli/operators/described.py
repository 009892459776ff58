"""What commands read from the descriptions of topics, groups and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_fast import TopicPartition

if TYPE_CHECKING:
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


def told(word: str) -> str | None:
    """Return Kafka's word for a type or a state; None: brokers have told one that nobody knows."""
    return None if word == "Unknown" else word
