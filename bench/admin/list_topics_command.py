"""How long `kafka-fast topics list` takes, beside a script of confluent-kafka that does the same.

    python bench/admin/list_topics_command.py [--rounds 5] [--json]

Seconds from the start of a process to its end, Python's own start included: that is what somebody
waits for. The broker is the embedded one, in another process, with 50 topics. The commands take
turns; a run is the median of several. «python» starts and does nothing. Modules are compiled before
the first run, as those of an installed package are.
"""

from __future__ import annotations

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


def seconds_of(command: list[str], environment: Mapping[str, str], lines: int) -> float:
    """Return how long a command takes, which prints so many lines."""
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    taken = time.perf_counter() - began
    assert len(done.stdout.splitlines()) == lines, done.stdout
    return taken


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
            seconds_of(command, environment, lines[contender])  # compiles its modules
        for _ in range(rounds):
            taken: dict[str, list[float]] = {contender: [] for contender in contenders}
            for _ in range(REPEATS):
                for contender, command in contenders.items():
                    taken[contender].append(seconds_of(command, environment, lines[contender]))
            for contender, seconds in taken.items():
                median = statistics.median(seconds) * 1000
                yield {"contender": contender, "scenario": SCENARIO, "call_ms": median}


if __name__ == "__main__":
    sys.exit(show_runs(__doc__, rows_of, 5))
