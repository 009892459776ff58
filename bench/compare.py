"""Compare kafka_fast with the other Python clients, and write RESULTS.md.

    python bench/compare.py                  the quick set, about 30 minutes
    FULL=1 python bench/compare.py           more records and rounds
    python bench/compare.py --only null      one section, or several

Each run is a process of its own (`end_to_end.py`, `consume.py`), contenders take turns within every
round, and the tables hold the medians of the rounds. Slow contenders send and read less. The
sections `micro`, `spark`, `connector`, `secure`, `asyncio` and `admin` are programs of their own,
which print one JSON line for each row.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS
from bench.rebalance import HEARTBEAT_MS, KINDS, PARTITIONS
from bench.tables.report import write_report
from bench.tables.results import Results
from bench.workload import (
    LATENCY_ONCE,
    LATENCY_TURNS,
    READ_PARTITIONS,
    READINGS,
    SCENARIOS,
    Scenario,
    read_topic,
)
from kafka_fast.testing._kafka.broker_jars import RealKafkaError
from kafka_fast.testing._kafka.real_kafka import RealKafka

HERE = Path(__file__).resolve().parent
FULL = os.environ.get("FULL", "0") not in ("", "0")
ROUNDS = 5 if FULL else 3
SCALE = 3 if FULL else 1
RUN_TIMEOUT = 600
PROXY_DELAY = 0.010
MEMORY_SECONDS = 60.0
STREAM_SECONDS = 120 if FULL else 30
SECTIONS = ("null", "real", "latency", "wan", "hog", "memory", "consume", "micro", "spark",
            "connector", "secure", "asyncio", "admin")  # fmt: skip

NULL_SECTIONS = ("null", "latency", "wan", "hog", "memory")  # against a null broker of each run

# Records of 100 bytes in one run: about a second of each contender's time.
RECORDS = {
    "kafka_fast": 3_000_000,
    "confluent": 500_000,
    "aiokafka": 50_000,
    "kafka-python": 20_000,
    "raw socket": 10_000_000,
}
# The same of reading.
READ_RECORDS = {
    "kafka_fast": 3_000_000,
    "confluent": 1_000_000,
    "aiokafka": 500_000,
    "kafka-python": 64_000,
    "raw socket": 3_000_000,
}
PREFETCH_RECORDS = 16_000_000
WAITING_RECORDS = 10_000_000
REBALANCES = 11
LATENCY_RECORDS = 1000
HOG_RECORDS = 100
WAN_RECORDS = 2_000_000
# What real Kafka is asked for: one process of it and the client share the cores of the machine.
REAL_SCENARIOS = ("send", "list", "Arrow", "keyed", "callback", "lz4", "zstd", "gzip", "1000 B")
# A benchmark's broker lives for minutes: the optimizing compiler, room, and no full disk.
BENCH_JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
BENCH_OVERRIDES = {
    "log.segment.delete.delay.ms": 100,
    # As often as members of classic groups send them in the row «rebalance».
    "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
}
BROKER_WARM_UP = 10_000_000
SPARK_RECORDS = 3_000_000
ADMIN_PROGRAMS = ("admin/describe_topics.py", "admin/group_lag.py", "admin/list_topics_command.py")


@dataclass(frozen=True, slots=True)
class Job:
    """One row of a table: run once in each round.

    Attributes:
        section: of SECTIONS.
        contender: of CONTENDERS.
        scenario: of SCENARIOS.
        records: how many to send.
        arguments: of end_to_end.py, beside those.
    """

    section: str
    contender: str
    scenario: str
    records: int
    arguments: tuple[str, ...] = field(default=())


def records_for(contender: str, scenario: Scenario, section: str) -> int:
    """Return how many records make a run of about a second."""
    count = RECORDS[contender] * SCALE
    if scenario.value_size > 100:
        count //= 5
    if scenario.codec != "none":
        count //= 1 if contender == "raw socket" else 2
    if scenario.mode == "callback" or section == "real":
        count //= 2
    return count


def plan(section: str) -> list[Job]:
    """Return the jobs of a section, contenders next to each other."""
    everyone = list(CONTENDERS)
    if section in ("null", "real"):
        return [
            Job(section, contender, name, records_for(contender, scenario, section))
            for name, scenario in SCENARIOS.items()
            if section == "null" or name in REAL_SCENARIOS
            for contender in everyone
        ]
    if section == "latency":
        arguments = ("--experiment=latency",)
        turns = [[c for c in everyone if c not in LATENCY_ONCE]] * (LATENCY_TURNS - 1) + [everyone]
        return [
            Job(section, c, "send", LATENCY_RECORDS * SCALE, arguments)
            for turn in turns
            for c in turn
        ]
    if section == "hog":
        arguments = ("--experiment=hog",)
        return [Job(section, c, "send", HOG_RECORDS * SCALE, arguments) for c in everyone]
    if section == "wan":
        delay = f"--proxy-delay={PROXY_DELAY}"
        scenario = "send, 1 partition"
        trip = Job("wan trip", "raw socket", scenario, 100, (delay, "--experiment=latency"))
        contenders = ("kafka_fast", "confluent", "raw socket")
        return [trip, *(Job(section, c, scenario, WAN_RECORDS, (delay,)) for c in contenders)]
    limits = ("--experiment=memory", f"--seconds={MEMORY_SECONDS}")
    return [Job(section, "kafka_fast", "send", 0, limits)]


def plan_reading(section: str) -> list[Job]:
    """Return the jobs that read: `consume` on the null broker, `consume real`."""
    jobs = [
        Job(section, contender, name, records // 4 if reading.value_size > 100 else records)
        for name, reading in READINGS.items()
        for contender, records in READ_RECORDS.items()
    ]
    if section == "consume real":
        return jobs
    return [
        *jobs,
        Job("prefetch", "kafka_fast", "poll(500)", PREFETCH_RECORDS, ("--experiment=prefetch",)),
        Job("waiting", "kafka_fast", "poll(500)", WAITING_RECORDS, ("--experiment=memory",)),
    ]


def run_rebalances(results: Results, kafka: RealKafka) -> None:
    """Have a member leave a group, again and again, with each client and protocol."""
    for protocol in ("classic", "consumer"):
        for contender in KINDS:
            topic = f"rebalance-{protocol}-{contender}"
            kafka.create_topic(topic, PARTITIONS)
            command = [sys.executable, str(HERE / "rebalance.py"), contender, protocol]
            command += [f"--bootstrap={kafka.bootstrap}", f"--topic={topic}"]
            command += [f"--rounds={REBALANCES * SCALE}"]
            job = Job("rebalance", contender, protocol, 0)
            result = output_of(command)[-1]
            results.add(job, result)
            kafka.delete_topic(topic)
            print(describe(job, result), file=sys.stderr, flush=True)


def run_reading(job: Job, broker: tuple[str, int] | None) -> dict[str, Any]:
    """Run one job that reads in a process of its own; return what it printed, or its error."""
    command = [sys.executable, str(HERE / "consume.py"), job.contender, job.scenario]
    command += [f"--records={job.records}", *job.arguments]
    if broker is not None:
        command += [f"--bootstrap={broker[0]}", f"--broker-pid={broker[1]}"]
    return output_of(command)[-1]


def fill_topics(kafka: RealKafka) -> None:
    """Write what is read from real Kafka, a topic for each kind and number of records."""
    jobs = {
        read_topic(READINGS[reading.scenario], reading.records): reading
        for reading in plan_reading("consume real")
    }
    for topic, job in jobs.items():
        kafka.create_topic(topic, READ_PARTITIONS)
        command = [sys.executable, str(HERE / "consume.py"), "--fill", job.scenario]
        command += [f"--records={job.records}", f"--bootstrap={kafka.bootstrap}"]
        filled = output_of(command)[-1]
        if "error" in filled:
            raise RuntimeError(f"{topic}: {filled['error']}")


def run_reading_round(jobs: list[Job], results: Results, kafka: RealKafka | None) -> None:
    """Run every job that reads once and keep what it measured."""
    for job in jobs:
        if results.is_unsupported(job):
            continue
        node = kafka.nodes[0] if kafka is not None else None
        result = run_reading(job, None if node is None else (node.address, node.pid))
        results.add(job, result)
        print(describe(job, result), file=sys.stderr, flush=True)


def run_job(job: Job, broker: tuple[str, int] | None, topic: str = "bench") -> dict[str, Any]:
    """Run one job in a process of its own; return what it printed, or its error."""
    command = [sys.executable, str(HERE / "end_to_end.py"), job.contender, job.scenario]
    command += [f"--records={job.records}", f"--topic={topic}", *job.arguments]
    if broker is not None:
        command += [f"--bootstrap={broker[0]}", f"--broker-pid={broker[1]}"]
    return output_of(command)[-1]


def output_of(command: list[str], timeout: int = RUN_TIMEOUT) -> list[dict[str, Any]]:
    """Run a program; return its JSON lines, at least one, or what went wrong as the only one."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return [{"error": f"no result after {timeout} s"}]
    if run.returncode != 0 or not run.stdout:
        return [{"error": (run.stderr.strip().splitlines() or ["no output"])[-1]}]
    return [json.loads(line) for line in run.stdout.splitlines()]


