"""The client API of asyncio as a user's type checker sees it; read by mypy --strict, never run."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from typing_extensions import assert_type

from kafka_fast import (
    BatchFuture,
    BatchResult,
    ConsumerRecord,
    ConsumerRecords,
    DeliveryError,
    DeliveryFuture,
    OffsetAndMetadata,
    PartitionInfo,
    RecordMetadata,
    TopicPartition,
)
from kafka_fast.aio import Consumer, Producer, RebalanceListener, RecordRange, read_range


async def told(error: DeliveryError | None, metadata: RecordMetadata) -> None:
    assert_type(error, DeliveryError | None)
    assert_type(metadata.offset, int)


async def produce() -> None:
    async with Producer({"bootstrap.servers": "localhost:9092"}, on_delivery=told) as producer:
        assert_type(producer, Producer)
        delivery = await producer.send("topic", b"value", key="key", headers=[("name", b"h")])
        assert_type(delivery, DeliveryFuture)
        assert_type(await delivery, RecordMetadata)
        assert_type(await producer.send_and_wait("topic", b"value"), RecordMetadata)
        task = asyncio.create_task(producer.send("topic", b"value"))
        assert_type(await task, DeliveryFuture)
        assert_type(await asyncio.wait_for(producer.send("topic"), 1.0), DeliveryFuture)
        many = await producer.send_many("topic", [b"value"])
        assert_type(many, BatchFuture)
        assert_type(await many, BatchResult)
        producer.send_nowait("topic", b"value", on_delivery=told)
        assert_type(await producer.flush(), int)
        assert_type(await producer.partitions_for("topic"), list[PartitionInfo])
        producer.send("topic", partition="0")  # type: ignore[arg-type,unused-coroutine] # a number


class Both(RebalanceListener):
    def on_partitions_assigned(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        consumer.seek_to_beginning(*partitions)

    async def on_partitions_revoked(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        await consumer.commit()


class ListListener(RebalanceListener):
    async def on_partitions_revoked(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> None:
        partitions.sort()


async def consume_typed() -> None:
    typed: Consumer[str, int] = Consumer(key_deserializer=bytes.decode, value_deserializer=int)
    async with typed as consumer:
        assert_type(consumer, Consumer[str, int])
        assert_type(await consumer.poll(), ConsumerRecords[str, int])
        async for record in consumer:
            assert_type(record, ConsumerRecord[str, int])
            assert_type(record.value, int)
        async for records in consumer.batches():
            assert_type(records.keys(), list[str])


async def consume() -> None:
    async with Consumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
        assert_type(consumer, Consumer)
        consumer.subscribe(["topic"], listener=Both())
        assert_type(await consumer.poll(0.5), ConsumerRecords)
        async for record in consumer:
            assert_type(record, ConsumerRecord)
            await consumer.commit(record)
        async for records in consumer.batches():
            assert_type(records, ConsumerRecords)
        partition = TopicPartition("topic", 0)
        assert_type(await consumer.position(partition), int)
        assert_type(
            await consumer.committed([partition]), dict[TopicPartition, OffsetAndMetadata | None]
        )
        consumer.pause(partition)
        consumer.wakeup()


async def read() -> None:
    steps = read_range("topic", 0, 10, bootstrap_servers="localhost:9092")
    assert_type(steps, RecordRange)
    async for records in steps:
        assert_type(records, ConsumerRecords)
