"""Topics and partitions as the cluster keeps them, and the rules for their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_fast.errors import InvalidTopicException
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC
from kafka_fast.testing.broker.partitions.log import PartitionLog
from kafka_fast.testing.broker.partitions.producers import ProducerStates
from kafka_fast.testing.broker.partitions.topic_settings import elements_of, read_settings
from kafka_fast.testing.broker.transactions.settings import TRANSACTIONS_TOPIC

NO_LEADER = -1
MAX_NAME_LENGTH = 249

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Refuse a name that Kafka refuses.

    Raises:
        InvalidTopicException: with the reason.
    """
    if not name:
        raise InvalidTopicException("a topic name cannot be empty")
    if name in (".", ".."):
        raise InvalidTopicException(f"a topic name cannot be {name!r}")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopicException(f"a topic name has at most {MAX_NAME_LENGTH} characters")
    if not _LEGAL_NAME.fullmatch(name):
        raise InvalidTopicException(f"{name!r} has other characters than a-z A-Z 0-9 . _ -")


def colliding_name(name: str) -> str:
    """Return the form in which names that differ only in '.' and '_' are the same (metrics)."""
    return name.replace(".", "_")


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic, read once from their text."""

    max_message_bytes: int
    timestamp_after_max_ms: int
    timestamp_before_max_ms: int
    log_append_time: bool
    min_insync_replicas: int
    retention_bytes: int  # -1: no limit
    is_compacted: bool
    """Each record needs a key; what is superseded stays until a test removes it."""
    may_delete: bool
    """By DeleteRecords and by retention."""
    texts: Mapping[str, str]
    """Every setting in force, as text."""

    @classmethod
    def from_texts(cls, given: Mapping[str, str | None]) -> TopicConfig:
        """Read the settings of a CreateTopics request over the defaults.

        Raises:
            InvalidConfig: Kafka does not know a setting, or does not take its value.
        """
        texts = read_settings(given)
        policies = elements_of(texts["cleanup.policy"])
        may_delete = "delete" in policies
        return cls(
            max_message_bytes=int(texts["max.message.bytes"]),
            timestamp_after_max_ms=int(texts["message.timestamp.after.max.ms"]),
            timestamp_before_max_ms=int(texts["message.timestamp.before.max.ms"]),
            log_append_time=texts["message.timestamp.type"] == "LogAppendTime",
            min_insync_replicas=int(texts["min.insync.replicas"]),
            retention_bytes=int(texts["retention.bytes"]) if may_delete else -1,
            is_compacted="compact" in policies,
            may_delete=may_delete,
            texts=texts,
        )


@dataclass(slots=True)
class Partition:
    """One partition: who leads it, and its log, which all replicas share."""

    topic: str
    index: int
    replicas: list[int]
    """Node ids, the preferred leader first."""
    isr: list[int]
    """Node ids in sync."""
    leader: int
    """Node id, or NO_LEADER."""
    leader_epoch: int
    """Grows with every change of leader."""
    log: PartitionLog
    producers: ProducerStates = field(default_factory=ProducerStates)
    replica_ends: dict[int, int] = field(default_factory=dict)
    """Of those that lag: node id -> end."""


@dataclass(slots=True)
class Topic:
    """One topic with its partitions, which are numbered from 0."""

    name: str
    topic_id: bytes
    """16 bytes."""
    config: TopicConfig
    partitions: list[Partition] = field(default_factory=list)

    @property
    def is_internal(self) -> bool:
        """Tell whether the brokers keep their own books in it."""
        return self.name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
