"""Streams of `format("kafka_fast")`: micro-batches, limits, restarts, a driver that is killed."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing.broker.cluster import Cluster
from tests.integration.spark.spark_cluster import ROOT
from tests.integration.spark.spark_local import SPARK_MARKS, has_limits, write
from tests.waiting import eventually, killed

pytest.importorskip("pyspark", minversion="4.0")
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = SPARK_MARKS


class Query:
    """A stream whose sink notes the numbers of each micro-batch."""

    def __init__(self, spark: SparkSession, kafka: EmbeddedKafka, folder: Path) -> None:
        self._spark = spark
        self._kafka = kafka
        self._folder = folder
        self.batches: dict[int, list[int]] = {}

    def start(self, *, available_now: bool = True, **options: Any) -> StreamingQuery:
        """Start the stream, or start it again from its checkpoint."""
        rows = (
            self._spark.readStream.format("kafka_fast")
            .option("kafka.bootstrap.servers", self._kafka.bootstrap)
            .options(**options)
            .load()
        )

        def note(batch: DataFrame, number: int) -> None:
            collected = batch.selectExpr("cast(value as string)").collect()
            self.batches[number] = sorted(int(row[0]) for row in collected)

        writer = rows.writeStream.foreachBatch(note)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def run(self, **options: Any) -> list[list[int]]:
        """Read all that is there; return the numbers of this run's micro-batches."""
        self.batches = {}
        query = self.start(**options)
        query.awaitTermination()
        return list(self.batches.values())


@pytest.fixture
def query(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> Query:
    return Query(spark, kafka, tmp_path)


def test_a_stream_goes_on_where_it_was(kafka: EmbeddedKafka, topic: str, query: Query) -> None:
    write(kafka, topic, range(30))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert query.run(**options) == [list(range(30))]
    write(kafka, topic, range(30, 60))
    assert query.run(**options) == [list(range(30, 60))]
    assert query.run(**options) == []


def test_micro_batches_are_limited_and_available_now_ends(
    kafka: EmbeddedKafka, topic: str, query: Query
) -> None:
    write(kafka, topic, range(0, 900, 3))  # 300 records of partition 0
    write(kafka, topic, range(1, 10, 3))  # and 3 of partition 1
    batches = query.run(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="101")
    assert sorted(number for batch in batches for number in batch) == sorted(
        [*range(0, 900, 3), *range(1, 10, 3)]
    )
    if has_limits():
        assert max(map(len, batches)) <= 101
        assert [number for number in batches[0] if number % 3 == 1] == [1]  # nobody starves
    else:
        assert len(batches) == 1


def test_a_stream_is_limited_from_its_second_micro_batch_on(
    kafka: EmbeddedKafka, topic: str, query: Query
) -> None:
    """From the first one on with PySpark 4.2, which says where it begins."""
    write(kafka, topic, range(30))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "10"}
    running = query.start(available_now=False, **options)
    try:
        eventually(lambda: len([*itertools.chain(*query.batches.values())]) == 30, "the first")
        write(kafka, topic, range(30, 90))
        eventually(lambda: len([*itertools.chain(*query.batches.values())]) == 90, "the others")
    finally:
        running.stop()
    first, *others = (query.batches[number] for number in sorted(query.batches))
    assert len(first) <= (10 if has_limits() else 30)
    assert max(map(len, others)) <= 10
    assert sorted(itertools.chain(first, *others)) == list(range(90))


def test_offsets_look_like_sparks_own(
    kafka: EmbeddedKafka, topic: str, query: Query, tmp_path: Path
) -> None:
    write(kafka, topic, range(30))
    query.run(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="15")
    *_, offsets = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    each = 5 if has_limits() else 10
    assert json.loads(offsets) == {topic: {"0": each, "1": each, "2": each}}


def test_a_new_partition_is_read_from_its_beginning(
    kafka: EmbeddedKafka, topic: str, query: Query
) -> None:
    write(kafka, topic, range(30))
    options = {"subscribePattern": f"^{topic}", "startingOffsets": "earliest"}
    assert query.run(**options) == [list(range(30))]
    kafka.create_topic(f"{topic}-2", partitions=3)
    write(kafka, f"{topic}-2", range(30, 33))
    assert query.run(**options, maxOffsetsPerTrigger="100") == [[30, 31, 32]]


def test_a_restart_without_new_records_runs_no_batch_until_there_are_some(
    kafka: EmbeddedKafka, topic: str, query: Query
) -> None:
    """Who waits for a commit after a restart must write first: Spark commits no empty batch."""
    write(kafka, topic, range(30))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert query.run(**options) == [list(range(30))]
    query.batches = {}
    running = query.start(available_now=False, **options)
    try:
        eventually(lambda: "Waiting for data" in running.status["message"], "an idle query")
        assert query.batches == {}
        write(kafka, topic, range(30, 33))
        eventually(  # one record may come before the others
            lambda: sorted(itertools.chain(*query.batches.values())) == [30, 31, 32],
            "the new records",
        )
    finally:
        running.stop()


