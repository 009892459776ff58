"""What tests with PySpark on this machine share: their marks, and topics of numbers.

The session itself is the fixture `spark`, the broker is `kafka`, and a topic of it is `topic`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.testing import EmbeddedKafka

SPARK_MARKS = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # PySpark 3.5: old version classes, and sockets to the JVM that it leaves to the collector.
    pytest.mark.filterwarnings("ignore:distutils Version classes:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


def pyspark_version() -> tuple[int, int]:
    """Return the version of PySpark, where it behaves in one way or another."""
    import pyspark

    major, minor, *_ = pyspark.__version__.split(".")
    return int(major), int(minor)


def has_limits() -> bool:
    """Return whether Spark tells a Python source where a micro-batch begins, and its limit.

    Before, AvailableNow is a single micro-batch without a limit.
    """
    return pyspark_version() >= (4, 2)


def write(kafka: EmbeddedKafka, topic: str, numbers: range, **columns: Any) -> None:
    """Write a value for each number, and its remainder by 3 as the partition.

    Args:
        kafka: The broker.
        topic: A topic of three partitions.
        numbers: The values.
        columns: Others of `Producer.send_many`.
    """
    with Producer(bootstrap_servers=kafka.bootstrap, linger_ms=0) as producer:
        partitions = [number % 3 for number in numbers]
        values = [b"%d" % number for number in numbers]
        producer.send_many(topic, values, partitions=partitions, **columns).result(30)
