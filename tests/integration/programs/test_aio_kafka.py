"""asyncio's clients on real Kafka: aiokafka at the other end, and tasks that are cancelled."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kafka_fast import TopicPartition, aio
from kafka_fast.errors import KafkaError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.embedded.looped import run
from tests.integration.producing import new_topic, read_log

pytestmark = pytest.mark.broker

COUNT = 5_000
PARTITIONS = 3


@pytest.fixture
def topic(real_kafka: RealKafka) -> str:
    """A topic with three partitions."""
    name: str = new_topic(real_kafka, PARTITIONS)
    return name


def test_aiokafka_reads_what_we_write_and_we_read_what_it_writes(
    real_kafka: RealKafka, topic: str, loop: str
) -> None:
    expected = {b"%d" % number for number in range(COUNT)}

    async def main() -> None:
        async with aio.Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
            half = [await producer.send(topic, b"%d" % number) for number in range(COUNT // 2)]
            for handle in half:
                await handle
        theirs = AIOKafkaProducer(bootstrap_servers=real_kafka.bootstrap)
        await theirs.start()
        for number in range(COUNT // 2, COUNT):
            await theirs.send(topic, b"%d" % number)
        await theirs.stop()
        values = set()
        async with aio.Consumer(
            bootstrap_servers=real_kafka.bootstrap,
            group_id=str(uuid.uuid4()),
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                values.add(record.value)
                if len(values) == COUNT:
                    break
            await consumer.commit()
            assert sum((await consumer.lag()).values()) == 0
        assert values == expected
        other = AIOKafkaConsumer(
            topic, bootstrap_servers=real_kafka.bootstrap, auto_offset_reset="earliest"
        )
        await other.start()
        read = set()
        while len(read) < COUNT:
            for records in (await other.getmany(timeout_ms=1000)).values():
                read.update(record.value for record in records)
        await other.stop()
        assert read == expected

    run(main(), loop)


def test_sends_that_are_cancelled_are_in_the_log_or_not_as_they_said(
    real_kafka: RealKafka, topic: str, loop: str
) -> None:
    """What a `send` has returned for is there once, and nothing that was cancelled before."""
    source = random.Random(7)
    accepted: list[bytes] = []

    async def send(producer: aio.Producer, value: bytes) -> None:
        handle = await producer.send(topic, value)
        accepted.append(value)
        await handle

    async def main() -> None:
        async with aio.Producer(
            bootstrap_servers=real_kafka.bootstrap, buffer_memory=1 << 18, batch_size=1 << 14
        ) as producer:
            tasks = [
                asyncio.ensure_future(send(producer, b"%d" % number + bytes(2_000)))
                for number in range(1_000)
            ]
            await asyncio.sleep(0)  # all have begun, and none can be through
            doomed = source.sample(tasks, 300)
            for task in doomed[:100]:
                assert task.cancel()
            for task in doomed[100:]:
                await asyncio.sleep(0)
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            # How many of the others are through by their turn is up to the broker.
            assert sum(isinstance(result, asyncio.CancelledError) for result in results) >= 100
            assert all(
                result is None or isinstance(result, asyncio.CancelledError) for result in results
            )

    run(main(), loop)
    log = [
        record.value
        for partition in range(PARTITIONS)
        for record in read_log(real_kafka.bootstrap, topic, partition)
    ]
    assert sorted(log) == sorted(accepted)


def test_members_whose_calls_are_cancelled_read_and_commit_everything(
    real_kafka: RealKafka, topic: str, loop: str
) -> None:
    """Two members poll, commit and close under timeouts that are often too short."""
    source = random.Random(8)
    group = str(uuid.uuid4())
    times_read: dict[tuple[int, int], int] = {}

    async def often_cancelled(call: Callable[[], Any]) -> Any:
        try:
            return await asyncio.wait_for(call(), source.choice((0.0005, 0.005, 0.05, 5.0)))
        except (asyncio.TimeoutError, KafkaError):
            return None

    async def member() -> aio.Consumer:
        consumer = aio.Consumer(
            bootstrap_servers=real_kafka.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            max_poll_records=50,
            enable_auto_commit=False,
        )
        consumer.subscribe([topic])
        while len(times_read) < COUNT:
            records = await often_cancelled(lambda: consumer.poll(0.2))
            for record in records or ():
                place = record.partition, record.offset
                times_read[place] = times_read.get(place, 0) + 1
            if records:
                await often_cancelled(partial(consumer.commit, records))
        await consumer.commit()
        return consumer

    async def main() -> None:
        async with aio.Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
            await (await producer.send_many(topic, [b"x"] * COUNT))
        members = await asyncio.gather(member(), member())
        for consumer in members:  # not before: who leaves would make the other's commit fail
            await often_cancelled(consumer.close)
            await consumer.close()
        async with aio.Consumer(bootstrap_servers=real_kafka.bootstrap, group_id=group) as consumer:
            partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            ends = await consumer.end_offsets(partitions)
            committed = await consumer.committed(partitions)
            assert {partition: at and at.offset for partition, at in committed.items()} == ends
        assert len(times_read) == sum(ends.values()) == COUNT

    run(main(), loop)
