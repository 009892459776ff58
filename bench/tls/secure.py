"""What TLS costs a client: the same work over plaintext and over TLS, against real Kafka.

    python bench/tls/secure.py [--rounds 3] [--json]

Two rows need the null broker, behind a front (`front.py`) that speaks TLS or does not: sending
beside a thread that spins, because only the null broker tells when bytes arrived, and two hundred
connections at once (`storm.py`).

Broker and client speak TLS 1.3 with AES-GCM, as both choose by themselves. Ways take turns within
every round, each run is a process of its own (`end_to_end.py`, `consume.py`), and the table has the
medians. «AES alone» encrypts as many bytes with OpenSSL, in memory and in records of 16 KiB: what
no client can save.

`--json` prints one line for each run, as compare.py reads them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.workload import READ_PARTITIONS, READINGS, SCENARIOS, read_topic
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from kafka_fast.testing.certificates import CertificateAuthority

HERE = Path(__file__).resolve().parents[1]
# A benchmark's broker lives for minutes: the optimizing compiler, room, and no full disk.
JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
OVERRIDES = {"log.segment.delete.delay.ms": 100}
WARM_UP = 2_000_000
RUN_TIMEOUT = 600
LATENCY = "one in flight"
READING = "poll(500)"
HOG = "beside a spinning thread"
STORM = "200 connections at once"
ELSEWHERE = "opened by another process"
RECORD_BYTES = 16_384
AES_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Way:
    """A client, and how it connects.

    Attributes:
        contender: of CONTENDERS.
        listener: PLAINTEXT or SSL.
        relay: have Python's ssl speak TLS.
        records: of 100 bytes in a run, about a second's work.
    """

    contender: str
    listener: str
    records: int
    relay: bool = False


WAYS = {
    "kafka_fast": Way("kafka_fast", "SSL", 1_500_000),
    "kafka_fast, plaintext": Way("kafka_fast", "PLAINTEXT", 1_500_000),
    "kafka_fast, relay": Way("kafka_fast", "SSL", 1_500_000, relay=True),
    "confluent": Way("confluent", "SSL", 500_000),
    "confluent, plaintext": Way("confluent", "PLAINTEXT", 500_000),
    "raw socket": Way("raw socket", "SSL", 5_000_000),
}
LATENCY_RECORDS = 1000
LATENCY_TURNS = 3
HOG_RECORDS = 300


def main() -> int:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description="Measure what TLS costs.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one line for each run")
    options = parser.parse_args()
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in measure(options.rounds):
        if options.json:
            print(json.dumps(row), flush=True)
        rows[row["scenario"], row["contender"]].append(row)
    if options.json:
        return 0  # compare.py finds the errors among the lines
    print_table(rows)
    return 1 if any("error" in row for runs in rows.values() for row in runs) else 0


def measure(rounds: int) -> Iterator[dict[str, Any]]:
    """Yield one row for each run."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            yield {"scenario": "1000 B", "contender": "AES alone", **aes_alone(Path(folder))}
            yield from null_round()
        with SecureKafka(Path(folder), jvm_options=JVM, overrides=OVERRIDES) as kafka:
            for way in (WAYS["raw socket"], WAYS["kafka_fast, plaintext"]):
                list(produce(kafka, "send", way, WARM_UP))
            fill_topics(kafka)
            for _ in range(rounds):
                yield from one_round(kafka)


def one_round(kafka: SecureKafka) -> Iterator[dict[str, Any]]:
    """Run every scenario once, every way."""
    for scenario in ("send", "1000 B"):
        for name, way in WAYS.items():
            records = way.records // (5 if scenario == "1000 B" else 1)
            for row in produce(kafka, scenario, way, records):
                yield {**row, "scenario": scenario, "contender": name}
    for name, way in WAYS.items():
        if way.contender != "raw socket":
            yield {**consume(kafka, way), "scenario": READING, "contender": name}
    for _ in range(LATENCY_TURNS):  # where the system puts threads decides much
        for name, way in WAYS.items():
            yield {**latency(kafka, way), "scenario": LATENCY, "contender": name}


def null_round() -> Iterator[dict[str, Any]]:
    """Run what needs the null broker once, every way."""
    for name, way in WAYS.items():
        if way.contender != "raw socket":
            command = ["end_to_end.py", way.contender, "send", "--experiment=hog"]
            command += [f"--records={HOG_RECORDS}", f"--front={way.listener}"]
            yield {**execute(command, way), "scenario": HOG, "contender": name}
    for name, way in WAYS.items():
        if way.contender == "kafka_fast":
            command = ["tls/storm.py", f"--security={way.listener}"]
            yield {**execute(command, way), "scenario": STORM, "contender": name}
    way = WAYS["kafka_fast"]
    row = execute(["tls/storm.py", f"--security={way.listener}", "--elsewhere"], way)
    yield {**row, "scenario": STORM, "contender": ELSEWHERE}


