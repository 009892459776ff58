"""What the import of each kind of client costs, beside the other clients' of the same kind.

    python -m pytest -s -p no:cacheprovider bench/micro/micro_startup.py

CPU seconds of whole processes, in alternation, Python's own start included; compiled modules are
cached for all. The rows «import, make, close» have the first client of a process, too, whose broker
is not there: kafka_fast imports what runs a client when the first one is made.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

import pytest

ROUNDS = 21
LIMITS = {"Producer": 1.0, "Consumer": 1.0, "Admin": 1.0, "asyncio": 1.5}
"""Of confluent-kafka's, which imports asyncio for its blocking clients, too."""

OURS, CONFLUENT, NOTHING = "kafka_fast", "confluent-kafka", "python"
NOWHERE = "127.0.0.1:1"
PROGRAMS = {
    "Producer": {
        NOTHING: "pass",
        OURS: "from kafka_fast import Producer",
        CONFLUENT: "from confluent_kafka import Producer",
        "kafka-python": "from kafka import KafkaProducer",
    },
    "Consumer": {
        OURS: "from kafka_fast import Consumer",
        CONFLUENT: "from confluent_kafka import Consumer",
        "kafka-python": "from kafka import KafkaConsumer",
    },
    "Admin": {
        OURS: "from kafka_fast import Admin",
        CONFLUENT: "from confluent_kafka.admin import AdminClient",
        "kafka-python": "from kafka import KafkaAdminClient",
    },
    "asyncio": {
        "asyncio alone": "import asyncio",
        OURS: "from kafka_fast.aio import Producer",
        CONFLUENT: "from confluent_kafka.aio import AIOProducer",
        "aiokafka": "from aiokafka import AIOKafkaProducer",
    },
    "Producer: import, make, close": {
        OURS: f"from kafka_fast import Producer; Producer(bootstrap_servers='{NOWHERE}').close()",
        CONFLUENT: (
            "from confluent_kafka import Producer; "
            f"Producer({{'bootstrap.servers': '{NOWHERE}'}}).flush()"
        ),
    },
    "Consumer: import, make, close": {
        OURS: f"from kafka_fast import Consumer; Consumer(bootstrap_servers='{NOWHERE}').close()",
        CONFLUENT: (
            "from confluent_kafka import Consumer; "
            f"Consumer({{'bootstrap.servers': '{NOWHERE}', 'group.id': 'g'}}).close()"
        ),
    },
}


def cpu_seconds(program: str, environment: dict[str, str]) -> float:
    """Run a program in an interpreter of its own; return its CPU seconds."""
    silent = [(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]  # nobody listens at NOWHERE
    arguments = [sys.executable, "-c", program]
    process = os.posix_spawn(sys.executable, arguments, environment, file_actions=silent)
    _, status, usage = os.wait4(process, 0)
    assert status == 0, program
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("kind", PROGRAMS)
def test_import(kind: str, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONPATH": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    programs = PROGRAMS[kind]
    for program in programs.values():
        cpu_seconds(program, environment)
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            taken[name].append(cpu_seconds(program, environment))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"\n{kind}")
    for name, median in medians.items():
        print(f"{name:>16}: {1000 * median:6.1f} ms of CPU")
    if kind in LIMITS:
        assert medians[OURS] <= LIMITS[kind] * medians[CONFLUENT]
