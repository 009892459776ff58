"""kafka_fast: an Apache Kafka client for Python with a compiled core.

    >>> from kafka_fast import Producer
    >>> with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
    ...     producer.send("events", b"value", key=b"key").result()

The client API is here; the wire API is `kafka_fast.protocol`, `kafka_fast.record` and
`kafka_fast.errors`.
"""

from kafka_fast._version import __version__
from kafka_fast.config import ConsumerConfig, ProducerConfig
from kafka_fast.errors import (
    BrokerError,
    ConfigError,
    DeliveryError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    Outcome,
    SerializationError,
    UsageError,
)
from kafka_fast.producer import Producer
from kafka_fast.types import PartitionInfo, RecordMetadata, TopicPartition

__all__ = [
    "BrokerError",
    "ConfigError",
    "ConsumerConfig",
    "DeliveryError",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaTimeoutError",
    "Outcome",
    "PartitionInfo",
    "Producer",
    "ProducerConfig",
    "RecordMetadata",
    "SerializationError",
    "TopicPartition",
    "UsageError",
    "__version__",
]
