"""Log segments of message formats v0, v1 and v2, written by Apache Kafka 2.8.2, read from disk.

With KAFKA_FAST_WRITE_CORPUS=1 they are kept as tests/corpus/segments, for the tests that need no
broker.
"""

from __future__ import annotations

import os
from pathlib import Path

import confluent_kafka
import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.reference.log_segments import COUNT, check_segment, segment_names, sent

CORPUS = Path(__file__).parents[2] / "corpus" / "segments"
TIMEOUT = 30

pytestmark = pytest.mark.broker


def write(kafka: RealKafka, name: str) -> bytes:
    """Have the broker write the segment; return its bytes."""
    version, codec, *append = name.split("-")
    topic = f"segment-{name}"
    configs = {
        "message.format.version": version,
        "message.timestamp.type": "LogAppendTime" if append else "CreateTime",
    }
    kafka.create_topic(topic, configs=configs)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap, "compression.type": codec, "linger.ms": 50}
    )
    failed: list[object] = []
    for number in range(COUNT):
        key, value, timestamp_ms = sent(number)
        producer.produce(
            topic,
            value,
            key,
            partition=0,
            timestamp=timestamp_ms,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        if number in (COUNT // 3, COUNT // 2):
            assert producer.flush(TIMEOUT) == 0  # so that there are several batches
    assert producer.flush(TIMEOUT) == 0
    assert failed == []
    return (kafka.node(1).data_dir / f"{topic}-0" / f"{0:020}.log").read_bytes()


def test_segments(old_kafka: RealKafka) -> None:
    for name in segment_names():
        data = write(old_kafka, name)
        if os.environ.get("KAFKA_FAST_WRITE_CORPUS") == "1":
            CORPUS.mkdir(parents=True, exist_ok=True)
            (CORPUS / f"{name}.log").write_bytes(data)
        check_segment(name, data)
