"""PySpark on two cores writes into the embedded broker, and into a real one."""

from __future__ import annotations

import os
import re
import sys
import traceback
import venv
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.errors import (
    DeliveryError,
    InvalidTopicException,
    KafkaTimeoutError,
    MessageTooLarge,
    Outcome,
    UsageError,
)
from kafka_fast.spark import (
    KafkaDeliveryError,
    SparkSetupError,
    kafka_error,
    write_df,
    write_partition,
    write_rdd,
)
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.spark.spark_cluster import ROOT, read_all
from tests.integration.spark.spark_local import SPARK_MARKS

pytest.importorskip("pyspark")
from pyspark.sql import SparkSession

pytestmark = SPARK_MARKS


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
    records = kafka.records(topic)
    assert sorted(int(record.value or b"") for record in records) == list(range(30_000))
    assert (summary.records, summary.errors, summary.first_error) == (30_000, 0, None)
    assert [(row.task, row.attempt, row.topic, row.partition) for row in summary.rows] == [
        (task, 0, topic, 0) for task in range(3)
    ]
    assert summary.bytes > sum(len(record.value or b"") for record in records)
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
        {"value": b"m", "headers": {"one": b"1"}, "topic": "shapes-b", "partition": 0},
        {"value": b"v", "key": None, "topic": "shapes-b", "partition": 1, "timestamp": moment},
    ]
    rdd = spark.sparkContext.parallelize(rows, 1)
    assert write_rdd(rdd, config).records == 5
    plain = spark.sparkContext.parallelize([b"bytes", "str", (b"k", "v")], 1)
    assert write_rdd(plain, config, "shapes-c").records == 3

    first, second = kafka.records("shapes-a", 0)
    assert (first.key, first.value) == (None, b"text")
    assert (second.key, second.value) == (b"key", b"pair")
    (mapped,) = kafka.records("shapes-b", 0)
    assert (mapped.value, mapped.headers) == (b"m", (("one", b"1"),))
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
    with pytest.raises(KafkaDeliveryError) as raised:
        write_rdd(spoilt, config, topic)
    assert FIRST_LINE.fullmatch(str(raised.value))
    assert "(Spark task 0, attempt 3, on " in str(raised.value)
    assert (raised.value.count, raised.value.outcome) == (1, Outcome.NOT_SENT)
    (sample,) = raised.value.samples
    assert isinstance(sample, DeliveryError) and isinstance(sample.first, MessageTooLarge)
    assert is_sparks(raised.value.__cause__)
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
        from kafka_fast.spark.worker.producers import PRODUCERS

        yield os.getpid(), [lent.producer.client_id for lent in PRODUCERS.idle.clients()]

    context = spark.sparkContext
    mine = {**config, "client.id": "reuse"}
    for _ in range(3):
        write_rdd(context.parallelize([b"1", b"2", b"3", b"4"], 4), mine, topic)
    ids_by_process = dict(context.parallelize(range(8), 8).mapPartitions(clients).collect())
    assert ids_by_process
    assert all(ids.count("reuse") <= 1 for ids in ids_by_process.values())
    assert any("reuse" in ids for ids in ids_by_process.values())


def test_nothing_is_pending_between_tasks(
    spark: SparkSession, topic: str, config: dict[str, object]
) -> None:
    def pending(_: Iterable[Any]) -> Iterator[list[int]]:
        from kafka_fast.spark.worker.producers import PRODUCERS

        yield [lent.producer.metrics()["pending_records"] for lent in PRODUCERS.idle.clients()]

    context = spark.sparkContext
    spoilt = context.range(0, 8_000, numSlices=4).map(lambda i: bytes(2 << 20 if i == 7 else 9))
    summary = write_rdd(spoilt, {**config, "linger.ms": 60_000}, topic, on_error="report")
    assert (summary.records, summary.errors) == (7_999, 1)
    counts_of_tasks = context.parallelize(range(8), 8).mapPartitions(pending).collect()
    assert {count for counts in counts_of_tasks for count in counts} == {0}


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
    records = kafka.records(topic)
    assert [(r.key, r.value) for r in records] == [(b"k", b"v")] * 6


def test_an_empty_dataframe(spark: SparkSession, topic: str, config: dict[str, object]) -> None:
    df = spark.sql("select 'v' value from range(10) where id > 10")
    summary = write_df(df, config, topic)
    assert (summary.records, summary.rows) == (0, ())


def test_refusals_come_before_the_job(spark: SparkSession, config: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="value attribute unsupported type bigint"):
        write_df(spark.sql("select id value from range(1)"), config, "t")
    with pytest.raises(UsageError, match="Required attribute 'value' not found"):
        write_df(spark.sql("select id from range(1)"), config, "t")
    with pytest.raises(UsageError, match=r"^a streaming DataFrame has no end"):
        write_df(spark.readStream.format("rate").load(), config, "t")


def test_a_null_topic_fails_the_job(spark: SparkSession, config: dict[str, object]) -> None:
    df = spark.sql("select 'v' value, cast(null as string) topic from range(1)")
    with pytest.raises(UsageError, match=r"^null topic present in the data"):
        write_df(df, config)


def test_a_dataframe_whose_records_fail(
    spark: SparkSession, topic: str, config: dict[str, object]
) -> None:
    df = spark.sql("select if(id = 1, repeat('x', 2000000), 'v') value from range(0, 4, 1, 1)")
    with pytest.raises(KafkaDeliveryError, match=r"^1 of 4 records were not delivered") as raised:
        write_df(df, config, topic)
    assert is_sparks(raised.value.__cause__)
    summary = write_df(df, config, topic, on_error="report")
    assert (summary.records, summary.errors) == (3, 1)


