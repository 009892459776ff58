"""Streams through source and sink that end in the middle: nothing is lost, all duplicates show."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.errors import NotLeaderOrFollower
from kafka_fast.spark.sink.dedupe_headers import NAMES
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.integration.spark_cluster import ROOT
from tests.integration.spark_local import SPARK_MARKS, write
from tests.waiting import eventually, killed

pytest.importorskip("pyspark", minversion="4.0")
pytest.importorskip("pyarrow")
from pyspark.sql import SparkSession

pytestmark = [*SPARK_MARKS, pytest.mark.long]

ROWS = 30_000


def check(kafka: EmbeddedKafka, topic: str) -> list[Any]:
    """Return the records of a topic that has all rows, once their headers have shown this."""
    records = kafka.records(topic)
    assert {int(it.value or b"") for it in records} == set(range(ROWS))
    kept: dict[tuple[bytes | None, ...], int] = {}
    for record in records:
        found = dict(record.headers)
        row = tuple(found[name] for name in NAMES)
        assert kept.setdefault(row, int(record.value or b"")) == int(record.value or b"")
    assert sorted(kept.values()) == list(range(ROWS))
    return records


JOB = """
import json, sys
from pyspark.sql import SparkSession

source, sink, folder, once = *map(json.loads, sys.argv[1:3]), sys.argv[3], sys.argv[4] == "once"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "512m")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
rows = spark.readStream.format("kafka_fast").options(**source).load().select("value")
writer = rows.writeStream.format("kafka_fast").options(**sink)
writer = writer.option("checkpointLocation", folder + "/checkpoint")
query = (writer.trigger(availableNow=True) if once else writer).start()
print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
query.awaitTermination()
"""


def test_a_driver_that_is_killed(kafka: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    """The micro-batch in which it dies is run again, and its headers tell which rows are twice."""
    out = f"{topic}-out"
    kafka.create_topic(out, partitions=3)
    write(kafka, topic, range(ROWS))
    (tmp_path / "job.py").write_text(JOB)
    brokers = {"kafka.bootstrap.servers": kafka.bootstrap}
    source = {
        **brokers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "3000",
    }
    sink = {**brokers, "topic": out, "dedupeHeaders": "true"}

    def job(how: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "job.py", json.dumps(source), json.dumps(sink), str(tmp_path), how],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    with job("for ever") as first, killed(first):
        assert first.stdout is not None
        jvm = int(first.stdout.readline())
        eventually(lambda: len(kafka.records(out)) > 6_100, "the third micro-batch")
        os.kill(jvm, signal.SIGKILL)
        first.kill()
        first.communicate(timeout=120)
    with job("once") as second, killed(second):
        _, errors = second.communicate(timeout=120)
        assert second.returncode == 0, errors[-5_000:]
    check(kafka, out)


def test_a_query_that_is_stopped_in_a_micro_batch(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, tmp_path: Path
) -> None:
    """One of its tasks cannot write; the query goes on with the same micro-batch."""
    out = f"{topic}-out"
    kafka.create_topic(out, partitions=3)
    write(kafka, topic, range(ROWS))
    reader = spark.readStream.format("kafka_fast").options(subscribe=topic)
    reader = reader.option("kafka.bootstrap.servers", kafka.bootstrap)
    rows = reader.option("startingOffsets", "earliest").load().select("value", "partition")
    writer = rows.writeStream.format("kafka_fast").options(topic=out, dedupeHeaders="true")
    writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    rule = kafka.faults.error(PRODUCE, NotLeaderOrFollower, topic=out, partition=0)
    query = writer.start()
    written = ROWS // 3 * 2
    eventually(lambda: len(kafka.records(out)) == written, "the records of two tasks")
    query.stop()
    assert rule.strikes
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
    rule.cancel()
    query = writer.start()
    query.processAllAvailable()
    query.stop()
    assert (tmp_path / "checkpoint" / "commits" / "0").exists()
    # The stopped attempt may have gone on for a moment: Spark does not kill a worker at once.
    assert ROWS + written <= len(check(kafka, out)) <= 2 * ROWS
