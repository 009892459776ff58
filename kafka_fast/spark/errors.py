"""The errors of a write that only Spark has; all others are those of `kafka_fast.errors`."""

from __future__ import annotations

from kafka_fast.errors import DeliveryError, KafkaError


class KafkaDeliveryError(DeliveryError):
    """A task's records were not, or perhaps not, delivered; Spark runs the task again.

    Attributes:
        count: Number of those records.
        first: The error of the first of them.
        samples: A few errors, for the log.
        outcome: What is known of them; of several, the least certain one.
    """


class SparkSetupError(KafkaError):
    """A Python that takes part in the job is missing, or lacks a package, or has another version.

    It is the driver's or a worker's; the message says which, and what to install.
    """
