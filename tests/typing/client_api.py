"""The client API as a user's type checker sees it; read by mypy --strict, never run."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import Unpack, assert_type

from kafka_fast import (
    BatchFuture,
    DeliveryError,
    DeliveryFuture,
    Outcome,
    PartitionInfo,
    Producer,
    ProducerConfig,
    RecordMetadata,
)
from kafka_fast.config.properties import ProducerProperties


def blocking(noon: datetime) -> None:
    with Producer({ProducerConfig.BOOTSTRAP_SERVERS_CONFIG: "localhost:9092"}) as producer:
        assert_type(producer, Producer)
        delivery = producer.send("topic", b"value", key="key", headers=[("name", b"h")])
        assert_type(delivery, DeliveryFuture)
        assert_type(producer.send_many("topic", [b"value"]), BatchFuture)
        assert_type(delivery.result(timeout=1.0), RecordMetadata)
        assert_type(delivery.result().offset, int)
        assert_type(delivery.exception(), DeliveryError | None)
        producer.send_nowait("topic", b"value")
        producer.send("topic", b"value", timestamp_ms=noon)
        producer.send("topic", timestamp_ms="now")  # type: ignore[arg-type] # nor is it a time
        assert_type(producer.flush(), int)
        assert_type(producer.partitions_for("topic"), list[PartitionInfo])
        producer.send("topic", partition="0")  # type: ignore[arg-type] # a number is wanted


async def awaiting(producer: Producer) -> None:
    assert_type(await producer.send("topic", b"value"), RecordMetadata)


def properties() -> None:
    Producer(
        bootstrap_servers=["a:9092", "b:9092"], acks="all", linger_ms=5, compression_type="lz4"
    )
    Producer({"linger.ms": "5"}, bootstrap_servers="a:9092")
    Producer(lingr_ms=5)  # type: ignore[call-arg] # no such property
    Producer(linger_ms="5")  # type: ignore[arg-type] # an int
    Producer(compression_type="lzma")  # type: ignore[arg-type] # no such codec


def mine(**properties: Unpack[ProducerProperties]) -> Producer:
    """Whoever wraps the constructor can say the same."""
    return Producer(**properties)


def callbacks(producer: Producer) -> None:
    def on_delivery(error: DeliveryError | None, metadata: RecordMetadata) -> None:
        if error is not None:
            assert_type(error.outcome, Outcome)

    producer.send("topic", b"value", on_delivery=on_delivery)
