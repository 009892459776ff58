"""What it costs to describe a cluster of many partitions: CPU and time, ours beside confluent's.

    python bench/admin/describe_topics.py [--rounds 7] [--json]

10,000 partitions on the embedded broker, which has no DescribeTopicPartitions, and 2,000 on real
Kafka, which has it. The contender «by id» is `describe_topics(ids, by_id=True)`: one Metadata, so
that the rest is what the pages cost.

Each run is a process of its own, away from the broker's; the contenders take turns. A run describes
all topics several times, without the start of the interpreter and without the connection.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench.admin.runs import MEASURE, Row, cost_of, run_elsewhere, show_runs
from kafka_fast import Admin
from kafka_fast.admin import NewTopic
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.real_kafka import RealKafka

PARTITIONS_OF_A_TOPIC = 50
EMBEDDED_TOPICS = 200
REAL_TOPICS = 40
CALLS = 5
"""Of a run."""


def by_name(bootstrap: str) -> Callable[[], int]:
    """Return a call of kafka_fast that counts all partitions."""
    admin = Admin(bootstrap_servers=bootstrap)
    names = list(admin.list_topics())

    def describe() -> int:
        described = admin.describe_topics(names).raise_first()
        return sum(len(topic.partitions) for topic in described.values())

    return describe


def by_id(bootstrap: str) -> Callable[[], int]:
    """Return the same, with ids for names."""
    admin = Admin(bootstrap_servers=bootstrap)
    ids = [str(topic.topic_id) for topic in admin.list_topics().values()]

    def describe() -> int:
        described = admin.describe_topics(ids, by_id=True).raise_first()
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


CONTENDERS = {"kafka_fast": by_name, "kafka_fast, by id": by_id, "confluent": confluent}


def measure(contender: str, bootstrap: str, partitions: int) -> None:
    """Print what one call costs, in this process."""
    describe = CONTENDERS[contender](bootstrap)
    assert describe() == partitions  # connects
    print(json.dumps(cost_of(describe, CALLS)))


def rows_of(rounds: int) -> Iterator[Row]:
    """Compare the contenders on both brokers."""
    with EmbeddedKafka() as embedded:
        yield from _rows_on(embedded.bootstrap, "embedded broker", EMBEDDED_TOPICS, rounds)
    with RealKafka() as kafka:
        yield from _rows_on(kafka.bootstrap, "Apache Kafka", REAL_TOPICS, rounds)


def _rows_on(bootstrap: str, where: str, topics: int, rounds: int) -> Iterator[Row]:
    names = [f"t-{number}" for number in range(topics)]
    partitions = topics * PARTITIONS_OF_A_TOPIC
    with Admin(bootstrap_servers=bootstrap) as admin:
        new_topics = [NewTopic(name, PARTITIONS_OF_A_TOPIC, 1) for name in names]
        admin.create_topics(new_topics).raise_first()
        admin.wait_until_topics_visible(names)
    scenario = f"describe {partitions:,} partitions, {where}"
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for contender in CONTENDERS:
                row = run_elsewhere(__file__, folder, contender, bootstrap, partitions)
                yield {"contender": contender, "scenario": scenario, **row}


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        sys.exit(show_runs(__doc__, rows_of, 7))
