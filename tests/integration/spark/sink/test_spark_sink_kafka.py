"""`format("kafka_fast")` writes into real Kafka; what is read back is exactly what was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.producing import new_topic
from tests.integration.spark.spark_local import SPARK_MARKS

pytest.importorskip("pyspark", minversion="4.0")
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [*SPARK_MARKS, pytest.mark.broker]

ROWS = 50_000
COLUMNS = "key", "value", "timestamp", "headers"


def read(reader: Any, kafka: RealKafka, topic: str) -> DataFrame:
    """Return the rows of a topic, batch or stream."""
    reader = reader.format("kafka_fast").option("kafka.bootstrap.servers", kafka.bootstrap)
    reader = reader.options(subscribe=topic, startingOffsets="earliest", includeHeaders="true")
    frame: DataFrame = reader.load().select(*COLUMNS)
    return frame


def test_rows_come_back_as_they_were(
    spark: SparkSession, real_kafka: RealKafka, tmp_path: Path
) -> None:
    """A batch writes them, a stream copies them, a batch reads both."""
    first, second = new_topic(real_kafka, 3), new_topic(real_kafka, 2)
    rows = spark.range(ROWS).selectExpr(
        "cast(if(id % 7 = 0, null, id) as string) key",
        "if(id % 11 = 0, null, concat('value ', id)) value",
        "timestamp_millis(1714521600000 + id) timestamp",
        "if(id % 3 = 0, null, array(named_struct("
        "'key', 'h', 'value', cast(cast(id as string) as binary)))) headers",
    )
    common = {"kafka.bootstrap.servers": real_kafka.bootstrap, "kafka.compression.type": "lz4"}
    rows.write.format("kafka_fast").options(topic=first, **common).mode("append").save()
    stream = read(spark.readStream, real_kafka, first)
    writer = stream.writeStream.format("kafka_fast").options(topic=second, **common)
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    writer.start().awaitTermination()

    def plain(df: DataFrame) -> list[tuple[Any, ...]]:
        exact = df.selectExpr(
            "cast(key as binary) key",
            "cast(value as binary) value",
            "unix_millis(timestamp) time",
            "headers",
        )
        return sorted((tuple(row) for row in exact.collect()), key=lambda row: int(row[2]))

    expected = plain(rows)
    assert len(expected) == ROWS
    for topic in (first, second):
        assert plain(read(spark.read, real_kafka, topic)) == expected