# ---- what a user sees ----

FIRST_LINE = re.compile(
    r"1 of 3 records were not delivered \(not sent\); the first: MESSAGE_TOO_LARGE \(10\): a "
    r"record of 2097152 bytes .* \(Spark task \d, attempt \d, on \S+\)"
)
NO_BROKER = {"bootstrap.servers": "127.0.0.1:1", "max.block.ms": 300}


def is_sparks(error: BaseException | None) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def write_something(spark: SparkSession, kind: str, config: dict[str, object], topic: str) -> None:
    if kind == "df":
        write_df(spark.sql("select 'v' value"), config, topic)
    else:
        write_rdd(spark.sparkContext.parallelize([b"v"], 1), config, topic)


@pytest.mark.parametrize("kind", ["df", "rdd"])
def test_without_a_broker_the_sentence_comes_first(spark: SparkSession, kind: str) -> None:
    with pytest.raises(KafkaTimeoutError, match=r"^no metadata of topic 't' after") as raised:
        write_something(spark, kind, NO_BROKER, "t")
    lines = "".join(traceback.format_exception(raised.value)).splitlines()
    sentence = f"kafka_fast.errors.KafkaTimeoutError: {raised.value}"
    assert (lines[0], lines[-1]) == (sentence, sentence)
    assert "Connection refused" in sentence and "(Spark task 0, attempt 3, on " in sentence
    assert is_sparks(raised.value.__cause__)


def test_without_the_topic(spark: SparkSession) -> None:
    with EmbeddedKafka(1, auto_create=False) as strict:
        config: dict[str, object] = {"bootstrap.servers": strict.bootstrap, "max.block.ms": 300}
        with pytest.raises(KafkaTimeoutError, match=r"^[^\n]*'nowhere'[^\n]*$"):
            write_something(spark, "df", config, "nowhere")


def test_with_a_topic_that_cannot_be(spark: SparkSession, config: dict[str, object]) -> None:
    with pytest.raises(InvalidTopicException, match=r"topic 'a b': .* \(Spark task 0, attempt 3"):
        write_something(spark, "rdd", config, "a b")


def test_a_record_that_cannot_be(spark: SparkSession, config: dict[str, object]) -> None:
    rdd = spark.sparkContext.parallelize([(1, b"v")], 1)
    with pytest.raises(UsageError, match=r"^the key of row 0 for topic 't' must be bytes-like"):
        write_rdd(rdd, config, "t")


def test_an_error_of_the_inputs_own_is_sparks(
    spark: SparkSession, config: dict[str, object]
) -> None:
    rdd = spark.sparkContext.parallelize([0], 1).map(lambda number: 1 / number)
    with pytest.raises(Exception, match="ZeroDivisionError") as raised:
        write_rdd(rdd, config, "t")
    assert is_sparks(raised.value)
    assert kafka_error(raised.value) is None


def test_in_an_action_of_ones_own(spark: SparkSession) -> None:
    written = spark.sparkContext.parallelize([b"v"], 1).mapPartitions(
        write_partition(NO_BROKER, "t")
    )
    with pytest.raises(Exception, match="no metadata of topic") as raised:
        written.count()
    assert is_sparks(raised.value)
    error = kafka_error(raised.value)
    assert isinstance(error, KafkaTimeoutError)
    assert str(error).startswith("no metadata of topic 't' after max.block.ms (300)")


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python without packages. It looks away from the checkout, which all others find."""
    venv.create(tmp_path / "bare", symlinks=True)
    script = tmp_path / "python"
    script.write_text(
        f"#!/bin/sh\ncd {tmp_path}/bare\n"
        f"PYTHONPATH=$(echo \"$PYTHONPATH\" | tr : '\\n' | grep -vxF '{ROOT}' | paste -sd:) "
        'exec bin/python "$@"\n'
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("df", r"a Spark worker's Python lacks what write_df needs: .*[Pp]y[Aa]rrow.*"),
        (
            "rdd",
            r"the Python of a Spark worker, .*/bare/bin/python on .*, cannot import kafka_fast .*",
        ),
    ],
    ids=["df", "rdd"],
)
def test_a_worker_without_packages(
    spark: SparkSession,
    config: dict[str, object],
    bare_python: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    sentence: str,
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare_python))
    with pytest.raises(SparkSetupError) as raised:
        write_something(spark, kind, config, "t")
    assert re.fullmatch(sentence, str(raised.value))


def test_a_driver_without_pandas(
    spark: SparkSession, config: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # type: ignore[arg-type]
    with pytest.raises(SparkSetupError) as raised:
        write_something(spark, "df", config, "t")
    lacks = f"the driver's Python, {sys.executable}, lacks what write_df needs: Pandas >= "
    assert str(raised.value).startswith(lacks)
    assert re.search(r"; pip install 'pandas>=[\d.]+' there$", str(raised.value))


def test_a_worker_without_python(
    spark: SparkSession, config: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "./environment/bin/python")
    with pytest.raises(SparkSetupError, match=r"^the Spark workers cannot run the Python './envir"):
        write_something(spark, "df", config, "t")


def test_a_worker_with_another_python(
    spark: SparkSession, config: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.7")  # what the driver says of itself
    with pytest.raises(SparkSetupError, match=r"^Python in worker has different version"):
        write_something(spark, "rdd", config, "t")


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
