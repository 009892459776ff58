"""`format("kafka_fast")` on clusters of processes and on Spark Connect, both ways."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark_cluster import ROOT, environment, run, spark_home, standalone
from tests.integration.spark_driver import check_rows
from tests.integration.spark_local import SPARK_MARKS, has_limits

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


@contextmanager
def master_of(where: str, folder: Path, home: Path) -> Iterator[str]:
    """Give the master of a place; a standalone cluster runs meanwhile."""
    if where == "standalone":
        with standalone(folder, home, workers=2) as master:
            yield master
    else:
        yield where


@pytest.mark.parametrize("where", ["local-cluster[2,1,1024]", "standalone", "connect"])
def test_both_ways(where: str, tmp_path: Path) -> None:
    home = spark_home(
        tmp_path, {"spark.executorEnv.PYTHONPATH": str(ROOT), "spark.executor.memory": "1g"}
    )
    variables = {
        **environment(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    (tmp_path / "job.py").write_text(JOB)
    with EmbeddedKafka(partitions=3) as kafka, master_of(where, tmp_path, home) as master:
        for topic in ("numbers", "copies"):
            kafka.create_topic(topic, partitions=3)
        kafka.create_topic("counts", partitions=1)
        script = f"{sys.executable} job.py '{master}' {kafka.bootstrap} {tmp_path} {ROWS}"
        read, batches = run(script, tmp_path, variables, timeout=400).splitlines()
        assert json.loads(read) == [ROWS, ROWS, sum(range(ROWS))]
        assert int(batches) == (3 if has_limits() else 1)
        copies = [it for number in range(3) for it in kafka.records("copies", number)]
        written = [(int(it.value or b""), dict(it.headers)) for it in copies]
        assert check_rows(written, ROWS) == {}
        counts = {it.key: int(it.value or b"") for it in kafka.records("counts")}
        ends = [kafka.end_offset("numbers", number) for number in range(3)]
        assert counts == {b"%d" % number: end for number, end in enumerate(ends) if end}
