"""Log directories of brokers, and the replicas in them."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value


class TopicPartitionReplica(Value):
    """A replica of a partition: the one that a certain broker has."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        """Return "orders-3 on broker 1"."""
        return f"{self.topic}-{self.partition} on broker {self.broker_id}"


class ReplicaInfo(Value):
    """A replica in a log directory."""

    size: int
    """Bytes of its log segments."""
    offset_lag: int
    """Of a current replica: how many offsets it lags behind the high watermark. Of a future one:
    how many offsets it lags behind the current replica. -1: the broker cannot tell."""
    is_future: bool
    """It is being copied into this directory, and will replace the current replica."""


class LogDir(Value):
    """A log directory of a broker."""

    error: KafkaError | None
    """A KafkaStorageError if the broker cannot use it; None: all is well."""
    total_bytes: int | None
    """Size of the volume that it is on; None: the broker is older than 3.3, or cannot tell."""
    usable_bytes: int | None
    """How much is free on this volume; None as above."""
    replicas: Mapping[TopicPartition, ReplicaInfo]
    """What it holds; nothing if it has an error."""
    is_cordoned: bool = False
    """The broker puts no new partitions there (KIP-1066)."""


class ReplicaLogDirInfo(Value):
    """The log directories of one replica."""

    current_log_dir: str | None
    """Its path; None: the broker has no such replica, or its directory has failed."""
    current_offset_lag: int | None
    """How many offsets it lags behind the high watermark; None as above."""
    future_log_dir: str | None
    """The path to which the replica is moving; None: it is not moving."""
    future_offset_lag: int | None
    """How many offsets the copy there lags behind the current replica; None: it is not moving."""