def run_round(
    jobs: list[Job], results: Results, kafka: RealKafka | None, topics: Iterator[int]
) -> None:
    """Run every job once and keep what it measured."""
    for job in jobs:
        if results.is_unsupported(job):
            continue
        if kafka is None:
            result = run_job(job, None)
        else:
            topic = f"bench-{next(topics)}"
            # The latency rows have one partition, as against the null broker.
            latency = job.section.startswith("latency")
            kafka.create_topic(topic, 1 if latency else SCENARIOS[job.scenario].partitions)
            node = kafka.nodes[0]
            result = run_job(job, (node.address, node.pid), topic)
            kafka.delete_topic(topic)
        results.add(job, result)
        print(describe(job, result), file=sys.stderr, flush=True)


def describe(job: Job, result: dict[str, Any]) -> str:
    """Return one line that says what a run brought."""
    shown = {
        key: f"{value:.4g}" if isinstance(value, float) else value
        for key, value in result.items()
        if key not in ("contender", "scenario")
    }
    return f"{job.section} | {job.scenario} | {job.contender}: {shown}"


def run_sections(sections: list[str], results: Results, rounds: int) -> None:
    """Run the sections that need no Kafka, then those that do."""
    topics = iter(range(1_000_000))
    run_programs(sections, results, rounds)
    jobs = [job for section in sections if section in NULL_SECTIONS for job in plan(section)]
    for _ in range(rounds):
        run_round(jobs, results, None, topics)
        jobs = [job for job in jobs if job.section != "memory"]  # once: it has no spread
    if "consume" in sections:
        for _ in range(rounds):
            run_reading_round(plan_reading("consume"), results, None)
    with ExitStack() as stack:
        if "real" not in sections and "consume" not in sections:
            return
        try:
            kafka = stack.enter_context(RealKafka(jvm_options=BENCH_JVM, overrides=BENCH_OVERRIDES))
        except RealKafkaError as error:
            results.note(f"Real Kafka did not start: {error}")
            return
        warm_up(kafka)
        jobs = plan("real") if "real" in sections else []
        if jobs and "latency" in sections:
            jobs += [
                Job("latency real", j.contender, j.scenario, j.records, j.arguments)
                for j in plan("latency")
            ]
        for _ in range(rounds):
            run_round(jobs, results, kafka, topics)
        if "consume" in sections:
            fill_topics(kafka)
            for _ in range(rounds):
                run_reading_round(plan_reading("consume real"), results, kafka)
            run_rebalances(results, kafka)


