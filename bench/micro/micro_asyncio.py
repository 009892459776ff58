"""What an awaited record costs its event loop, as a ratio to what asyncio's own things cost there.

    python -m pytest -p no:cacheprovider bench/micro/micro_asyncio.py

The time is CPU of the loop's thread, sending included: how long the broker takes is not the loop's
doing. Where a batch has many records, one of them waits and the others find their fate known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple

import pytest

from kafka_fast import Producer, aio
from tests.support.null_broker import NullBroker

ROUNDS = 30
TOPIC = "bench"
VALUES = [b"%0100d" % i for i in range(10_000)]

Way = Callable[[Producer], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    """A producer whose records are dropped, that knows its topic."""
    with NullBroker() as broker, Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        producer.send(TOPIC, b"first").result(10)
        yield producer


async def await_each(producer: Producer) -> None:
    """The way to go for many records: send them all, then await one after the other."""
    send = producer.send
    for handle in [send(TOPIC, value) for value in VALUES]:
        await handle


async def gather_all(producer: Producer) -> None:
    """The handles as they are: `gather` makes no task of what looks like a future."""
    send = producer.send
    await asyncio.gather(*[send(TOPIC, value) for value in VALUES])


async def await_the_call(producer: Producer) -> None:
    """A bulk call has one future for all its records."""
    await producer.send_many(TOPIC, VALUES)


async def task_each(producer: Producer) -> None:
    """What many a program does, and what costs most: a task for each record."""

    async def one(value: bytes) -> None:
        await producer.send(TOPIC, value)

    await asyncio.gather(*map(one, VALUES))


def empty(topic: str, value: bytes | None = None, key: Any = None, partition: Any = None) -> None:
    """A call with nothing in it."""


async def call_empty(producer: Producer) -> None:
    """The yardstick of what is awaited without a wait."""
    for value in VALUES:
        empty(TOPIC, value, None, None)


async def gather_futures(producer: Producer) -> None:
    """The yardstick of `gather`: asyncio's own futures, each of them told alone."""
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in VALUES]
    waiting = asyncio.gather(*futures)
    for future in futures:
        future.set_result(None)
    await waiting


async def gather_tasks(producer: Producer) -> None:
    """The yardstick of tasks: they wait for one turn of the loop."""
    await asyncio.gather(*(asyncio.sleep(0) for _ in VALUES))


async def fastest(ways: list[Way], producer: Producer) -> list[float]:
    """Return the least CPU time of each way, in ns per record; the ways take turns."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for i, way in enumerate(ways):
            before = time.thread_time_ns()
            await way(producer)
            best[i] = min(best[i], (time.thread_time_ns() - before) / len(VALUES))
    return best


@pytest.mark.parametrize(
    ("way", "limit", "yardstick"),
    [
        (await_each, 8.0, call_empty),
        (await_the_call, 2.5, call_empty),
        (gather_all, 0.8, gather_futures),
        (task_each, 2.5, gather_tasks),  # 1.9 to 2.1, by the hour
    ],
)
def test_a_record_costs_at_most_so_many_times_the_yardstick(
    producer: Producer, way: Way, limit: float, yardstick: Way
) -> None:
    """An empty call takes about 33 ns on the machine where the limits were set."""
    unit, measured = asyncio.run(fastest([yardstick, way], producer))
    assert measured <= limit * unit, f"{measured:.0f} ns, {yardstick.__name__} {unit:.0f} ns"


def test_a_record_costs_little_more_than_in_a_blocking_producer() -> None:
    """Sending, and asking each handle for its result, by themselves: 1.6 to 1.8, and 1.1 times."""
    ratio = asyncio.run(beside_blocking())
    assert ratio.sending <= 2.0, ratio
    assert ratio.awaiting <= 1.5, ratio


class Ratio(NamedTuple):
    """What a record costs a producer of asyncio's, in times of what it costs a blocking one."""

    sending: float
    awaiting: float


async def beside_blocking() -> Ratio:
    """Send windows of records with both producers, in turns, and take the best of each step."""
    best = dict.fromkeys(("send", "await send", "result", "await"), float("inf"))

    def note(step: str, before: int) -> int:
        now = time.thread_time_ns()
        best[step] = min(best[step], now - before)
        return now

    with (
        NullBroker() as broker,
        Producer({"bootstrap.servers": broker.bootstrap}) as blocking,
    ):
        async with aio.Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            await asyncio.to_thread(blocking.partitions_for, TOPIC)
            await producer.send_and_wait(TOPIC, b"first")
            for _ in range(ROUNDS):
                began = time.thread_time_ns()
                kept = [blocking.send(TOPIC, value) for value in VALUES]
                note("send", began)
                kept[-1].result(10)
                began = time.thread_time_ns()
                for handle in kept:
                    handle.result(10)
                began = note("result", began)
                kept = [await producer.send(TOPIC, value) for value in VALUES]
                note("await send", began)
                await kept[-1]
                began = time.thread_time_ns()
                for handle in kept:
                    await handle
                note("await", began)
    return Ratio(best["await send"] / best["send"], best["await"] / best["result"])


@pytest.mark.parametrize("way", [await_each, gather_all, await_the_call, task_each])
def test_report(benchmark: Any, producer: Producer, way: Way) -> None:
    """The same ways for pytest-benchmark's table, on the wall clock: 10,000 records a round."""
    loop = asyncio.new_event_loop()
    benchmark.pedantic(lambda: loop.run_until_complete(way(producer)), rounds=20, warmup_rounds=2)
    loop.close()
