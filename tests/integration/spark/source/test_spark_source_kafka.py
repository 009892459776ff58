"""`format("kafka_fast")` on real Kafka: exact ends, whatever transactions leave in the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.consuming import delete_records, write, write_transactions
from tests.integration.producing import new_topic
from tests.integration.spark.spark_local import SPARK_MARKS, has_limits

pytest.importorskip("pyspark", minversion="4.0")
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [*SPARK_MARKS, pytest.mark.broker]


def rows(reader: Any, kafka: RealKafka, topic: str, **options: str) -> DataFrame:
    """Return the DataFrame of a topic."""
    reader = reader.format("kafka_fast").option("kafka.bootstrap.servers", kafka.bootstrap)
    frame: DataFrame = reader.options(subscribe=topic, **options).load()
    return frame


def offsets(df: DataFrame) -> list[int]:
    return sorted(row.offset for row in df.select("offset").collect())


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(spark: SparkSession, real_kafka: RealKafka, isolation: str) -> None:
    """Each is three records and a marker; every second one is aborted."""
    topic = new_topic(real_kafka)
    write_transactions(real_kafka, topic, 4, 3, is_kept=lambda number: number % 2 == 0)
    kept = {0, 2} if isolation == "read_committed" else {0, 1, 2, 3}
    there = [offset for offset in range(16) if offset % 4 != 3 and offset // 4 in kept]
    more = {"kafka.isolation.level": isolation}
    assert offsets(rows(spark.read, real_kafka, topic, **more)) == there
    for start, end in [(3, 4), (4, 8), (2, 9), (9, 15)]:
        bounds = {
            "startingOffsets": json.dumps({topic: {"0": start}}),
            "endingOffsets": json.dumps({topic: {"0": end}}),
        }
        expected = [offset for offset in there if start <= offset < end]
        assert offsets(rows(spark.read, real_kafka, topic, **more, **bounds)) == expected
    split = rows(spark.read, real_kafka, topic, **more, minPartitions="16")
    assert split.rdd.getNumPartitions() == 16
    assert offsets(split) == there


@pytest.mark.skipif(not has_limits(), reason="AvailableNow is a single micro-batch before 4.2")
def test_a_stream_passes_markers_and_deleted_records(
    spark: SparkSession, real_kafka: RealKafka, tmp_path: Path
) -> None:
    topic = new_topic(real_kafka)
    write(real_kafka, topic, 100)
    write_transactions(real_kafka, topic, 4, 3, is_kept=lambda number: number % 2 == 0)
    read: list[int] = []

    def note(batch: DataFrame, number: int) -> None:
        read.extend(offsets(batch))
        if number == 0:
            delete_records(real_kafka, topic, 60)

    stream = rows(
        spark.readStream,
        real_kafka,
        topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="10",
        failOnDataLoss="false",
        **{"kafka.isolation.level": "read_committed"},
    )
    writer = stream.writeStream.foreachBatch(note).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    query.awaitTermination()
    assert read == [*range(10), *range(60, 103), *range(108, 111)]
