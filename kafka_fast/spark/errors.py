"""The errors of writes from Spark; all others are in `kafka_fast.errors`."""

from __future__ import annotations

from kafka_fast.errors import DeliveryError, KafkaError


class KafkaDeliveryError(DeliveryError):
    """A task's records were not, or perhaps not, delivered; Spark runs the task again.

    Attributes:
        count: number of these records.
        first: the error of the first record.
        samples: a few errors, for the log.
        outcome: what is known of the records; if outcomes differ, the least certain one.
    """


class SparkSetupError(KafkaError):
    """The driver's or a worker's Python is missing, lacks a package, or has another version.

    The message says which Python it is, and what to install.
    """


class DataLossError(KafkaError):
    """Records that a query was to read are not in Kafka any more; see failOnDataLoss."""
