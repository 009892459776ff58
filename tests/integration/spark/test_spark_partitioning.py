"""Rows go to one Spark task for each Kafka partition: `kafka_partition`, `partition_by="kafka"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_fast import UsageError, key_partitions
from kafka_fast.errors import BrokerError
from kafka_fast.spark import kafka_partition, write_df
from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark.spark_local import SPARK_MARKS

pytest.importorskip("pyspark")
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from typing import Any

pytestmark = SPARK_MARKS

#: Every third row has no key.
ROWS = "select if(id % 3 = 0, null, cast(id % 20 as string)) key, cast(id as string) value"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.sql(f"{ROWS} from range(0, 3000, 1, 4)")


@pytest.fixture
def config(kafka: EmbeddedKafka) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap}


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_the_column_says_where_the_producer_puts_a_key(rows: DataFrame, kind: str) -> None:
    keys = rows.selectExpr(f"cast(key as {kind}) key")
    collected = keys.withColumn("partition", kafka_partition("key", 3)).collect()
    expected = key_partitions(pa.array([row.key for row in collected]), 3)
    assert [-1 if row.partition is None else row.partition for row in collected] == list(expected)
    assert {row.partition for row in collected} == {None, 0, 1, 2}
    assert keys.select(kafka_partition(keys["key"], 3).alias("it")).schema.simpleString() == (
        "struct<it:int>"
    )


def test_each_kafka_partition_is_written_by_one_task(
    rows: DataFrame, kafka: EmbeddedKafka, topic: str, config: dict[str, Any]
) -> None:
    keyed = rows.where("key is not null")
    spread = write_df(keyed, config, topic)
    owned = write_df(keyed, config, topic, partition_by="kafka")
    assert spread.records == owned.records == 2000
    assert len(spread.rows) == 4 * 3
    assert sorted(row.partition for row in owned.rows) == [0, 1, 2]
    if hasattr(rows, "repartitionById"):  # PySpark 4.1
        assert sorted(row.task for row in owned.rows) == [0, 1, 2]
    for partition in range(3):
        log = kafka.records(topic, partition)
        assert set(key_partitions(pa.array([record.key for record in log]), 3)) == {partition}


def test_rows_without_a_key_and_with_a_partition(
    rows: DataFrame, kafka: EmbeddedKafka, topic: str, config: dict[str, Any]
) -> None:
    """A row's own partition counts most; without one and without a key the producer chooses."""
    moved = rows.selectExpr("*", "if(key = '1', 2, null) partition")
    assert write_df(moved, config, topic, partition_by="kafka").records == 3000
    logs = [kafka.records(topic, partition) for partition in range(3)]
    assert sorted(int(record.value or b"") for log in logs for record in log) == list(range(3000))
    assert {
        number for number, log in enumerate(logs) if b"1" in {record.key for record in log}
    } == {2}


def test_mistakes(rows: DataFrame, config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="partition_by must be 'kafka' or None, not 'key'"):
        write_df(rows, config, "mistakes", partition_by="key")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="partition_by='kafka' needs a column 'key'"):
        write_df(rows.select("value"), config, "mistakes", partition_by="kafka")
    named = rows.selectExpr("*", "'mistakes' topic")
    with pytest.raises(UsageError, match="partition_by='kafka' needs one topic for all rows"):
        write_df(named, config, partition_by="kafka")
    with pytest.raises(UsageError, match=r"a topic has 1 to .* partitions, not 0"):
        kafka_partition("key", 0)


def test_a_topic_that_cannot_be_is_told_before_the_shuffle(
    rows: DataFrame, config: dict[str, Any]
) -> None:
    with pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
        write_df(rows, {**config, "max.block.ms": 2000}, "not/valid", partition_by="kafka")
