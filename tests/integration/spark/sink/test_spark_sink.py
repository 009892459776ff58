"""PySpark on two cores writes with `format("kafka_fast")`, batches and streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark import KafkaDeliveryError, kafka_error
from kafka_fast.spark.sink.dedupe_headers import NAMES
from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark.spark_local import SPARK_MARKS, write

pytest.importorskip("pyspark", minversion="4.0")
pytest.importorskip("pyarrow")
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = SPARK_MARKS


class Sink:
    """Writes into a topic of the test's broker."""

    def __init__(self, kafka: EmbeddedKafka, topic: str, folder: Path) -> None:
        self._kafka = kafka
        self._topic = topic
        self._folder = folder

    def batch(self, df: DataFrame, mode: str | None = "append", **options: Any) -> None:
        """Write a DataFrame."""
        writer = df.write.format("kafka_fast").options(**self._options(options))
        (writer if mode is None else writer.mode(mode)).save()

    def start(self, df: DataFrame, mode: str = "append", **options: Any) -> StreamingQuery:
        """Start a stream, or start it again from its checkpoint."""
        writer = df.writeStream.format("kafka_fast").options(**self._options(options))
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.outputMode(mode).start()

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        settings = {
            "kafka.bootstrap.servers": self._kafka.bootstrap,
            "topic": self._topic,
            **options,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def records(self) -> list[Any]:
        """Return the records of all partitions of the topic."""
        return [
            record for number in range(3) for record in self._kafka.records(self._topic, number)
        ]

    def values(self) -> list[bytes]:
        """Return the values of the records, in order."""
        return sorted(record.value for record in self.records())


@pytest.fixture
def sink(kafka: EmbeddedKafka, topic: str, tmp_path: Path) -> Sink:
    return Sink(kafka, topic, tmp_path)


@pytest.fixture(scope="module")
def mistaken(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Sink:
    """A sink that gets nothing."""
    kafka.create_topic("mistaken", partitions=3)
    return Sink(kafka, "mistaken", tmp_path_factory.mktemp("mistaken"))


def producers(kafka: EmbeddedKafka, topic: str) -> set[int]:
    """Return the ids of the producers that have written into a topic."""
    return kafka.on_cluster(
        lambda cluster: {
            producer_id
            for number in range(3)
            for producer_id in cluster.state.partition(topic, number).producers._producers
        }
    )


def texts(numbers: Iterable[int]) -> list[bytes]:
    return sorted(b"%d" % number for number in numbers)


def origin(record: Any) -> tuple[bytes, ...]:
    """Return the dedupe headers of a record."""
    headers = dict(record.headers)
    return tuple(headers[name] for name in NAMES)


def read(spark: SparkSession, kafka: EmbeddedKafka, topic: str, **options: Any) -> DataFrame:
    """Return a stream of the values of a topic."""
    reader = spark.readStream.format("kafka_fast").options(startingOffsets="earliest", **options)
    reader = reader.option("kafka.bootstrap.servers", kafka.bootstrap).option("subscribe", topic)
    return reader.load().select("value")


# ---- batches ----


def test_a_batch(spark: SparkSession, sink: Sink) -> None:
    sink.batch(spark.range(30_000).selectExpr("id", "cast(id as string) value"))
    assert sink.values() == texts(range(30_000))
    sink.batch(spark.sql("select 'v' value limit 0"))
    assert len(sink.records()) == 30_000


def test_all_columns_are_written(spark: SparkSession, kafka: EmbeddedKafka, sink: Sink) -> None:
    kafka.create_topic("columns-a", partitions=2)
    kafka.create_topic("columns-b", partitions=2)
    df = spark.sql("""
        select 'columns-a' Topic, cast('k' as binary) KEY, 'v' value, 1 partition,
            timestamp '2024-05-01 00:00:00.123456' timestamp, 'ignored' other,
            array(named_struct('key', 'h', 'value', cast('1' as binary)),
                  named_struct('key', 'h', 'value', cast(null as binary))) headers
        union all select 'columns-b', null, null, 0, null, null, null
    """)
    sink.batch(df, topic=None)
    (full,) = kafka.records("columns-a", 1)
    assert (full.key, full.value, full.timestamp_ms) == (b"k", b"v", 1714521600123)
    assert full.headers == (("h", b"1"), ("h", None))
    (empty,) = kafka.records("columns-b", 0)
    assert (empty.key, empty.value, empty.headers) == (None, None, ())
    sink.batch(spark.sql("select 'v' value, 1714521600.1239D timestamp, 'columns-a' topic"))
    (timed,) = sink.records()  # the option beats the column
    assert timed.timestamp_ms == 1714521600123


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("select 'k' key", {}, "Required attribute 'value' not found"),
        ("select 1 value", {}, "value attribute unsupported type int"),
        ("select 'v' value", {"topic": None}, "topic option required when no 'topic' attribute"),
        ("select 'v' value", {"kafka.bootstrap.servers": None}, "must be specified"),
        ("select 'v' value", {"kafka.key.serializer": "x"}, "is not supported as keys"),
        ("select 'v' value", {"kafka.lingerms": "1"}, "did you mean 'linger.ms'"),
        ("select 'v' value", {"dedupeHeaders": "maybe"}, "must be 'true' or 'false'"),
    ],
)
def test_mistakes_are_refused_at_planning(
    spark: SparkSession, mistaken: Sink, query: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        mistaken.batch(spark.sql(query), **options)
    assert mistaken.records() == []


@pytest.mark.parametrize("mode", [None, "ignore", "overwrite"])
def test_only_append_is_a_mode(spark: SparkSession, mistaken: Sink, mode: str | None) -> None:
    with pytest.raises(AnalysisException) as raised:
        mistaken.batch(spark.sql("select 'v' value"), mode)
    if mode == "overwrite":  # this one reaches the sink
        assert "UsageError: Save mode Overwrite not allowed for Kafka" in str(raised.value)
    else:
        error = kafka_error(raised.value)
        assert isinstance(error, UsageError)
        refused = {None: "ErrorIfExists", "ignore": "Ignore"}[mode]
        assert str(error) == (
            f'Save mode {refused} is not allowed for a Python data source: write .mode("append")'
        )
    assert mistaken.records() == []


def test_a_null_topic_fails_the_task(spark: SparkSession, mistaken: Sink) -> None:
    df = spark.sql("select 'v' value, cast(null as string) topic")
    with pytest.raises(PythonException) as raised:
        mistaken.batch(df, topic=None)
    error = kafka_error(raised.value)
    assert isinstance(error, UsageError)
    assert str(error).startswith(
        "null topic present in the data. Use the topic option for setting a topic. (Spark task"
    )


def test_a_record_that_is_not_delivered_fails_the_job(spark: SparkSession, mistaken: Sink) -> None:
    with pytest.raises(PythonException) as raised:
        mistaken.batch(spark.sql("select repeat('x', 2000000) value"))
    error = kafka_error(raised.value)
    assert isinstance(error, KafkaDeliveryError)
    assert error.count == 1
    assert mistaken.records() == []


def fails_once(batches: Iterator[Any]) -> Iterator[Any]:
    """Pass record batches on; the first attempt of task 1 fails behind its first one."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for number, batch in enumerate(batches):
        if number == 1 and (context.partitionId(), context.attemptNumber()) == (1, 0):
            raise OSError("the disk is gone")
        yield batch


@pytest.mark.parametrize("job", ["", "of a name"])
def test_a_task_that_is_run_again_writes_duplicates_that_can_be_dropped(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path, job: str
) -> None:
    topic = "again" + job.replace(" ", "-")
    kafka.create_topic(topic, partitions=3)
    sink = Sink(kafka, topic, tmp_path)
    df = spark.range(0, 40_000, numPartitions=2).selectExpr(
        "cast(id as string) value",
        "array(named_struct('key', 'h', 'value', cast('1' as binary))) headers",
    )
    df = df.mapInArrow(fails_once, df.schema)
    more = {"jobId": job} if job else {}
    sink.batch(df, dedupeHeaders="true", **more)
    records = sink.records()
    assert {record.value for record in records} == set(texts(range(40_000)))
    written_twice = [pair for pair in Counter(sink.values()).items() if pair[1] > 1]
    assert all(20_000 <= int(value) < 40_000 for value, _ in written_twice)  # task 1's
    kept = {origin(record): record for record in records}
    assert len(kept) == 40_000
    assert sorted(record.value for record in kept.values()) == texts(range(40_000))
    assert {record.headers[0] for record in records} == {("h", b"1")}
    assert all(
        int(record.value) == 20_000 * int(task) + int(row)
        for (_, _, task, row), record in kept.items()
    )
    (query,) = {query for query, *_ in kept}
    assert not job or query == job.encode()


def test_a_worker_has_one_producer_for_all_its_tasks(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, sink: Sink
) -> None:
    for first in range(0, 400, 80):
        df = spark.range(first, first + 80, numPartitions=8)
        sink.batch(df.selectExpr("cast(id as string) value"))
    assert sink.values() == texts(range(400))
    # Of 40 tasks on two cores. Tests before this one may have left idle workers.
    assert 1 <= len(producers(kafka, topic)) <= 4


# ---- streams ----


def test_a_stream_of_two_micro_batches(
    spark: SparkSession, kafka: EmbeddedKafka, topic: str, sink: Sink
) -> None:
    kafka.create_topic("numbers-in", partitions=3)
    write(kafka, "numbers-in", range(300))
    query = sink.start(read(spark, kafka, "numbers-in"), dedupeHeaders="true")
    query.processAllAvailable()
    # Of one partition, so of one record batch: Spark sees all of it or nothing.
    write(kafka, "numbers-in", range(300, 600, 3))
    query.processAllAvailable()
    query.stop()
    assert sink.values() == texts([*range(300), *range(300, 600, 3)])
    origins = {origin(record): int(record.value) for record in sink.records()}
    assert len(origins) == 400
    assert {place[0] for place in origins} == {query.id.encode()}
    assert {place[1] for place, number in origins.items() if number < 300} == {b"0"}
    assert {place[1] for place, number in origins.items() if number >= 300} == {b"1"}
    assert 1 <= len(producers(kafka, topic)) <= 4


def test_output_mode_update_is_no_mode_of_python(
    spark: SparkSession, kafka: EmbeddedKafka, sink: Sink
) -> None:
    kafka.create_topic("update-in", partitions=3)
    write(kafka, "update-in", range(3))
    query = sink.start(read(spark, kafka, "update-in"), mode="update")
    with pytest.raises(StreamingQueryException) as raised:
        query.processAllAvailable()
    error = kafka_error(raised.value)
    assert isinstance(error, UsageError)
    assert 'write .outputMode("append")' in str(error)
    assert sink.records() == []