def test_new_partitions_and_topics_are_seen_under_way(
    kafka: EmbeddedKafka, topic: str, query: Query
) -> None:
    """The metadata that the query has are younger than metadata.max.age.ms."""
    write(kafka, topic, range(30))
    running = query.start(
        available_now=False, subscribePattern=f"^{topic}", startingOffsets="earliest"
    )
    try:
        eventually(lambda: 0 in query.batches, "the first micro-batch")
        kafka.create_topic(f"{topic}-2", partitions=3)
        write(kafka, f"{topic}-2", range(30, 33))
        eventually(lambda: 32 in itertools.chain(*query.batches.values()), "the new topic")
    finally:
        running.stop()
    assert sorted(itertools.chain(*query.batches.values())) == list(range(33))


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_topic_that_is_created_again_ends_the_query(
    kafka: EmbeddedKafka, topic: str, query: Query, fails: str
) -> None:
    write(kafka, topic, range(30))
    running = query.start(
        available_now=False, subscribe=topic, startingOffsets="earliest", failOnDataLoss=fails
    )
    try:
        eventually(lambda: 0 in query.batches, "the first micro-batch")

        def again(cluster: Cluster) -> None:
            cluster.delete_topic(topic)
            cluster.create_topic(topic, 3)

        kafka.on_cluster(again)  # in one step: no planning sees that it is gone
        write(kafka, topic, range(60))
        with pytest.raises(StreamingQueryException) as raised:
            running.awaitTermination(120)
    finally:
        running.stop()
    assert f"Topic {topic} was deleted and created again" in str(raised.value)
    assert query.batches == {0: list(range(30))}


def test_progress_is_that_of_a_group(kafka: EmbeddedKafka, topic: str, query: Query) -> None:
    write(kafka, topic, range(30))
    running = query.start(
        available_now=False, subscribe=topic, commitOffsetsToGroup="lag", startingOffsets="earliest"
    )
    partitions = [TopicPartition(topic, number) for number in range(3)]
    with Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "lag"}) as consumer:

        def done() -> list[int]:
            committed = consumer.committed(partitions)
            return [at.offset for at in committed.values() if at is not None]

        try:
            # Spark tells a source that a batch is done when it plans the next one.
            eventually(lambda: 0 in query.batches, "the first micro-batch")
            write(kafka, topic, range(30, 33))
            eventually(lambda: done() == [10, 10, 10], "the commit of the first micro-batch")
        finally:
            running.stop()


def test_latest_needs_a_place_for_the_first_offsets(topic: str, query: Query) -> None:
    with pytest.raises(StreamingQueryException, match="initialOffsetsLocation"):
        query.run(subscribe=topic)
    assert query.run(subscribe=topic, allowUnsafeLatest="true") == [[]]


JOB = """
import json, os, signal, sys
from pyspark.sql import SparkSession

options, folder, dies = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3] == "dies"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "512m")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)

def note(batch, number):
    rows = [row[0] for row in batch.selectExpr("cast(value as string)").collect()]
    if dies:
        os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    with open(folder + "/rows", "a") as out:
        print(*rows, sep="\\n", file=out)

writer = spark.readStream.format("kafka_fast").options(**options).load().writeStream
writer = writer.foreachBatch(note).option("checkpointLocation", folder + "/checkpoint")
query = (writer if dies else writer.trigger(availableNow=True)).start()
query.awaitTermination()
"""


@contextmanager
def writing(kafka: EmbeddedKafka, topic: str) -> Iterator[None]:
    """Write 0, 1, 2, ... while the block runs, in turn to each of the three partitions."""
    end = threading.Event()

    def work() -> None:
        with Producer(bootstrap_servers=kafka.bootstrap, linger_ms=0) as producer:
            for number in itertools.count():
                if end.is_set():
                    break
                producer.send(topic, b"%d" % number, partition=number % 3).result(30)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.long
@pytest.mark.parametrize("kept", ["initialOffsetsLocation", "commitOffsetsToGroup"])
def test_first_offsets_survive_a_driver_that_is_killed(
    kafka: EmbeddedKafka, topic: str, tmp_path: Path, kept: str
) -> None:
    """It dies in its first micro-batch; the next run begins where the first one began."""
    (tmp_path / "job.py").write_text(JOB)
    place = {
        "initialOffsetsLocation": f"{tmp_path}/checkpoint/first-offsets",
        "commitOffsetsToGroup": topic,
    }[kept]
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, kept: place}

    def job(how: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "job.py", json.dumps(options), str(tmp_path), how],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )

    with writing(kafka, topic), job("dies") as first, killed(first):
        _, errors = first.communicate(timeout=120)
        assert first.returncode == -signal.SIGKILL, errors[-5_000:]
    if kept == "initialOffsetsLocation":
        began = json.loads(Path(place).read_text())["offsets"][topic]
    else:
        began = {str(number): at for (_, number), at in kafka.committed(topic).items()}
    assert len(began) == 3
    assert not (tmp_path / "rows").exists()
    if not has_limits():  # Spark has asked for the micro-batch's end first: it begins there
        *_, planned = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
        began = json.loads(planned)[topic]
    for _ in range(1 if has_limits() else 2):  # a single micro-batch is the one that failed
        with job("lives") as second, killed(second):
            _, errors = second.communicate(timeout=120)
            assert second.returncode == 0, errors[-5_000:]
    rows = sorted(map(int, (tmp_path / "rows").read_text().split()))
    assert rows == sorted(
        3 * offset + number
        for number in range(3)
        for offset in range(began[str(number)], kafka.end_offset(topic, number))
    )
    assert rows
