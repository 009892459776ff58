"""asyncio's clients beside the blocking ones and aiokafka: CPU and latency.

    python bench/asyncio_clients.py                    all ways, in turn, and their table
    python bench/asyncio_clients.py --way "send, in order" --client aio

Each way runs in a process of its own, against a null broker of its own; the ways take turns, and
the table has medians. CPU is user and system time of the whole process (getrusage).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as TheirPartition
from consume import canned_broker
from report import commit_of_tree, cpu_model, version_of
from workload import READ_PARTITIONS, READINGS

from kafka_fast import Consumer, Producer, TopicPartition, aio
from kafka_fast.testing.null_broker import NullBroker

TOPIC = "bench"
VALUE = b"%0100d" % 7
IN_ORDER = 10_000
GATHERED = 1_000
"""Records that are sent before their handles are awaited."""
AT_A_TIME = 500
RECORDS = {"kafka_fast": 1_000_000, "aio": 1_000_000, "aiokafka": 60_000}
TURNS = 3_000

Figures = dict[str, float]
Way = Callable[[str, int], Figures | Coroutine[Any, Any, Figures]]


def cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def per_record(before: float, count: int) -> Figures:
    """Return what each record has cost since."""
    return {"ns": (cpu() - before) / count * 1e9}


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
    found = per_record(before, count)
    await producer.stop()
    return found


async def their_send_gathered(bootstrap: str, count: int) -> Figures:
    """The same with aiokafka."""
    producer = await theirs(bootstrap)
    before = cpu()
    for _ in range(count // GATHERED):
        await asyncio.gather(*[await producer.send(TOPIC, VALUE) for _ in range(GATHERED)])
    found = per_record(before, count)
    await producer.stop()
    return found


async def their_one_in_flight(bootstrap: str, count: int) -> Figures:
    """The same with aiokafka."""
    producer = await theirs(bootstrap)
    found = await times(lambda: producer.send_and_wait(TOPIC, VALUE))
    await producer.stop()
    return found


async def times(call: Callable[[], Awaitable[Any]]) -> Figures:
    """Return the median time of a call, in microseconds."""
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        await call()
        took.append(time.perf_counter() - began)
    return {"p50_us": statistics.median(took) * 1e6}


# ---- reading ----


def blocking_batches(bootstrap: str, count: int) -> Figures:
    """The yardstick: batches of 500, each record touched."""
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(READ_PARTITIONS)])
        left, before = count, cpu()
        for records in consumer.batches(AT_A_TIME):
            for record in records:
                record.value  # noqa: B018  touched
            left -= len(records)
            if left <= 0:
                return per_record(before, count - left)
        raise AssertionError


async def batches(bootstrap: str, count: int) -> Figures:
    """The same in an event loop."""
    async with aio.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(READ_PARTITIONS)])
        left, before = count, cpu()
        async for records in consumer.batches(AT_A_TIME):
            for record in records:
                record.value  # noqa: B018  touched
            left -= len(records)
            if left <= 0:
                return per_record(before, count - left)
        raise AssertionError


async def each(bootstrap: str, count: int) -> Figures:
    """One record after the other."""
    async with aio.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(READ_PARTITIONS)])
        left, before = count, cpu()
        async for record in consumer:
            record.value  # noqa: B018  touched
            left -= 1
            if not left:
                return per_record(before, count)
        raise AssertionError


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
    found = per_record(before, count)
    await consumer.stop()
    return found


PRODUCING: dict[tuple[str, str], Way] = {
    ("send", "kafka_fast"): blocking_send,
    ("send, in order", "aio"): send_in_order,
    ("send, in order", "aiokafka"): their_send_in_order,
    ("send, gathered", "aio"): send_gathered,
    ("send, gathered", "aiokafka"): their_send_gathered,
    ("one in flight", "aio"): one_in_flight,
    ("one in flight", "aiokafka"): their_one_in_flight,
}
READING: dict[tuple[str, str], Way] = {
    ("batches", "kafka_fast"): blocking_batches,
    ("batches", "aio"): batches,
    ("async for", "aio"): each,
    ("async for", "aiokafka"): their_each,
}
TARGETS = (
    ("send, in order", "aio", 2.5, "send", "kafka_fast"),
    ("send, in order", "aio", 1 / 12, "send, in order", "aiokafka"),
    ("send, gathered", "aio", 1 / 7, "send, gathered", "aiokafka"),
    ("one in flight", "aio", 0.7, "one in flight", "aiokafka"),
    ("async for", "aio", 1 / 8, "async for", "aiokafka"),
    ("batches", "aio", 1.1, "batches", "kafka_fast"),
)
"""Way and client, and how many times what of another they may cost."""


def measure(way: str, client: str) -> Figures:
    """Run one way here."""
    count = RECORDS[client]
    if (way, client) in READING:
        broker, _ = canned_broker(READINGS["poll(500)"], 4 * count)
    else:
        broker = NullBroker(partitions=16)
    with broker:
        found = {**PRODUCING, **READING}[way, client](broker.bootstrap, count)
        return found if isinstance(found, dict) else asyncio.run(found)


def measure_all(rounds: int) -> dict[tuple[str, str], float]:
    """Run all ways in turn, each in a process of its own; return medians."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for way, client in (*PRODUCING, *READING):
            command = [sys.executable, __file__, "--way", way, "--client", client]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            (value,) = json.loads(ran.stdout).values()
            found.setdefault((way, client), []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def main() -> None:
    """Measure one way, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way")
    parser.add_argument("--client", choices=sorted(RECORDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.way is not None:
        print(json.dumps(measure(options.way, options.client)))
        return
    report = "\n".join(report_of(measure_all(options.rounds), options.rounds))
    if options.out is None:
        print(report)
    else:
        options.out.write_text(f"{report}\n", encoding="utf-8")


def report_of(found: dict[tuple[str, str], float], rounds: int) -> Iterator[str]:
    """Yield the lines of a page about these medians."""
    yield "# asyncio"
    yield ""
    yield "Written by `python bench/asyncio_clients.py --rounds 5 --out FILE`; do not edit."
    yield ""
    today = datetime.now(tz=timezone.utc).date()
    yield f"- Date: {today}; medians of {rounds} rounds; null broker"
    system = f"{platform.system()} {platform.release()}"
    yield f"- Machine: {cpu_model()}, {os.cpu_count()} CPUs, {system}"
    versions = ", ".join(f"{it} {version_of(it)}" for it in ("kafka_fast", "aiokafka"))
    yield f"- Versions: Python {platform.python_version()}, {versions}"
    yield f"- Commit: {commit_of_tree()}"
    yield ""
    yield f"«in order»: {IN_ORDER:,} records are sent, then their handles are awaited one by one."
    yield f"«gathered»: {GATHERED:,} at a time. CPU: user and system time of the whole process."
    yield ""
    yield "| way | client | CPU, ns per record |"
    yield "|---|---|---|"
    for (way, client), value in sorted(found.items()):
        if way != "one in flight":
            yield f"| {way} | {client} | {value:.0f} |"
    yield ""
    yield "| way | client | p50, µs |"
    yield "|---|---|---|"
    for (way, client), value in sorted(found.items()):
        if way == "one in flight":
            yield f"| {way} | {client} | {value:.0f} |"
    yield ""
    yield "| what | reached | to reach |"
    yield "|---|---|---|"
    for way, client, share, of_way, of in TARGETS:
        ratio = found[way, client] / found[of_way, of]
        verdict = "" if ratio <= share else ", MISSED"
        yield f"| {client}: {way}, of {of}: {of_way} | {ratio:.3f}{verdict} | {share:.3f} |"


if __name__ == "__main__":
    main()
