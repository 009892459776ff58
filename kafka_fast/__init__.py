"""kafka_fast: an Apache Kafka client for Python with a compiled core.

    >>> from kafka_fast import Producer
    >>> with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
    ...     producer.send("events", b"value", key=b"key").result()

The client API is here, each part imported when it is used first; the wire API is
`kafka_fast.protocol`, `kafka_fast.record` and `kafka_fast.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast import errors
from kafka_fast._lazy import lazily
from kafka_fast._version import __version__
from kafka_fast.errors import (
    AbortableTransactionError,
    AssignorError,
    AuthenticationError,
    BrokerError,
    CommitFailedError,
    ConfigError,
    ConnectionReason,
    CorruptBatchError,
    DeliveryError,
    FrameTooLargeError,
    InternalError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    MalformedError,
    MissingPackageError,
    NoOffsetForPartitionError,
    Outcome,
    PositionError,
    PositionOutOfRangeError,
    ProducerFencedError,
    ProtocolError,
    RecordDeserializationError,
    SerializationError,
    TlsError,
    TransactionError,
    TransactionOutcomeUnknownError,
    UnknownBrokerError,
    UnreadableBatchError,
    UnsupportedVersionError,
    UsageError,
    WakeupError,
    WouldWaitError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_fast.admin import Admin
    from kafka_fast.aws import aws_msk_token_provider
    from kafka_fast.config import ConsumerConfig, ProducerConfig, read_properties
    from kafka_fast.consumer import (
        Consumer,
        ConsumerRecord,
        ConsumerRecords,
        RebalanceListener,
        RecordRange,
        read_range,
    )
    from kafka_fast.producer import BatchFuture, DeliveryFuture, Producer
    from kafka_fast.producer.partitions import key_partitions
    from kafka_fast.serialization import JsonDeserializer, JsonSerializer
    from kafka_fast.types import (
        BatchResult,
        OffsetAndMetadata,
        PartitionInfo,
        PartitionResult,
        RecordMetadata,
        TopicPartition,
    )
else:
    _WHERE = dict.fromkeys(errors.BROKER_ERRORS, "errors") | {
        "Admin": "admin",
        "BatchFuture": "producer",
        "BatchResult": "types",
        "Consumer": "consumer",
        "ConsumerConfig": "config",
        "ConsumerRecord": "consumer",
        "ConsumerRecords": "consumer",
        "DeliveryFuture": "producer",
        "JsonDeserializer": "serialization",
        "JsonSerializer": "serialization",
        "OffsetAndMetadata": "types",
        "PartitionInfo": "types",
        "PartitionResult": "types",
        "Producer": "producer",
        "ProducerConfig": "config",
        "RebalanceListener": "consumer",
        "RecordMetadata": "types",
        "RecordRange": "consumer",
        "TopicPartition": "types",
        "aws_msk_token_provider": "aws",
        "key_partitions": "producer.partitions",
        "read_properties": "config",
        "read_range": "consumer",
    }

    def _peer_names() -> Mapping[str, str]:
        from kafka_fast.peer_names import MODULE  # few programs need it

        return MODULE

    def _peer_names_of_errors() -> Mapping[str, str]:
        from kafka_fast.peer_errors import errors_module

        return errors_module(errors.BROKER_ERRORS, errors.__all__)

    __getattr__, __dir__ = lazily(__name__, _WHERE, _peer_names)
    # The module of errors imports nothing of ours, so the package lends it a look-up.
    errors.__getattr__, _ = lazily(errors.__name__, {}, _peer_names_of_errors)

__all__ = [
    "AbortableTransactionError",
    "Admin",
    "AssignorError",
    "AuthenticationError",
    "BatchFuture",
    "BatchResult",
    "BrokerError",
    "CommitFailedError",
    "ConfigError",
    "ConnectionReason",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "ConsumerRecords",
    "CorruptBatchError",
    "DeliveryError",
    "DeliveryFuture",
    "FrameTooLargeError",
    "InternalError",
    "JsonDeserializer",
    "JsonSerializer",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaTimeoutError",
    "LogTruncationError",
    "MalformedError",
    "MissingPackageError",
    "NoOffsetForPartitionError",
    "OffsetAndMetadata",
    "Outcome",
    "PartitionInfo",
    "PartitionResult",
    "PositionError",
    "PositionOutOfRangeError",
    "Producer",
    "ProducerConfig",
    "ProducerFencedError",
    "ProtocolError",
    "RebalanceListener",
    "RecordDeserializationError",
    "RecordMetadata",
    "RecordRange",
    "SerializationError",
    "TlsError",
    "TopicPartition",
    "TransactionError",
    "TransactionOutcomeUnknownError",
    "UnknownBrokerError",
    "UnreadableBatchError",
    "UnsupportedVersionError",
    "UsageError",
    "WakeupError",
    "WouldWaitError",
    "__version__",
    "aws_msk_token_provider",
    "key_partitions",
    "read_properties",
    "read_range",
]
