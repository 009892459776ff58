"""How long clients at work hold their event loop, by how late a task is that is due every 5 ms.

    measure_blocks ─┬─► a process whose clients send and read a million records ──► worst delay
                    ├─► a process with idle clients, at the same time ────────────► worst delay
                    └─► the broker: frozen for 5 s in between

What the machine does to both processes shows in both figures.

    python bench/loops/asyncio_loop.py            starts Kafka, and prints both
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import NamedTuple

from bench.loops.asyncio_ways import VALUE
from bench.workload import MAX_BLOCK_MS
from kafka_fast import TopicPartition, aio
from kafka_fast.testing._kafka.real_kafka import RealKafka

RECORDS = 1_000_000
PARTITIONS = 4
EVERY = 0.005
AWAY = 5.0
WINDOW = 1_000
BEGUN, HALF = "begun", "half"
"""What the processes print; in the end it is what they measured."""


class Blocks(NamedTuple):
    """The most that a task was late, in ms: beside clients at work, and beside idle ones."""

    loaded_ms: float
    idle_ms: float


async def tick(late: list[float]) -> None:
    """Be due every 5 ms, and note in seconds by how much that is missed."""
    due = time.perf_counter()
    while True:
        due += EVERY
        await asyncio.sleep(due - time.perf_counter())
        now = time.perf_counter()
        late.append(now - due)
        due = max(due, now - EVERY)


async def send(producer: aio.Producer, topic: str) -> None:
    """Send a million records."""
    for number in range(RECORDS // WINDOW):
        partition = number % PARTITIONS
        handles = [await producer.send(topic, VALUE, partition=partition) for _ in range(WINDOW)]
        for handle in handles:
            await handle


async def read(consumer: aio.Consumer) -> None:
    """Read them; say when half of them are here."""
    count = 0
    async for _ in consumer:
        count += 1
        if count == RECORDS // 2:
            print(HALF, flush=True)
        if count == RECORDS:
            return


async def run(bootstrap: str, topic: str, *, is_idle: bool) -> float:
    """Return the most that the task was late, in ms."""
    async with (
        aio.Producer(bootstrap_servers=bootstrap, max_block_ms=MAX_BLOCK_MS) as producer,
        aio.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        await producer.partitions_for(topic)
        late: list[float] = []
        ticking = asyncio.create_task(tick(late))
        print(BEGUN, flush=True)
        if is_idle:
            await asyncio.to_thread(sys.stdin.read)
        else:
            await asyncio.gather(send(producer, topic), read(consumer))
        ticking.cancel()
        return max(late) * 1e3


def measure_blocks(kafka: RealKafka) -> Blocks:
    """Run both processes at once, and freeze the broker for a while."""
    topic = f"blocks-{time.time_ns()}"
    kafka.create_topic(topic, PARTITIONS)
    with ExitStack() as stack:

        def start(role: str) -> subprocess.Popen[str]:
            command = [sys.executable, __file__, "--role", role, "--topic", topic]
            command += ["--bootstrap", kafka.bootstrap]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            stack.callback(process.kill)
            return process

        idle, loaded = start("idle"), start("loaded")
        expect(idle, BEGUN)
        expect(loaded, BEGUN)
        expect(loaded, HALF)
        (node,) = kafka.nodes
        node.pause()
        time.sleep(AWAY)
        node.resume()
        loaded_ms = json.loads(line_of(loaded))
        return Blocks(loaded_ms, json.loads(idle.communicate()[0]))


def expect(process: subprocess.Popen[str], what: str) -> None:
    """Read a line of a process."""
    line = line_of(process)
    if line != what:
        raise RuntimeError(f"{line!r} instead of {what!r}")


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line of a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def main() -> None:
    """Be one of the processes, or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=["idle", "loaded"])
    parser.add_argument("--topic")
    parser.add_argument("--bootstrap")
    options = parser.parse_args()
    if options.role is None:
        with RealKafka() as kafka:
            print(measure_blocks(kafka))
        return
    is_idle = options.role == "idle"
    print(json.dumps(asyncio.run(run(options.bootstrap, options.topic, is_idle=is_idle))))


if __name__ == "__main__":
    main()
