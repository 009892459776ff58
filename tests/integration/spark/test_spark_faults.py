"""From topic to topic on three real brokers while brokers, executors and the driver are killed.

Nothing is lost. What is twice comes from tasks that ran again, and its headers tell so.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.producing import new_topic
from tests.integration.spark.spark_cluster import ROOT, spark_home, standalone
from tests.integration.spark.spark_driver import (
    FIRST_ROWS,
    ROW_SIZE,
    SparkDriver,
    WrittenRow,
    below,
    check_rows,
)
from tests.integration.spark.spark_local import SPARK_MARKS, has_limits

pytest.importorskip("pyspark", minversion="4.0")

pytestmark = [
    *SPARK_MARKS,
    pytest.mark.broker,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not has_limits(), reason="AvailableNow is a single micro-batch before 4.2"),
]

ROWS = 300_000
PARTITIONS = 6
EACH = 20_000
"""Rows of a micro-batch."""
HALF = EACH // PARTITIONS + 2 * FIRST_ROWS
"""Rows of its first task and of two that are held: what two cores write of it."""


class Topics:
    """The topic to read, with all rows, and the one to write."""

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka = kafka
        self.source, self.sink = (
            new_topic(kafka, PARTITIONS, replication=3, **{"min.insync.replicas": "2"})
            for _ in range(2)
        )
        self.count = 0
        self.write(ROWS)

    def write(self, more: int) -> None:
        """Write the next rows."""
        numbers = range(self.count, self.count + more)
        with Producer(bootstrap_servers=self.kafka.bootstrap) as producer:
            producer.send_many(
                self.source,
                [b"%-*d" % (ROW_SIZE, number) for number in numbers],
                partitions=[number % PARTITIONS for number in numbers],
            ).result(60)
        self.count += more

    def driver(
        self, folder: Path, master: str = "local[2]", settings: dict[str, str] | None = None
    ) -> SparkDriver:
        """Return the query between them."""
        brokers = {"kafka.bootstrap.servers": self.kafka.bootstrap}
        source = {**brokers, "subscribe": self.source, "maxOffsetsPerTrigger": str(EACH)}
        return SparkDriver(folder, source, {**brokers, "topic": self.sink}, master, settings)

    def written(self) -> int:
        """Return the number of records that the query has written."""
        return sum(ends(self.kafka.bootstrap, self.sink).values())

    def has_written(self, count: int) -> bool:
        """Return whether the query has written so many records."""
        return self.written() >= count

    def check(self) -> dict[WrittenRow, int]:
        """See that every row has arrived; return those that have more than once."""
        return check_rows(records(self.kafka.bootstrap, self.sink), self.count)


def ends(bootstrap: str, topic: str) -> dict[int, int]:
    """Return the ends of a topic's logs, as confluent-kafka sees them."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1]
            for number in range(PARTITIONS)
        }
    finally:
        consumer.close()


def records(bootstrap: str, topic: str) -> Iterator[tuple[int, dict[str, bytes | None]]]:
    """Yield (number, headers) of the records in a topic, as confluent-kafka reads them."""
    from confluent_kafka import Consumer, TopicPartition

    left = sum(ends(bootstrap, topic).values())
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "rows"})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        while left:
            for message in consumer.consume(10_000, timeout=30):
                assert message.error() is None
                headers: Any = message.headers()
                yield int(message.value() or b""), dict(headers)
                left -= 1
    finally:
        consumer.close()


@pytest.fixture
def topics(real_kafka_cluster: RealKafka) -> Iterator[Topics]:
    yield Topics(real_kafka_cluster)
    real_kafka_cluster.heal()