def run_programs(sections: list[str], results: Results, rounds: int) -> None:
    """Run the sections that are programs of their own.

    Spark repeats its jobs in one session, and `secure` its rounds against one broker.
    """
    if "micro" in sections:
        for _ in range(rounds):
            run_program("micro", ["micro/record_core.py"], results)
    if "spark" in sections:
        options = ["--json", f"--records={SPARK_RECORDS}", f"--rounds={rounds}"]
        run_program("spark", ["spark/spark_write.py", *options], results)
    if "connector" in sections:
        options = ["--json", f"--rounds={rounds}", f"--seconds={STREAM_SECONDS}"]
        run_program(
            "connector", ["spark/spark_connector.py", *options], results, RUN_TIMEOUT * rounds
        )
    if "secure" in sections:
        options = ["--json", f"--rounds={rounds}"]
        run_program("secure", ["tls/secure.py", *options], results, RUN_TIMEOUT * rounds)
    if "asyncio" in sections:
        command = ["loops/asyncio_clients.py", f"--rounds={rounds}"]
        run_program("asyncio", command, results, RUN_TIMEOUT * rounds)
    if "admin" in sections:
        for program in ADMIN_PROGRAMS:
            run_program("admin", [program, "--json", f"--rounds={rounds}"], results)


def run_program(
    section: str, command: list[str], results: Results, timeout: int = RUN_TIMEOUT
) -> None:
    """Run one program and keep the rows that it prints, or its error.

    A row may name another section than `section`.
    """
    for row in output_of([sys.executable, str(HERE / command[0]), *command[1:]], timeout):
        contender, scenario = row.pop("contender", "kafka_fast"), row.pop("scenario", command[0])
        job = Job(row.pop("section", section), contender, scenario, 0)
        results.add(job, row)
        print(describe(job, row), file=sys.stderr, flush=True)


def warm_up(kafka: RealKafka) -> None:
    """Let the broker's compiler see both large and small requests before anything counts."""
    for contender, records in (("raw socket", BROKER_WARM_UP), ("confluent", 500_000)):
        topic = f"warm-up-{records}"
        kafka.create_topic(topic, 16)
        node = kafka.nodes[0]
        run_job(Job("warm-up", contender, "send", records), (node.address, node.pid), topic)
        kafka.delete_topic(topic)


def main() -> int:
    """Run what was asked for and write the report."""
    parser = argparse.ArgumentParser(description="Compare the clients; write RESULTS.md.")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    sections = options.only or list(SECTIONS)
    results = Results(median=statistics.median)
    started, load = time.monotonic(), os.getloadavg()[0]
    run_sections(sections, results, options.rounds)
    minutes = (time.monotonic() - started) / 60
    loads = (load, os.getloadavg()[0])
    write_report(
        options.out,
        results,
        rounds=options.rounds,
        minutes=minutes,
        loads=loads,
        only=options.only or (),
    )
    failed = results.errors()
    for error in failed:
        print(f"FAILED {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
