"""asyncio's clients beside the blocking ones and aiokafka: CPU, latency, and how long a loop waits.

    python bench/loops/asyncio_clients.py [--rounds 3]    all ways, in turn: JSON lines
    python bench/loops/asyncio_clients.py --way "send, in order" --client kafka_fast.aio
    python bench/compare.py --only asyncio --out …   medians, tables and targets

Each way runs in a process of its own, against a null broker of its own and then against the one
real Kafka; the ways take turns. CPU is user and system time of the whole process (getrusage).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.compare import BENCH_JVM
from bench.consume import canned_broker
from bench.loops.asyncio_loop import measure_blocks
from bench.loops.asyncio_ways import AIO, BLOCKING, PRODUCING, READING, TOPIC, VALUE, Figures
from bench.workload import READ_PARTITIONS, READINGS
from kafka_fast import Producer
from kafka_fast.testing._kafka.broker_jars import RealKafkaError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.support.null_broker import NullBroker

RECORDS = {BLOCKING: 1_000_000, AIO: 1_000_000, "aiokafka": 60_000, "asyncio": 200_000}
BATCHES = 5_000_000
"""Records that are read in batches: a million take 0.15 s, too short to tell two
clients apart that differ by less than a quarter."""
SHORT = {
    ("send", BLOCKING),
    ("send, in order", AIO),
    ("one in flight", AIO),
    ("one in flight", "aiokafka"),
    ("batches", BLOCKING),
    ("batches", AIO),
}
TURNS = 3
"""Runs in each round of short ways, which take a second or less and differ by a quarter."""
FILL_SECONDS = 60
REAL = "asyncio real"
"""The section of what was measured with real Kafka; the other is that of the null broker."""


def main() -> None:
    """Measure one way, or all of them."""
    parser = argparse.ArgumentParser(description="Measure asyncio's clients.")
    parser.add_argument("--way")
    parser.add_argument("--client", choices=sorted(RECORDS))
    parser.add_argument("--bootstrap", help="of a broker with the topic; none: a null broker")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.way is not None:
        print(json.dumps(measure(options.way, options.client, options.bootstrap)))
        return
    for row in measure_all(options.rounds):
        print(json.dumps(row), flush=True)


def measure(way: str, client: str, bootstrap: str | None) -> Figures:
    """Run one way here."""
    count = BATCHES if way == "batches" else RECORDS[client]
    function = {**PRODUCING, **READING}[way, client]
    if bootstrap is not None:
        result = function(bootstrap, count)
        return result if isinstance(result, dict) else asyncio.run(result)
    if (way, client) in READING:
        broker, _ = canned_broker(READINGS["poll(500)"], 4 * count)
    else:
        broker = NullBroker(partitions=READ_PARTITIONS)
    with broker:
        return measure(way, client, broker.bootstrap)


def measure_all(rounds: int) -> Iterator[dict[str, Any]]:
    """Yield one row for each run."""
    for _ in range(rounds):
        yield from one_round(None)
    try:
        yield from measure_at_kafka(rounds)
    except (RealKafkaError, subprocess.CalledProcessError, OSError) as error:
        yield {"section": REAL, "scenario": "all", "contender": AIO, "error": str(error)}


def measure_at_kafka(rounds: int) -> Iterator[dict[str, Any]]:
    """Yield one row for each run with real Kafka."""
    with RealKafka(jvm_options=BENCH_JVM) as kafka:
        fill(kafka)
        for _ in range(rounds):
            for row in one_round(kafka.bootstrap):
                yield {**row, "section": REAL}
        for _ in range(rounds):
            blocks = measure_blocks(kafka)
            about = {"section": REAL, "scenario": "a task that is due every 5 ms"}
            yield {**about, "contender": AIO, "late_ms": blocks.loaded_ms}
            yield {**about, "contender": f"{AIO}, idle", "late_ms": blocks.idle_ms}


def one_round(bootstrap: str | None) -> Iterator[dict[str, Any]]:
    """Run every way, each run in a process of its own."""
    ways = [*PRODUCING, *READING]
    short = [one for one in ways if one in SHORT]
    for way, client in (*ways, *(TURNS - 1) * short):
        command = [sys.executable, __file__, "--way", way, "--client", client]
        if bootstrap is not None:
            command += ["--bootstrap", bootstrap]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        yield {"scenario": way, "contender": client, **json.loads(ran.stdout)}


def fill(kafka: RealKafka) -> None:
    """Write what is read, which also warms the broker up."""
    kafka.create_topic(TOPIC, READ_PARTITIONS)
    count = max(RECORDS.values())
    partitions = [number % READ_PARTITIONS for number in range(count)]
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for _ in range(BATCHES // count):
            producer.send_many(TOPIC, [VALUE] * count, partitions=partitions).result(FILL_SECONDS)


if __name__ == "__main__":
    main()