def test_the_driver_is_killed_at_each_step_of_a_micro_batch(topics: Topics, tmp_path: Path) -> None:
    query = topics.driver(tmp_path)
    again: set[int] = set()
    """Micro-batches in which the driver was killed before their commit."""

    def killed_when(condition: Callable[[], bool], what: str) -> int:
        """Run the query until this; return the micro-batch that was not committed, or -1."""
        with query.running() as driver:
            driver.wait_until(condition, what)
            driver.kill()
        unfinished = query.planned() if query.planned() > query.committed() else -1
        again.add(unfinished)
        return unfinished

    # Planned: its offsets are in the checkpoint, and at most some tasks have begun.
    assert killed_when(lambda: query.planned() >= 1, "a plan") >= 1
    # Half written: all rows of the first task are in Kafka, and the first ones of two others.
    before = topics.written()
    with query.held():
        half = killed_when(lambda: topics.written() >= before + HALF, "half of it")
        assert half >= 0
        assert query.committed() < half
    assert topics.written() < before + EACH
    # Written: all its rows are in Kafka, its commit is not in the checkpoint. This is a moment
    # between two steps of Spark; so it is tried until it is met.
    for _ in range(8):
        goal = topics.written() + EACH
        if killed_when(partial(topics.has_written, goal), "a whole micro-batch") >= 0:
            break
    else:
        pytest.fail("the driver was never killed between the rows and the commit")
    # Committed: the next one may be planned or not.
    committed = query.committed()
    killed_when(lambda: query.committed() > committed, "a commit")
    assert query.committed() > committed

    # AvailableNow ends exactly at what was there when it began.
    there = ends(topics.kafka.bootstrap, topics.source)
    planned = query.planned()
    with query.running("once") as driver:
        driver.wait_until(lambda: query.planned() > planned, "AvailableNow's first plan")
        topics.write(1_000)
        driver.wait()
    assert query.ends(query.planned()) == {
        topics.source: {str(number): at for number, at in there.items()}
    }
    with query.running("once") as driver:  # what came meanwhile
        driver.wait()
    assert {row.batch for row in topics.check()} <= again


def test_brokers_are_killed_and_restarted(topics: Topics, tmp_path: Path) -> None:
    """A query goes on by itself: no task fails, so no row is twice."""
    query = topics.driver(tmp_path)
    kafka = topics.kafka
    with query.running() as driver:
        driver.wait_until(lambda: query.committed() >= 1, "the second micro-batch")
        victim = kafka.node(kafka.leader(topics.sink, 0))
        victim.kill()
        at = query.committed()
        driver.wait_until(lambda: query.committed() >= at + 2, "two micro-batches without it")
        victim.start()
        kafka.wait_isr(topics.sink)
        kafka.rolling_restart(topics.sink)
        goal = ends(kafka.bootstrap, topics.source)
        driver.wait_until(
            lambda: (
                query.committed() >= 0
                and query.ends(query.committed())
                == {topics.source: {str(number): at for number, at in goal.items()}}
            ),
            "all rows",
        )
    assert topics.check() == {}


def command_of(pid: int) -> str:
    """Return the command of a process; nothing of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except FileNotFoundError:
        return ""


def test_executors_and_python_workers_are_killed(topics: Topics, tmp_path: Path) -> None:
    home = spark_home(tmp_path, {})
    settings = {
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.pyspark.python": sys.executable,
        "spark.task.maxFailures": "8",
    }
    again: set[int] = set()
    with standalone(tmp_path, home, workers=2) as master:
        folder = tmp_path / "query"
        folder.mkdir()
        query = topics.driver(folder, master, settings)
        with query.running() as driver:
            driver.wait_until(lambda: query.committed() >= 1, "the second micro-batch")
            for part in ("CoarseGrainedExecutorBackend", "pyspark.daemon") * 2:
                at = query.committed()
                with query.held():
                    goal = topics.written() + HALF
                    driver.wait_until(partial(topics.has_written, goal), "half")
                    again.add(query.planned())
                    victim = [pid for pid in below(os.getpid()) if part in command_of(pid)][-1]
                    os.kill(victim, signal.SIGKILL)
                driver.wait_until(partial(query.has_committed, at + 2), "two micro-batches")
            driver.kill()  # in whatever step
            again.update(range(query.committed() + 1, query.planned() + 1))
        with query.running("once") as driver:
            driver.wait()
    faults = topics.check()
    assert {row.batch for row in faults} <= again
    assert faults
