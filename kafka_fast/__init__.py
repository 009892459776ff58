"""kafka_fast: an Apache Kafka client for Python with a compiled core.

    >>> from kafka_fast import Producer
    >>> with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
    ...     producer.send("events", b"value", key=b"key").result()

The client API is here; the wire API is `kafka_fast.protocol`, `kafka_fast.record` and
`kafka_fast.errors`.
"""

from kafka_fast._version import __version__
from kafka_fast.config import ConsumerConfig, ProducerConfig
from kafka_fast.consumer import (
    Consumer,
    ConsumerRecord,
    ConsumerRecords,
    RebalanceListener,
    RecordRange,
    read_range,
)
from kafka_fast.errors import (
    BrokerError,
    CommitFailedError,
    ConfigError,
    DeliveryError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    Outcome,
    PositionError,
    RecordDeserializationError,
    SerializationError,
    UnreadableBatchError,
    UsageError,
    WakeupError,
)
from kafka_fast.producer import BatchFuture, DeliveryFuture, Producer
from kafka_fast.types import (
    BatchResult,
    OffsetAndMetadata,
    PartitionInfo,
    PartitionResult,
    RecordMetadata,
    TopicPartition,
)

__all__ = [
    "BatchFuture",
    "BatchResult",
    "BrokerError",
    "CommitFailedError",
    "ConfigError",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "ConsumerRecords",
    "DeliveryError",
    "DeliveryFuture",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaTimeoutError",
    "OffsetAndMetadata",
    "Outcome",
    "PartitionInfo",
    "PartitionResult",
    "PositionError",
    "Producer",
    "ProducerConfig",
    "RebalanceListener",
    "RecordDeserializationError",
    "RecordMetadata",
    "RecordRange",
    "SerializationError",
    "TopicPartition",
    "UnreadableBatchError",
    "UsageError",
    "WakeupError",
    "__version__",
    "read_range",
]
