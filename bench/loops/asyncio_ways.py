"""The ways in which asyncio_clients.py has clients send and read: asyncio's, blocking, aiokafka.

Each is a function of a broker's address and a number of records; it returns what that has cost.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as TheirPartition

from bench.workload import READ_PARTITIONS
from kafka_fast import Consumer, ConsumerRecords, Producer, TopicPartition, aio

TOPIC = "bench"
VALUE = b"%0100d" % 7
IN_ORDER = 10_000
GATHERED = 1_000
"""Records that are sent before their handles are awaited."""
AT_A_TIME = 500
TURNS = 3_000

Figures = dict[str, float]
Way = Callable[[str, int], Figures | Coroutine[Any, Any, Figures]]


def cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def per_record(before: float, count: int) -> Figures:
    """Return what a million records have cost since."""
    return {"cpu_per_million": (cpu() - before) / count * 1e6}


# ---- producing ----


def blocking_send(bootstrap: str, count: int) -> Figures:
    """The yardstick: send, and flush in the end."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(TOPIC, VALUE).result(10)
        before = cpu()
        for _ in range(count):
            producer.send(TOPIC, VALUE)
        producer.flush()
        return per_record(before, count)


async def send_in_order(bootstrap: str, count: int) -> Figures:
    """Send a window of records, then await its handles one after the other."""
    async with aio.Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(TOPIC, VALUE)
        before = cpu()
        for _ in range(count // IN_ORDER):
            handles = [await producer.send(TOPIC, VALUE) for _ in range(IN_ORDER)]
            for handle in handles:
                await handle
        return per_record(before, count)


async def send_gathered(bootstrap: str, count: int) -> Figures:
    """Send a window of records, then gather its handles."""
    async with aio.Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(TOPIC, VALUE)
        before = cpu()
        for _ in range(count // GATHERED):
            await asyncio.gather(*[await producer.send(TOPIC, VALUE) for _ in range(GATHERED)])
        return per_record(before, count)


async def futures_gathered(bootstrap: str, count: int) -> Figures:
    """What gather() costs by itself: futures of the loop, which are set at once."""
    loop = asyncio.get_running_loop()
    spent = 0.0
    for _ in range(count // GATHERED):
        futures = [loop.create_future() for _ in range(GATHERED)]
        before = cpu()
        gathered = asyncio.gather(*futures)
        for future in futures:
            future.set_result(None)
        await gathered
        spent += cpu() - before
    return {"cpu_per_million": spent / count * 1e6}


async def one_in_flight(bootstrap: str, count: int) -> Figures:
    """Send and wait, one record at a time."""
    async with aio.Producer(bootstrap_servers=bootstrap) as producer:
        return await times(lambda: producer.send_and_wait(TOPIC, VALUE))


async def theirs(bootstrap: str) -> AIOKafkaProducer:
    """Return a started producer of aiokafka's that has its metadata."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    await producer.send_and_wait(TOPIC, VALUE)
    return producer


async def their_send_in_order(bootstrap: str, count: int) -> Figures:
    """The same with aiokafka."""
    producer = await theirs(bootstrap)
    before = cpu()
    for _ in range(count // IN_ORDER):
        for future in [await producer.send(TOPIC, VALUE) for _ in range(IN_ORDER)]:
            await future
    result = per_record(before, count)
    await producer.stop()
    return result


async def their_send_gathered(bootstrap: str, count: int) -> Figures:
    """The same with aiokafka."""
    producer = await theirs(bootstrap)
    before = cpu()
    for _ in range(count // GATHERED):
        await asyncio.gather(*[await producer.send(TOPIC, VALUE) for _ in range(GATHERED)])
    result = per_record(before, count)
    await producer.stop()
    return result


async def their_one_in_flight(bootstrap: str, count: int) -> Figures:
    """The same with aiokafka."""
    producer = await theirs(bootstrap)
    result = await times(lambda: producer.send_and_wait(TOPIC, VALUE))
    await producer.stop()
    return result


async def times(call: Callable[[], Awaitable[Any]]) -> Figures:
    """Return the median time of a call, in microseconds."""
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        await call()
        took.append(time.perf_counter() - began)
    return {"p50_us": statistics.median(took) * 1e6}


# ---- reading ----


def first_record(bootstrap: str) -> dict[str, Any]:
    """Return the properties of a consumer that reads from the first record on."""
    return {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}


PARTITIONS = [TopicPartition(TOPIC, number) for number in range(READ_PARTITIONS)]


def touch(records: ConsumerRecords) -> int:
    """Touch each record, as users do; return how many there are."""
    for record in records:
        record.value  # noqa: B018  touched
    return len(records)


def blocking_batches(bootstrap: str, count: int) -> Figures:
    """The yardstick: batches of 500, each record touched."""
    with Consumer(first_record(bootstrap)) as consumer:
        consumer.assign(PARTITIONS)
        left, before = count, cpu()
        for records in consumer.batches(AT_A_TIME):
            left -= touch(records)
            if left <= 0:
                break
        return per_record(before, count - left)


async def batches(bootstrap: str, count: int) -> Figures:
    """The same in an event loop."""
    async with aio.Consumer(first_record(bootstrap)) as consumer:
        consumer.assign(PARTITIONS)
        left, before = count, cpu()
        async for records in consumer.batches(AT_A_TIME):
            left -= touch(records)
            if left <= 0:
                break
        return per_record(before, count - left)


async def each(bootstrap: str, count: int) -> Figures:
    """One record after the other."""
    async with aio.Consumer(first_record(bootstrap)) as consumer:
        consumer.assign(PARTITIONS)
        left, before = count, cpu()
        async for record in consumer:
            record.value  # noqa: B018  touched
            left -= 1
            if not left:
                break
        return per_record(before, count)


async def their_each(bootstrap: str, count: int) -> Figures:
    """The same with aiokafka."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    consumer.assign([TheirPartition(TOPIC, number) for number in range(READ_PARTITIONS)])
    left, before = count, cpu()
    async for record in consumer:
        record.value  # noqa: B018  touched
        left -= 1
        if not left:
            break
    result = per_record(before, count)
    await consumer.stop()
    return result


AIO = "kafka_fast.aio"
BLOCKING = "kafka_fast"
PRODUCING: dict[tuple[str, str], Way] = {
    ("send", BLOCKING): blocking_send,
    ("send, in order", AIO): send_in_order,
    ("send, in order", "aiokafka"): their_send_in_order,
    ("send, gathered", AIO): send_gathered,
    ("send, gathered", "aiokafka"): their_send_gathered,
    ("gather() alone", "asyncio"): futures_gathered,
    ("one in flight", AIO): one_in_flight,
    ("one in flight", "aiokafka"): their_one_in_flight,
}
READING: dict[tuple[str, str], Way] = {
    ("batches", BLOCKING): blocking_batches,
    ("batches", AIO): batches,
    ("async for", AIO): each,
    ("async for", "aiokafka"): their_each,
}
