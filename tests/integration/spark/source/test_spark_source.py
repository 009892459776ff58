"""PySpark on two cores reads with `format("kafka_fast")`, batches and streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast import Producer
from kafka_fast.spark import DataLossError, kafka_error, register
from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark.spark_local import SPARK_MARKS, pyspark_version, write

pytest.importorskip("pyspark", minversion="4.0")
pytest.importorskip("pyarrow")
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = SPARK_MARKS


Reader = Callable[..., "DataFrame"]


@pytest.fixture
def read(spark: SparkSession, kafka: EmbeddedKafka) -> Reader:
    """Reads a batch with these options."""

    def read(schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("kafka_fast").option("kafka.bootstrap.servers", kafka.bootstrap)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**options).load()

    return read


def numbers(df: DataFrame) -> list[int]:
    return sorted(int(row[0]) for row in df.selectExpr("cast(value as string)").collect())


# ---- batches ----


def test_rows_have_the_columns_of_sparks_own_source(
    kafka: EmbeddedKafka, topic: str, read: Reader
) -> None:
    times = [1_700_000_000_123, 1_700_000_000_124]
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        headers = [[("h", b"1"), ("h", None)], None]
        producer.send_many(
            topic,
            [b"one", None],
            keys=[None, b"key"],
            partitions=[1, 1],
            headers=headers,
            timestamps_ms=times,
        ).result(30)
    df = read(subscribe=topic, includeHeaders="true")
    assert df.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second = df.orderBy("offset").collect()
    assert first[:5] == (None, b"one", topic, 1, 0)
    assert second[:5] == (b"key", None, topic, 1, 1)
    assert [row.timestamp.microsecond for row in (first, second)] == [123_000, 124_000]
    assert first.timestampType == 0
    assert [tuple(header) for header in first.headers] == [("h", b"1"), ("h", None)]
    assert second.headers is None
    assert "headers" not in read(subscribe=topic).columns


def test_a_schema_chooses_the_columns(kafka: EmbeddedKafka, topic: str, read: Reader) -> None:
    write(kafka, topic, range(10))
    df = read("offset bigint, value binary", subscribe=topic)
    assert df.columns == ["offset", "value"]
    assert sorted(int(value) for _, value in df.collect()) == list(range(10))
    with pytest.raises(AnalysisException, match="column offset is of type bigint, not string"):
        read("offset string", subscribe=topic).collect()


def test_a_batch_ends_where_the_log_ended(kafka: EmbeddedKafka, topic: str, read: Reader) -> None:
    write(kafka, topic, range(30_000))
    df = read(subscribe=topic)
    assert numbers(df) == list(range(30_000))
    assert df.rdd.getNumPartitions() == 3
    write(kafka, topic, range(30_000, 30_010))
    # Spark plans a Python source once; PySpark 4.0 does for each action.
    assert df.count() == (30_010 if pyspark_version() == (4, 0) else 30_000)
    assert read(subscribe=topic).count() == 30_010


def test_bounds_are_exact(kafka: EmbeddedKafka, topic: str, read: Reader) -> None:
    write(kafka, topic, range(300), timestamps_ms=[1_000_000 + number for number in range(300)])
    by_offset = read(
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 10, "1": -2, "2": 100}}),
        endingOffsets=json.dumps({topic: {"0": 20, "1": 1, "2": -1}}),
    )
    assert numbers(by_offset) == sorted([*range(30, 60, 3), 1])
    by_time = read(subscribe=topic, startingTimestamp="1000100", endingTimestamp="1000200")
    assert numbers(by_time) == list(range(100, 200))
    one = read(assign=json.dumps({topic: [2]}), endingOffsets=json.dumps({topic: {"2": 2}}))
    assert numbers(one) == [2, 5]


def test_partitions_are_split_into_tasks(kafka: EmbeddedKafka, topic: str, read: Reader) -> None:
    write(kafka, topic, range(3_000))
    df = read(subscribe=topic, minPartitions="6")
    assert df.rdd.getNumPartitions() == 6
    assert numbers(df) == list(range(3_000))
    df = read(subscribe=topic, maxRecordsPerPartition="300")
    assert df.rdd.getNumPartitions() == 12
    assert numbers(df) == list(range(3_000))


def test_a_pattern_finds_topics(kafka: EmbeddedKafka, read: Reader) -> None:
    for name in ("pattern-a", "pattern-b", "other-a"):
        kafka.create_topic(name)
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            producer.send(name, name).result(30)
    df = read(subscribePattern=r"^\Qpattern\E-\p{Lower}")
    assert {row.topic for row in df.collect()} == {"pattern-a", "pattern-b"}


def test_a_query_that_reads_a_part_leaves_the_worker_ready(
    kafka: EmbeddedKafka, topic: str, read: Reader
) -> None:
    write(kafka, topic, range(90_000))
    df = read(subscribe=topic)
    for _ in range(3):
        assert len(df.limit(5).collect()) == 5
    assert df.count() == 90_000


def test_a_session_that_did_not_find_the_source(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, read: Reader
) -> None:
    write(kafka, topic, range(9))
    register(spark)
    assert numbers(read(subscribe=topic)) == list(range(9))


def test_an_empty_topic_has_no_rows(topic: str, read: Reader) -> None:
    assert read(subscribe=topic).collect() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "One of the following options must be specified"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "latest"}, "is not supported"),
        ({"subscribe": "t", "kafka.fetch.min.bytess": "1"}, "did you mean 'fetch.min.bytes'"),
    ],
)
def test_mistakes_are_refused_at_planning(
    read: Reader, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        read(**options).collect()


def test_deleted_records(kafka: EmbeddedKafka, topic: str, read: Reader) -> None:
    write(kafka, topic, range(30))
    kafka.delete_records(topic, 0, 5)
    start = json.dumps({topic: {"0": 2, "1": 0, "2": 0}})
    with pytest.raises(PythonException) as raised:
        read(subscribe=topic, startingOffsets=start).collect()
    error = kafka_error(raised.value)
    assert isinstance(error, DataLossError)
    assert f"[2, 10) for topic partition {topic}-0" in str(error)
    left = read(subscribe=topic, startingOffsets=start, failOnDataLoss="false")
    assert numbers(left) == [number for number in range(30) if number % 3 or number >= 15]


def test_an_end_behind_the_log_is_data_loss(kafka: EmbeddedKafka, topic: str, read: Reader) -> None:
    write(kafka, topic, range(30))
    end = json.dumps({topic: {"0": 11, "1": 10, "2": 10}})
    with pytest.raises(AnalysisException, match="is 11, but its log ends at 10"):
        read(subscribe=topic, endingOffsets=end).collect()
    assert read(subscribe=topic, endingOffsets=end, failOnDataLoss="false").count() == 30
