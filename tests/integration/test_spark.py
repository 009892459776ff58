"""PySpark on two cores writes into the embedded broker, and into a real one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark import write_df, write_partition, write_rdd
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing.real_kafka import RealKafka

pytest.importorskip("pyspark")
from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # PySpark 3.5: old version classes, and sockets to the JVM that it leaves to the collector.
    pytest.mark.filterwarnings("ignore:distutils Version classes:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(2) as broker:
        yield broker


@pytest.fixture
def topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.replace("_", "-")
    kafka.create_topic(name)
    return name


@pytest.fixture
def config(kafka: EmbeddedKafka) -> dict[str, object]:
    return {"bootstrap.servers": kafka.bootstrap, "client.id": "spark-tests"}


# ---- RDDs ----


def test_an_rdd_of_bytes(
    spark: SparkSession,
    kafka: EmbeddedKafka,
    topic: str,
    config: dict[str, object],
) -> None:
    rdd = spark.sparkContext.range(0, 30_000, numSlices=3).map(lambda i: b"%d" % i)
    summary = write_rdd(rdd, config, topic)
    found = kafka.records(topic)
    assert sorted(int(record.value or b"") for record in found) == list(range(30_000))
    assert (summary.records, summary.errors, summary.first_error) == (30_000, 0, None)
    assert [(row.task, row.attempt, row.topic, row.partition) for row in summary.rows] == [
        (task, 0, topic, 0) for task in range(3)
    ]
    assert summary.bytes > sum(len(record.value or b"") for record in found)
    # The ranges of the tasks' rows cover the log.
    assert min(row.base_offset for row in summary.rows) == 0
    assert max(row.last_offset for row in summary.rows) == 29_999
    assert summary.records_per_s > 0


def test_every_shape_of_record(
    spark: SparkSession, kafka: EmbeddedKafka, config: dict[str, object]
) -> None:
    for topic in ("shapes-a", "shapes-b"):
        kafka.create_topic(topic, partitions=2)
    moment = datetime(2024, 5, 1, tzinfo=timezone.utc)
    rows: list[Any] = [
        {"value": "text", "topic": "shapes-a", "partition": 0},
        (b"key", b"pair", None, "shapes-a", 0),
        ("key", None, [("h", b"1"), ("h", None)], "shapes-b", 1, 1_000),
        {"value": b"v", "key": None, "topic": "shapes-b", "partition": 1, "timestamp": moment},
    ]
    rdd = spark.sparkContext.parallelize(rows, 1)
    assert write_rdd(rdd, config).records == 4
    plain = spark.sparkContext.parallelize([b"bytes", "str", (b"k", "v")], 1)
    assert write_rdd(plain, config, "shapes-c").records == 3

    first, second = kafka.records("shapes-a", 0)
    assert (first.key, first.value) == (None, b"text")
    assert (second.key, second.value) == (b"key", b"pair")
    tombstone, timed = kafka.records("shapes-b", 1)
    assert (tombstone.key, tombstone.value, tombstone.timestamp_ms) == (b"key", None, 1_000)
    assert tombstone.headers == (("h", b"1"), ("h", None))
    assert (timed.key, timed.timestamp_ms) == (None, 1714521600000)
    assert [(r.key, r.value) for r in kafka.records("shapes-c")] == [
        (None, b"bytes"),
        (None, b"str"),
        (b"k", b"v"),
    ]


def test_a_task_that_failed_is_run_again(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, config: dict[str, object]
) -> None:
    def records(task: int, _: Iterable[int]) -> Iterator[bytes]:
        from pyspark import TaskContext

        for i in range(100):
            # Too large for max.request.size, on the first attempt of the second task only.
            context = TaskContext.get()
            assert context is not None
            spoilt = task == 1 and i == 50 and context.attemptNumber() == 0
            yield bytes(2 << 20) if spoilt else b"%d-%d" % (task, i)

    rdd = spark.sparkContext.parallelize(range(2), 2).mapPartitionsWithIndex(records)
    summary = write_rdd(rdd, config, topic)
    assert (summary.records, summary.errors) == (200, 0)
    assert [(row.task, row.attempt, row.records) for row in summary.rows] == [
        (0, 0, 100),
        (1, 1, 100),
    ]
    values = {record.value for record in kafka.records(topic)}
    assert values == {b"%d-%d" % (task, i) for task in range(2) for i in range(100)}


def test_a_job_that_fails_says_why_and_the_next_one_starts_clean(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, config: dict[str, object]
) -> None:
    spoilt = spark.sparkContext.parallelize([b"fine", bytes(2 << 20), b"fine"], 1)
    with pytest.raises(Exception, match=r"KafkaDeliveryError: 1 of 3 records of task 0, attempt 3"):
        write_rdd(spoilt, config, topic)
    summary = write_rdd(spark.sparkContext.parallelize([b"1", b"2"], 2), config, topic)
    assert (summary.records, summary.errors) == (2, 0)


def test_failures_can_be_reported(
    spark: SparkSession, topic: str, config: dict[str, object]
) -> None:
    spoilt = spark.sparkContext.parallelize([b"fine", bytes(2 << 20), b"fine"], 1)
    summary = write_rdd(spoilt, config, topic, on_error="report")
    assert (summary.records, summary.errors) == (2, 1)
    assert "max.request.size" in (summary.first_error or "")


def test_the_brokers_refusal_names_the_partition(
    spark: SparkSession, kafka: EmbeddedKafka, config: dict[str, object]
) -> None:
    kafka.create_topic("small", partitions=2, config={"max.message.bytes": "2000"})
    records = [(None, bytes(5_000), None, None, 1), (None, b"fine", None, None, 0)]
    rdd = spark.sparkContext.parallelize(records, 1)
    summary = write_rdd(rdd, config, "small", on_error="report")
    assert [(row.partition, row.records, row.errors) for row in summary.rows] == [
        (0, 1, 0),
        (1, 0, 1),
    ]
    assert "MESSAGE_TOO_LARGE" in (summary.first_error or "")


def test_workers_keep_one_producer(
    spark: SparkSession, topic: str, config: dict[str, object]
) -> None:
    def clients(_: Iterable[Any]) -> Iterator[tuple[int, list[str]]]:
        from kafka_fast.spark.producers import PRODUCERS

        yield os.getpid(), [lent.producer.client_id for lent in PRODUCERS._lent.values()]

    context = spark.sparkContext
    mine = {**config, "client.id": "reuse"}
    for _ in range(3):
        write_rdd(context.parallelize([b"1", b"2", b"3", b"4"], 4), mine, topic)
    found = dict(context.parallelize(range(8), 8).mapPartitions(clients).collect())
    assert found
    assert all(ids.count("reuse") <= 1 for ids in found.values())
    assert any("reuse" in ids for ids in found.values())


def test_each_action_on_the_bare_function_writes(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, config: dict[str, object]
) -> None:
    rdd = spark.sparkContext.parallelize([b"1"], 1)
    written = rdd.mapPartitions(write_partition(config, topic))
    assert [written.collect()[0].base_offset for _ in range(2)] == [0, 1]
    assert len(kafka.records(topic)) == 2


# ---- DataFrames ----


def test_a_dataframe_with_every_column(
    spark: SparkSession, kafka: EmbeddedKafka, config: dict[str, object]
) -> None:
    for topic in ("df-even", "df-odd"):
        kafka.create_topic(topic, partitions=3)
    df = spark.sql(
        """
        select concat('df-', if(id % 2 = 0, 'even', 'odd')) topic,
               if(id % 5 = 0, null, cast(cast(id as string) as binary)) key,
               if(id % 7 = 0, null, concat('value ', id)) Value,
               if(id % 3 = 0, null, array(named_struct('key', 'h', 'value', encode(id, 'utf-8')),
                                          named_struct('key', 'n', 'value', null))) headers,
               if(id % 4 = 0, null, cast(id % 3 as int)) partition,
               timestamp_millis(1700000000000 + id) timestamp,
               id ignored
        from range(0, 1000, 1, 2)
        """
    )
    summary = write_df(df, config)
    assert (summary.records, summary.errors) == (1000, 0)
    seen = set()
    for topic in ("df-even", "df-odd"):
        for partition in range(3):
            for record in kafka.records(topic, partition):
                i = record.timestamp_ms - 1_700_000_000_000
                seen.add(i)
                assert topic == ("df-odd" if i % 2 else "df-even")
                assert record.key == (None if i % 5 == 0 else b"%d" % i)
                assert record.value == (None if i % 7 == 0 else b"value %d" % i)
                assert record.headers == (() if i % 3 == 0 else (("h", b"%d" % i), ("n", None)))
                assert i % 4 == 0 or partition == i % 3
    assert seen == set(range(1000))


def test_binary_and_large_types(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, config: dict[str, object]
) -> None:
    df = spark.sql("select cast('v' as binary) value, 'k' key from range(3)")
    assert write_df(df, config, topic).records == 3
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        assert write_df(df, config, topic).records == 3
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    found = kafka.records(topic)
    assert [(r.key, r.value) for r in found] == [(b"k", b"v")] * 6


def test_an_empty_dataframe(spark: SparkSession, topic: str, config: dict[str, object]) -> None:
    df = spark.sql("select 'v' value from range(10) where id > 10")
    summary = write_df(df, config, topic)
    assert (summary.records, summary.rows) == (0, ())


def test_refusals_come_before_the_job(spark: SparkSession, config: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="value type must be a string or binary, but it is bigint"):
        write_df(spark.sql("select id value from range(1)"), config, "t")
    with pytest.raises(UsageError, match="Required attribute 'value' not found"):
        write_df(spark.sql("select id from range(1)"), config, "t")


def test_a_null_topic_fails_the_job(spark: SparkSession, config: dict[str, object]) -> None:
    df = spark.sql("select 'v' value, cast(null as string) topic from range(1)")
    with pytest.raises(Exception, match="null topic present in the data"):
        write_df(df, config)


def test_a_dataframe_whose_records_fail(
    spark: SparkSession, topic: str, config: dict[str, object]
) -> None:
    df = spark.sql("select if(id = 1, repeat('x', 2000000), 'v') value from range(0, 4, 1, 1)")
    with pytest.raises(Exception, match="KafkaDeliveryError: 1 of 4 records"):
        write_df(df, config, topic)
    summary = write_df(df, config, topic, on_error="report")
    assert (summary.records, summary.errors) == (3, 1)


# ---- real Kafka ----


def test_on_real_kafka(spark: SparkSession, real_kafka: RealKafka) -> None:
    real_kafka.create_topic("spark-df", partitions=4)
    real_kafka.create_topic("spark-rdd", partitions=4)
    config = {"bootstrap.servers": real_kafka.bootstrap, "compression.type": "lz4"}
    df = spark.sql("select cast(id as string) key, concat('v', id) value from range(0, 50000)")
    summary = write_df(df, config, "spark-df")
    assert (summary.records, summary.errors) == (50_000, 0)
    rdd = spark.sparkContext.range(0, 50_000).map(lambda i: (b"%d" % i, b"v%d" % i))
    assert write_rdd(rdd, config, "spark-rdd").records == 50_000
    frame, pairs = (
        read_all(real_kafka.bootstrap, "spark-df"),
        read_all(real_kafka.bootstrap, "spark-rdd"),
    )
    expected = {(b"%d" % i, b"v%d" % i) for i in range(50_000)}
    assert {(key, value) for _, key, value in frame} == expected
    assert len(frame) == 50_000
    assert sorted(frame) == sorted(pairs)  # the same keys went into the same partitions


def read_all(bootstrap: str, topic: str) -> list[tuple[Any, Any, Any]]:
    """Return (partition, key, value) of all records, as confluent-kafka reads them."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "spark-tests"})
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)[1]
            for index in partitions
        ]
        found: list[tuple[Any, Any, Any]] = []
        while len(found) < sum(ends):
            for message in consumer.consume(10_000, timeout=30):
                assert message.error() is None
                found.append((message.partition(), message.key(), message.value()))
        return found
    finally:
        consumer.close()
