"""How long `kafka-fast topics list` takes, beside a script of confluent-kafka that does the same.

    python bench/admin/list_topics_command.py [--rounds 5] [--json]

Seconds from the start of a process to its end, Python's own start included: that is what somebody
waits for. The CPU seconds of the process say more on a machine that is busy. The broker is the
embedded one, in another process, with 50 topics. The commands take turns; a run is the median of
several. «python» starts and does nothing. Modules are compiled before the first run, as those of an
installed package are.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping

from bench.admin.runs import Row, compiling, show_runs
from kafka_fast import Admin
from kafka_fast.admin import NewTopic
from kafka_fast.testing import EmbeddedKafka

TOPICS = 50
REPEATS = 7
"""Of a run."""
SCENARIO = f"list {TOPICS} topics, a process"

CONFLUENT = """\
import sys
from confluent_kafka.admin import AdminClient

topics = AdminClient({"bootstrap.servers": sys.argv[1]}).list_topics(timeout=10).topics
width = max(map(len, topics))
print(f"{'TOPIC':{width}}  PARTITIONS")
for name in sorted(topics):
    print(f"{name:{width}}  {len(topics[name].partitions):10}")
"""


def commands(bootstrap: str) -> dict[str, list[str]]:
    """Return the commands, by contender."""
    return {
        "kafka_fast": [sys.executable, "-m", "kafka_fast", "topics", "list", "-b", bootstrap],
        "confluent": [sys.executable, "-c", CONFLUENT, bootstrap],
        "python": [sys.executable, "-c", "pass"],
    }


def run_command(
    command: list[str], environment: Mapping[str, str], lines: int
) -> tuple[float, float]:
    """Run a command that prints so many lines; return its seconds and its CPU seconds."""
    began, cpu = time.perf_counter(), children_seconds()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    taken = time.perf_counter() - began, children_seconds() - cpu
    assert len(done.stdout.splitlines()) == lines, done.stdout
    return taken


def children_seconds() -> float:
    """Return the CPU seconds of the processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(rounds: int) -> Iterator[Row]:
    """Run the commands in turns."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedKafka() as kafka:
        environment = compiling(folder)
        with Admin(bootstrap_servers=kafka.bootstrap) as admin:
            new_topics = [NewTopic(f"topic-{number}", 3) for number in range(TOPICS)]
            admin.create_topics(new_topics).raise_first()
        contenders = commands(kafka.bootstrap)
        lines = {"kafka_fast": TOPICS + 1, "confluent": TOPICS + 1, "python": 0}
        for contender, command in contenders.items():
            run_command(command, environment, lines[contender])  # compiles its modules
        for _ in range(rounds):
            taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
            for _ in range(REPEATS):
                for contender, command in contenders.items():
                    taken[contender].append(run_command(command, environment, lines[contender]))
            for contender, runs in taken.items():
                wall, cpu = (1000 * statistics.median(times) for times in zip(*runs, strict=True))
                measured = {"call_cpu_ms": cpu, "call_ms": wall}
                yield {"contender": contender, "scenario": SCENARIO, **measured}


if __name__ == "__main__":
    sys.exit(show_runs(__doc__, rows_of, 5))
