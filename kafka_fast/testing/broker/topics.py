"""Topics and partitions as the cluster keeps them, and the rules for their names and settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_fast.errors import InvalidConfig, InvalidTopicException
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC
from kafka_fast.testing.broker.log import PartitionLog
from kafka_fast.testing.broker.producers import ProducerStates

NO_LEADER = -1
MAX_NAME_LENGTH = 249

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

# Setting -> Kafka's default. Only settings that change what the broker does are known.
TOPIC_DEFAULTS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
}

_ACCEPTED_WORDS: Mapping[str, tuple[str, ...]] = {
    "cleanup.policy": ("delete",),
    "compression.type": ("producer",),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
}


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
    retention_bytes: int
    texts: Mapping[str, str]  # every setting in force, as text

    @classmethod
    def from_texts(cls, given: Mapping[str, str | None]) -> TopicConfig:
        """Read the settings of a CreateTopics request over the defaults.

        Raises:
            InvalidConfig: a setting is not known here, or its value is not accepted.
        """
        texts = dict(TOPIC_DEFAULTS)
        for name, value in given.items():
            if name not in texts:
                raise InvalidConfig(f"the embedded broker has no topic setting {name!r}")
            if value is None:
                raise InvalidConfig(f"null value for the topic setting {name!r}")
            texts[name] = value
        for name, words in _ACCEPTED_WORDS.items():
            if texts[name] not in words:
                raise InvalidConfig(f"{name}={texts[name]} is not one of {', '.join(words)}")
        return cls(
            max_message_bytes=_integer(texts, "max.message.bytes", 0),
            timestamp_after_max_ms=_integer(texts, "message.timestamp.after.max.ms", 0),
            timestamp_before_max_ms=_integer(texts, "message.timestamp.before.max.ms", 0),
            log_append_time=texts["message.timestamp.type"] == "LogAppendTime",
            min_insync_replicas=_integer(texts, "min.insync.replicas", 1),
            retention_bytes=_integer(texts, "retention.bytes", None),
            texts=texts,
        )


def _integer(texts: Mapping[str, str], name: str, minimum: int | None) -> int:
    try:
        value = int(texts[name])
    except ValueError:
        raise InvalidConfig(f"{name}={texts[name]!r} is not a number") from None
    if minimum is not None and value < minimum:
        raise InvalidConfig(f"{name}={value} is below {minimum}")
    return value


@dataclass(slots=True)
class Partition:
    """One partition: who leads it, and its log, which all replicas share."""

    topic: str
    index: int
    replicas: list[int]  # node ids, the preferred leader first
    isr: list[int]  # node ids in sync
    leader: int  # node id, or NO_LEADER
    leader_epoch: int  # grows with every change of leader
    log: PartitionLog
    producers: ProducerStates = field(default_factory=ProducerStates)
    replica_ends: dict[int, int] = field(default_factory=dict)  # of those that lag: node id -> end


@dataclass(slots=True)
class Topic:
    """One topic with its partitions, which are numbered from 0."""

    name: str
    topic_id: bytes  # 16 bytes
    config: TopicConfig
    partitions: list[Partition] = field(default_factory=list)

    @property
    def is_internal(self) -> bool:
        """Tell whether the brokers keep their own books in it."""
        return self.name == OFFSETS_TOPIC
