"""`format("kafka_fast")` on clusters of processes and on Spark Connect, both ways."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark.spark_cluster import ROOT, environment, run, spark_home, standalone
from tests.integration.spark.spark_driver import check_rows
from tests.integration.spark.spark_local import SPARK_MARKS, has_limits

pytest.importorskip("pyspark", minversion="4.0")

pytestmark = [*SPARK_MARKS, pytest.mark.long, pytest.mark.timeout(600)]

ROWS = 9_000
JOB = """
import json, sys
from pyspark.sql import SparkSession

master, brokers, folder, rows = sys.argv[1:]
builder = SparkSession.builder
builder = builder.remote("local[2]") if master == "connect" else builder.master(master)
spark = builder.getOrCreate()
options = {"kafka.bootstrap.servers": brokers}
numbers = spark.range(0, int(rows), numPartitions=4).selectExpr("cast(id as string) value")
numbers.write.format("kafka_fast").options(**options, topic="numbers").mode("append").save()

wanted = {**options, "subscribe": "numbers", "startingOffsets": "earliest"}
rows = spark.read.format("kafka_fast").options(**wanted, minPartitions="5").load()
rows = rows.selectExpr("cast(cast(value as string) as bigint) number")
found = rows.selectExpr("count(distinct number)", "count(*)", "sum(number)")
print(json.dumps([*found.first()]))

query = (
    spark.readStream.format("kafka_fast").options(**wanted, maxOffsetsPerTrigger="4000").load()
    .select("value").writeStream.format("kafka_fast")
    .options(**options, topic="copies", dedupeHeaders="true")
    .option("checkpointLocation", folder + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
print(len(query.recentProgress))
counts = (
    spark.readStream.format("kafka_fast").options(**wanted).load()
    .selectExpr("cast(partition as string) key").groupBy("key").count()
    .selectExpr("key", "cast(count as string) value")
)
query = (
    counts.writeStream.format("kafka_fast").options(**options, topic="counts")
    .option("checkpointLocation", folder + "/counts").outputMode("complete")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
spark.stop()
"""


SPECULATED = """
import sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession

master, brokers, rows = sys.argv[1:]
spark = (
    SparkSession.builder.master(master)
    .config("spark.speculation", "true")
    .config("spark.speculation.interval", "100ms")
    .config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.quantile", "0.5")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    .getOrCreate()
)

def slow(batches):
    yield from batches
    context = TaskContext.get()
    if context.partitionId() == 3 and context.attemptNumber() == 0:
        time.sleep(300)  # until Spark kills it

df = spark.range(0, int(rows), numPartitions=4)
df = df.selectExpr("rpad(cast(id as string), 200, ' ') value")
df.mapInArrow(slow, df.schema).write.format("kafka_fast").options(
    **{"kafka.bootstrap.servers": brokers, "topic": "speculated"}, dedupeHeaders="true", jobId="job"
).mode("append").save()
spark.stop()
"""


@contextmanager
def master_of(where: str, folder: Path, home: Path) -> Iterator[str]:
    """Give the master of a place; a standalone cluster runs meanwhile."""
    if where == "standalone":
        with standalone(folder, home, workers=2) as master:
            yield master
    else:
        yield where


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A SPARK_HOME whose executors find this checkout."""
    return spark_home(
        tmp_path, {"spark.executorEnv.PYTHONPATH": str(ROOT), "spark.executor.memory": "1g"}
    )


def run_job(job: str, arguments: str, folder: Path, home: Path) -> str:
    """Run a driver; return what it printed."""
    (folder / "job.py").write_text(job)
    own = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    script = f"{sys.executable} job.py {arguments}"
    return run(script, folder, {**environment(home), **own}, timeout=200)


def rows_of(kafka: EmbeddedKafka, topic: str) -> list[tuple[int, dict[str, bytes | None]]]:
    """Return (number, headers) of each record in a topic of three partitions."""
    records = [record for number in range(3) for record in kafka.records(topic, number)]
    return [(int(record.value or b""), dict(record.headers)) for record in records]


@pytest.mark.parametrize("where", ["local-cluster[2,1,1024]", "standalone", "connect"])
def test_both_ways(where: str, tmp_path: Path, home: Path) -> None:
    with EmbeddedKafka(partitions=3) as kafka, master_of(where, tmp_path, home) as master:
        for topic in ("numbers", "copies"):
            kafka.create_topic(topic, partitions=3)
        kafka.create_topic("counts", partitions=1)
        arguments = f"'{master}' {kafka.bootstrap} {tmp_path} {ROWS}"
        read, batches = run_job(JOB, arguments, tmp_path, home).splitlines()
        assert json.loads(read) == [ROWS, ROWS, sum(range(ROWS))]
        assert int(batches) == (3 if has_limits() else 1)
        assert check_rows(rows_of(kafka, "copies"), ROWS) == {}
        counts = {record.key: int(record.value or b"") for record in kafka.records("counts")}
        ends = [kafka.end_offset("numbers", number) for number in range(3)]
        assert counts == {b"%d" % number: end for number, end in enumerate(ends) if end}


def test_a_task_that_is_slow_runs_twice(tmp_path: Path, home: Path) -> None:
    """Speculation: the rows of both attempts are there, and their headers tell so."""
    with EmbeddedKafka(partitions=3) as kafka, standalone(tmp_path, home, workers=2) as master:
        kafka.create_topic("speculated", partitions=3)
        run_job(SPECULATED, f"'{master}' {kafka.bootstrap} {ROWS}", tmp_path, home)
        again = check_rows(rows_of(kafka, "speculated"), ROWS)
        assert {row.task for row in again} == {3}
