"""Streams through source and sink that end in the middle: nothing is lost, all duplicates show."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_fast.errors import NotLeaderOrFollower
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.integration.spark.spark_driver import SparkDriver, check_rows
from tests.integration.spark.spark_local import SPARK_MARKS, write
from tests.waiting import eventually

pytest.importorskip("pyspark", minversion="4.0")
pytest.importorskip("pyarrow")
from pyspark.sql import SparkSession

pytestmark = [*SPARK_MARKS, pytest.mark.long]

ROWS = 30_000


def rows_again(kafka: EmbeddedKafka, topic: str) -> int:
    """Return how many rows are there twice in a topic, which has all of them."""
    records = ((int(record.value or b""), dict(record.headers)) for record in kafka.records(topic))
    return check_rows(records, ROWS).total()


def test_a_driver_that_is_killed(kafka: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    """The micro-batch in which it dies is run again, and its headers tell which rows are twice."""
    out = f"{topic}-out"
    kafka.create_topic(out, partitions=3)
    write(kafka, topic, range(ROWS))
    brokers = {"kafka.bootstrap.servers": kafka.bootstrap}
    source = {**brokers, "subscribe": topic, "maxOffsetsPerTrigger": "3000"}
    query = SparkDriver(tmp_path, source, {**brokers, "topic": out})
    with query.running() as driver:
        driver.wait_until(lambda: len(kafka.records(out)) > 6_100, "the third micro-batch")
        driver.kill()
    with query.running("once") as driver:
        driver.wait()
    rows_again(kafka, out)


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
    assert written <= rows_again(kafka, out) <= ROWS
