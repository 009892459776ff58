"""What the tests of calls with many records share: a call that nobody sends, what has arrived."""

from __future__ import annotations

import time
from typing import Any

from kafka_fast.control.producer.producer_messages import FailQueue
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net._pump import Machine
from kafka_fast.producer._produce_carrier import carry_produce
from kafka_fast.record import Record
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from kafka_fast.testing.broker.serving.server import EmbeddedKafka

PARTITIONS = 4


def records_of(kafka: EmbeddedKafka, topic: str) -> list[Record]:
    return [record for i in range(PARTITIONS) for record in kafka.records(topic, i)]


def values_of(kafka: EmbeddedKafka, topic: str) -> list[bytes | None]:
    return [record.value for record in records_of(kafka, topic)]


def detached(memory: int = 1 << 25, partitions: int = 4, **options: Any) -> BulkAccumulator:
    """An accumulator whose batches nobody sends."""
    queues = Queues(
        DataPlane(Machine(), max_frame=1 << 27, request_timeout=30.0),
        buffer_memory=memory,
        batch_size=16_384,
        max_request_size=1 << 20,
        coalesce_bytes=1 << 21,
        linger=60.0,
        delivery_timeout=120.0,
        max_in_flight=5,
    )
    queues.topic("t", 12345)
    queues.set_partitions("t", 0, range(partitions))
    return BulkAccumulator(queues, max_block=options.pop("max_block", 0.05), **options)


def fail_all(queues: Queues, partitions: int = 4) -> None:
    """Fail what is in no request: nothing was sent."""
    for queue_id in range(partitions):
        carry_produce(FailQueue(queue_id, 29), queues, 0)
    queues.plane.turn_plane(time.monotonic())
