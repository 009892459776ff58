"""asyncio's clients beside the blocking ones and aiokafka: CPU, latency, and how long a loop waits.

    python bench/asyncio_clients.py                    all ways, in turn, and their table
    python bench/asyncio_clients.py --kafka            at real Kafka as well, with the loop's blocks
    python bench/asyncio_clients.py --way "send, in order" --client aio

Each way runs in a process of its own, against a null broker of its own or the one real Kafka; the
ways take turns, and the table has medians. CPU is user and system time of the whole process
(getrusage).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from asyncio_loop import MAX_BLOCK_MS, measure_blocks
from asyncio_ways import GATHERED, IN_ORDER, PRODUCING, READING, TOPIC, VALUE, Figures
from compare import BENCH_JVM
from consume import canned_broker
from report import commit_of_tree, cpu_model, version_of
from workload import READ_PARTITIONS, READINGS

from kafka_fast import Producer
from kafka_fast.testing.null_broker import NullBroker
from kafka_fast.testing.real_kafka import RealKafka

RECORDS = {"kafka_fast": 1_000_000, "aio": 1_000_000, "aiokafka": 60_000, "asyncio": 200_000}
Found = dict[tuple[str, str], float]
"""What each way cost each client."""

TARGETS = (
    ("send, in order", "aio", 2.5, "send", "kafka_fast"),
    ("send, in order", "aio", 1 / 12, "send, in order", "aiokafka"),
    ("send, gathered", "aio", 1 / 7, "send, gathered", "aiokafka"),
    ("one in flight", "aio", 0.7, "one in flight", "aiokafka"),
    ("async for", "aio", 1 / 8, "async for", "aiokafka"),
    ("batches", "aio", 1.1, "batches", "kafka_fast"),
)
"""Way and client, and how many times what of another they may cost."""


def measure(way: str, client: str, bootstrap: str | None) -> Figures:
    """Run one way here."""
    count = RECORDS[client]
    function = {**PRODUCING, **READING}[way, client]
    if bootstrap is not None:
        found = function(bootstrap, count)
        return found if isinstance(found, dict) else asyncio.run(found)
    if (way, client) in READING:
        broker, _ = canned_broker(READINGS["poll(500)"], 4 * count)
    else:
        broker = NullBroker(partitions=READ_PARTITIONS)
    with broker:
        return measure(way, client, broker.bootstrap)


def measure_all(rounds: int, bootstrap: str | None) -> Found:
    """Run all ways in turn, each in a process of its own; return medians."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for way, client in (*PRODUCING, *READING):
            command = [sys.executable, __file__, "--way", way, "--client", client]
            if bootstrap is not None:
                command += ["--bootstrap", bootstrap]
            ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            (value,) = json.loads(ran.stdout).values()
            found.setdefault((way, client), []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def fill(kafka: RealKafka) -> None:
    """Write what is read, which also warms the broker up."""
    kafka.create_topic(TOPIC, READ_PARTITIONS)
    count = max(RECORDS.values())
    partitions = [number % READ_PARTITIONS for number in range(count)]
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send_many(TOPIC, [VALUE] * count, partitions=partitions)


def main() -> None:
    """Measure one way, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way")
    parser.add_argument("--client", choices=sorted(RECORDS))
    parser.add_argument("--bootstrap", help="of a broker with the topic; none: a null broker")
    parser.add_argument("--kafka", action="store_true", help="measure at real Kafka as well")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.way is not None:
        print(json.dumps(measure(options.way, options.client, options.bootstrap)))
        return
    lines = [*head(options.rounds), *report("null broker", measure_all(options.rounds, None))]
    if options.kafka:
        with RealKafka(jvm_options=BENCH_JVM) as kafka:
            fill(kafka)
            found = measure_all(options.rounds, kafka.bootstrap)
            lines += report(f"Kafka {kafka.release.version}", found)
            lines += report_blocks(kafka, options.rounds)
    text = "\n".join(lines)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(f"{text}\n", encoding="utf-8")


def head(rounds: int) -> Iterator[str]:
    """Yield the first lines of the page."""
    yield "# asyncio"
    yield ""
    yield "Written by `python bench/asyncio_clients.py --kafka --rounds 5 --out FILE`; do not edit."
    yield ""
    yield f"- Date: {datetime.now(tz=timezone.utc).date()}; medians of {rounds} rounds"
    system = f"{platform.system()} {platform.release()}"
    yield f"- Machine: {cpu_model()}, {os.cpu_count()} CPUs, {system}"
    versions = ", ".join(f"{it} {version_of(it)}" for it in ("kafka_fast", "aiokafka"))
    yield f"- Versions: Python {platform.python_version()}, {versions}"
    yield f"- Commit: {commit_of_tree()}"
    yield ""
    yield f"«in order»: {IN_ORDER:,} records are sent, then their handles are awaited one by one."
    yield f"«gathered»: {GATHERED:,} at a time. CPU: user and system time of the whole process."


def report(where: str, found: Found) -> Iterator[str]:
    """Yield the tables of the ways at one broker."""
    yield ""
    yield f"## {where}"
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


def report_blocks(kafka: RealKafka, rounds: int) -> Iterator[str]:
    """Measure how long a loop is blocked, and yield the table."""
    runs = [measure_blocks(kafka) for _ in range(rounds)]
    loaded = statistics.median(run.loaded_ms for run in runs)
    idle = statistics.median(run.idle_ms for run in runs)
    yield ""
    yield "## A task that is due every 5 ms"
    yield ""
    yield "While 1,000,000 records are sent and read in its loop and the broker is frozen for 5 s"
    yield "in between, beside a process with idle clients at the same time. The most that it was"
    yield "late, medians of the rounds:"
    yield ""
    yield "| in the loop | ms |"
    yield "|---|---|"
    yield f"| clients at work | {loaded:.1f} |"
    yield f"| idle clients | {idle:.1f} |"
    yield ""
    yield "| what | reached | to reach |"
    yield "|---|---|---|"
    for what, value, limit in (
        ("longest block, of max.block.ms", loaded / MAX_BLOCK_MS, 1 / 20),
        ("late beyond idle clients, ms", loaded - idle, 20.0),
    ):
        verdict = "" if value <= limit else ", MISSED"
        yield f"| {what} | {value:.3f}{verdict} | {limit:.3f} |"


if __name__ == "__main__":
    main()
