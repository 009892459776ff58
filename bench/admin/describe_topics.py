"""What it costs to describe a cluster of many partitions: CPU seconds, ours beside confluent's.

    python bench/admin/describe_topics.py [--partitions 10000] [--rounds 7]

The broker is the embedded one, in a process of its own. Each contender is a process of its own as
well, and they take turns; a round describes all topics, several times, and counts the CPU seconds
of its own process (getrusage), without the start of the interpreter and without the connection.
Prints one line for each, with the median of the rounds, and a last line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable

from kafka_fast import Admin
from kafka_fast.admin import NewTopic
from kafka_fast.testing import EmbeddedKafka

PARTITIONS_OF_A_TOPIC = 50
CALLS = 5
"""Of a round."""


def cpu() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ours(bootstrap: str) -> Callable[[], int]:
    """Return a call of kafka_fast that counts all partitions."""
    admin = Admin(bootstrap_servers=bootstrap)
    names = list(admin.list_topics())

    def describe() -> int:
        described = admin.describe_topics(names).raise_first()
        return sum(len(topic.partitions) for topic in described.values())

    return describe


def confluent(bootstrap: str) -> Callable[[], int]:
    """Return a call of confluent-kafka that counts all partitions."""
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = list(admin.list_topics().topics)

    def describe() -> int:
        futures = admin.describe_topics(TopicCollection(names))
        return sum(len(future.result().partitions) for future in futures.values())

    return describe


CONTENDERS = {"kafka_fast": ours, "confluent-kafka": confluent}


def measure(contender: str, bootstrap: str, partitions: int) -> None:
    """Print the CPU seconds of one call, in this process."""
    describe = CONTENDERS[contender](bootstrap)
    assert describe() == partitions  # connects
    began = cpu()
    for _ in range(CALLS):
        assert describe() == partitions
    print((cpu() - began) / CALLS)


def run_process(contender: str, bootstrap: str, partitions: int) -> float:
    """Measure in another process, and return the CPU seconds of one call."""
    command = [sys.executable, __file__, "--measure", contender, bootstrap, str(partitions)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Compare the contenders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        contender, bootstrap, partitions = args.measure
        measure(contender, bootstrap, int(partitions))
        return
    topics = args.partitions // PARTITIONS_OF_A_TOPIC
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with EmbeddedKafka() as kafka:
        with Admin(bootstrap_servers=kafka.bootstrap) as admin:
            names = [NewTopic(f"t-{number}", PARTITIONS_OF_A_TOPIC) for number in range(topics)]
            admin.create_topics(names).raise_first()
        for _ in range(args.rounds):
            for contender, rounds in seconds.items():
                count = topics * PARTITIONS_OF_A_TOPIC
                rounds.append(run_process(contender, kafka.bootstrap, count))
    medians = {name: statistics.median(rounds) for name, rounds in seconds.items()}
    for name, median in medians.items():
        print(f"{name:16} {median * 1000:8.1f} ms of CPU for {args.partitions} partitions")
    ratio = medians["kafka_fast"] / medians["confluent-kafka"]
    print(json.dumps({"seconds": medians, "ratio": round(ratio, 3)}))


if __name__ == "__main__":
    main()
