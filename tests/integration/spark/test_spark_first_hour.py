"""What Spark says to somebody who makes a mistake with `format("kafka_fast")`.

Spark's text begins with the sentence, and `kafka_error` has the error with its type.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast.errors import ConfigError, KafkaError, UnknownTopicOrPartition, UsageError
from kafka_fast.spark import DataLossError, kafka_error
from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark.spark_cluster import ROOT
from tests.integration.spark.spark_local import SPARK_MARKS, write

pytest.importorskip("pyspark", minversion="4.0")
pytest.importorskip("pyarrow")
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = SPARK_MARKS


def check_said(action: Callable[[], object], kind: type[KafkaError], sentence: str) -> None:
    """Check that an action fails, with this sentence before any traceback.

    Args:
        action: Runs a query.
        kind: Type of the error that is in Spark's.
        sentence: Its beginning.
    """
    with pytest.raises(Exception, match=re.escape(sentence)) as raised:
        action()
    text = str(raised.value)
    assert sentence in text.partition("Traceback (most recent call last)")[0], text
    error = kafka_error(raised.value)
    assert type(error) is kind
    assert sentence in str(error)


Batch = Callable[..., object]
Stream = Callable[..., None]


@pytest.fixture
def batch(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> Batch:
    """Reads a topic, with further options."""

    def read(schema: str | None = None, **options: Any) -> object:
        reader = spark.read.format("kafka_fast").options(subscribe=topic)
        reader = reader.option("kafka.bootstrap.servers", kafka.bootstrap)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**options).load().collect()

    return read


@pytest.fixture
def lines(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> Callable[..., DataFrame]:
    """Returns a stream of a topic, with further options."""

    def read(**options: Any) -> DataFrame:
        reader = spark.readStream.format("kafka_fast").options(subscribe=topic)
        reader = reader.option("kafka.bootstrap.servers", kafka.bootstrap)
        return reader.options(**options).load()

    return read


def run(stream: DataFrame, folder: Path, sink: str = "noop", **options: Any) -> None:
    """Run a stream to its end."""
    writer = stream.writeStream.format(sink).options(**options)
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()


def test_mistakes_of_a_batch(batch: Batch, topic: str, kafka: EmbeddedKafka) -> None:
    write(kafka, topic, range(3))
    meant = "unknown option 'startingoffset'; did you mean 'startingOffsets'?"
    check_said(lambda: batch(startingOffset="latest"), UsageError, meant)
    said = "minPartitions must be a number, not 'x'"
    check_said(lambda: batch(minPartitions="x"), UsageError, said)
    check_said(lambda: batch("value binary", minPartitions="x"), UsageError, said)
    said = "unknown property 'fetch.minbytes'; did you mean 'fetch.min.bytes'?"
    check_said(lambda: batch(**{"kafka.fetch.minbytes": "1"}), ConfigError, said)


def test_mistakes_of_a_batch_that_its_planning_finds(
    batch: Batch, topic: str, kafka: EmbeddedKafka
) -> None:
    said = "there is no topic 'none'"
    check_said(lambda: batch(subscribe="none"), UnknownTopicOrPartition, said)
    ends = f'{{"{topic}": {{"0": 5, "1": 5, "2": 5}}}}'
    said = "Some data may have been lost"
    check_said(lambda: batch(endingOffsets=ends), DataLossError, said)


def test_mistakes_of_a_stream(lines: Callable[..., DataFrame], tmp_path: Path) -> None:
    said = "a new stream that begins at 'latest' could lose records"
    check_said(lambda: run(lines(), tmp_path / "1"), UsageError, said)
    said = "there is no topic 'none'"
    first: dict[str, str] = {"startingOffsets": "earliest"}
    absent = lines(subscribe="none", **first)
    check_said(lambda: run(absent, tmp_path / "2"), UnknownTopicOrPartition, said)
    said = "ending offset not valid in streaming queries"
    check_said(lambda: run(lines(endingOffsets="latest"), tmp_path / "3"), UsageError, said)
    said = "Required attribute 'value' not found"
    others = lines(**first).select("key"), tmp_path / "4"
    servers = {"kafka.bootstrap.servers": "nowhere:1", "topic": "t"}
    check_said(lambda: run(*others, "kafka_fast", **servers), UsageError, said)


def test_a_directory_is_refused_before_the_query_starts(
    lines: Callable[..., DataFrame], tmp_path: Path
) -> None:
    said = f"initialOffsetsLocation {tmp_path} is a directory"
    check_said(lambda: lines(initialOffsetsLocation=str(tmp_path)), UsageError, said)


def test_mistakes_of_a_batch_that_writes(spark: SparkSession, kafka: EmbeddedKafka) -> None:
    def save(rows: str, **options: str) -> None:
        writer = spark.range(1).selectExpr(rows).write.format("kafka_fast").mode("append")
        writer.option("kafka.bootstrap.servers", kafka.bootstrap).options(**options).save()

    said = "unknown option 'topik'; did you mean 'topic'?"
    check_said(lambda: save("'x' value", topik="t"), UsageError, said)
    check_said(lambda: save("id", topic="t"), UsageError, "Required attribute 'value' not found")


PROGRAM = """
import sys
from kafka_fast.spark import SparkSetupError, kafka_error, register, write_df
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
reader = spark.read.format("kafka_fast")
writer = spark.range(1).selectExpr("'x' value")
for action in (
    reader.load,
    writer.write.format("kafka_fast").mode("append").save,
    lambda: register(spark),
    reader.load,
    lambda: write_df(writer, {"bootstrap.servers": "nowhere:1"}, "t"),
):
    try:
        action()
    except Exception as error:
        print(f"{type(error).__name__}: {kafka_error(error)!r}")
        print(error, file=sys.stderr)
"""
PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")


def test_a_session_whose_python_is_not_the_drivers(tmp_path: Path) -> None:
    """As in a program that runs by the path of a virtual environment's Python, not activated."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # has no installed packages
    python.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore"}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH"):
        environment.pop(name, None)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, capture_output=True
    )
    lines = ran.stdout.decode().splitlines()
    assert ran.returncode == 0 and len(lines) == 5, ran.stderr.decode()
    remedy = f"let PYSPARK_PYTHON name a Python that has it, such as {sys.executable}, before"
    assert all("SparkSetupError(" in line and remedy in line for line in lines), lines
    said = re.findall(r"```text\n(.*DATA_SOURCE_NOT_FOUND.*) \.\.\.\n```", PAGE)
    assert len(said) == 1 and ran.stderr.decode().count(said[0]) == 2
    looked = f"the python3 of the PATH, here {python}, because PYSPARK_PYTHON names none"
    assert [looked in line for line in lines] == [True, True, False, False, False]
    assert [line.partition(":")[0] for line in lines[2:]] == [
        "SparkSetupError",
        "AnalysisException",
        "SparkSetupError",
    ]