def produce(kafka: SecureKafka, scenario: str, way: Way, records: int) -> Iterator[dict[str, Any]]:
    """Yield what sending so many records cost."""
    topic = f"secure-{time.monotonic_ns()}"
    kafka.create_topic(topic, SCENARIOS[scenario].partitions)
    yield run(kafka, way, ["end_to_end.py", way.contender, scenario, f"--topic={topic}",
                           f"--records={records}"])  # fmt: skip
    kafka.delete_topic(topic)


def latency(kafka: SecureKafka, way: Way) -> dict[str, Any]:
    """Return how long one record in flight takes."""
    topic = f"secure-{time.monotonic_ns()}"
    kafka.create_topic(topic, 1)
    row = run(kafka, way, ["end_to_end.py", way.contender, "send", f"--topic={topic}",
                           f"--records={LATENCY_RECORDS}", "--experiment=latency"])  # fmt: skip
    kafka.delete_topic(topic)
    return row


def fill_topics(kafka: SecureKafka) -> None:
    """Write what is read, a topic for each number of records."""
    for records in {way.records for way in WAYS.values() if way.contender != "raw socket"}:
        kafka.create_topic(read_topic(READINGS[READING], records), READ_PARTITIONS)
        way = WAYS["kafka_fast, plaintext"]
        filled = run(kafka, way, ["consume.py", READING, "--fill", f"--records={records}"])
        if "error" in filled:
            raise RuntimeError(filled["error"])


def consume(kafka: SecureKafka, way: Way) -> dict[str, Any]:
    """Return what reading a topic cost."""
    return run(kafka, way, ["consume.py", way.contender, READING, f"--records={way.records}"])


def run(kafka: SecureKafka, way: Way, command: list[str]) -> dict[str, Any]:
    """Run a program against real Kafka; return what it printed, or its error."""
    properties = kafka.client_properties(way.listener)
    properties.pop("ssl.truststore.type", None)
    authority = properties.pop("ssl.truststore.location", None)
    if authority is not None:
        properties["ssl.ca.location"] = authority
    bootstrap = properties.pop("bootstrap.servers")
    broker = [f"--bootstrap={bootstrap}", f"--broker-pid={kafka.nodes[0].pid}"]
    return execute([*command, *broker, f"--security={json.dumps(properties)}"], way)


def execute(command: list[str], way: Way) -> dict[str, Any]:
    """Run a program in a process of its own; return what it printed, or its error."""
    full = [sys.executable, str(HERE / command[0]), *command[1:]]
    environment = {**os.environ, "KAFKA_FAST_TLS": "relay"} if way.relay else None
    done = subprocess.run(
        full, capture_output=True, text=True, timeout=RUN_TIMEOUT, env=environment
    )
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def aes_alone(folder: Path) -> dict[str, Any]:
    """Return what encrypting costs, in CPU seconds for a million records of 1000 bytes."""
    authority = CertificateAuthority(folder)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("localhost").both)
    client = ssl.create_default_context(cafile=str(authority.certificate))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far, near, far):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    cipher = near.cipher()
    assert cipher is not None, "the handshake is over"
    piece = bytes(RECORD_BYTES)
    start = time.process_time()
    for _ in range(AES_BYTES // RECORD_BYTES):
        near.write(piece)
        to_server.read()
    return {"cpu_per_million": time.process_time() - start, "cipher": cipher[0]}


def print_table(rows: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    """Print the medians."""
    print("| scenario | client | CPU s per million | records/s | p50 µs | p99 µs |")
    print("|---|---|---|---|---|---|")
    for (scenario, contender), runs in rows.items():
        cells = [_median(runs, metric, digits) for metric, digits in COLUMNS.items()]
        failed = next((row["error"] for row in runs if "error" in row), "")
        print(f"| {scenario} | {contender} | {' | '.join(cells)} | {failed}")


COLUMNS = {"cpu_per_million": 3, "records_per_s": 0, "p50_us": 0, "p99_us": 0}


def _median(rows: list[dict[str, Any]], metric: str, digits: int) -> str:
    values = [row[metric] for row in rows if metric in row]
    return f"{statistics.median(values):,.{digits}f}" if values else ""


if __name__ == "__main__":
    sys.exit(main())
