"""What the import of a producer costs, as a ratio to confluent-kafka's.

    python -m pytest -s -p no:cacheprovider bench/micro/micro_startup.py

CPU seconds of whole processes, in alternation; compiled modules are cached for both.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

ROUNDS = 21
LIMIT = 1.2
"""Of confluent-kafka's."""

PROGRAMS = {
    "python": "pass",
    "kafka_fast": "from kafka_fast import Producer",
    "confluent-kafka": "from confluent_kafka import Producer",
}


def cpu_seconds(program: str, environment: dict[str, str]) -> float:
    """Run a program in an interpreter of its own; return its CPU seconds."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", program], environment)
    _, status, usage = os.wait4(process, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime


def test_import(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONPATH": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for program in PROGRAMS.values():
        cpu_seconds(program, environment)
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, program in PROGRAMS.items():
            taken[name].append(cpu_seconds(program, environment))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, median in medians.items():
        print(f"{name:>16}: {1000 * median:6.1f} ms of CPU")
    assert medians["kafka_fast"] <= LIMIT * medians["confluent-kafka"]
