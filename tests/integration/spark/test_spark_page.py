"""The snippets of docs/spark.md, and README.md's, run and print what the page says.

The recipe of docs/spark.md has a file of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.testing import EmbeddedKafka

pytest.importorskip("pyspark")
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.documentation.pages import blocks
from tests.documentation.reader import compare
from tests.integration.spark.spark_cluster import ROOT, numbers_aside

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # PySpark's own
]

PAGE = ROOT / "docs" / "spark.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
JOB, PYTHON, FAILURE, STREAM, END_OF_STREAM, _SECURE, OF_FILE, READ, *BLOCKS_OF_WRITES = BLOCKS
WRITE, WRITE_STREAM, CHANGES = BLOCKS_OF_WRITES
PRINTED, _NOT_FOUND, ERROR, READ_PRINTED = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
SERVERS = "broker1:9092,broker2:9092"


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, partitions=6) as broker:
        yield broker


def run(example: str, names: dict[str, Any], bootstrap: str = "") -> None:
    exec(compile(example.replace(SERVERS, bootstrap), str(PAGE), "exec"), names)


def test_the_job_and_its_failure(
    spark: SparkSession, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    run(JOB, names, kafka.bootstrap)
    out = capsys.readouterr().out
    assert numbers_aside(out) == numbers_aside(PRINTED), out
    assert out.startswith("Wrote 1,000 records (") and " 6 partitions of topic events" in out
    run(FAILURE, names)
    error, attributes = capsys.readouterr().out.splitlines()
    assert error.startswith(ERROR.removesuffix("...\n"))
    assert attributes.startswith("1 not sent (DeliveryError(")


def test_the_python_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "another")
    run(PYTHON, {})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_the_reader(
    spark: SparkSession, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.create_topic("read", partitions=2)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send_many("read", [b"%d" % number for number in range(1000)]).result(30)
    capsys.readouterr()
    run(READ.replace('"events"', '"read"'), {}, kafka.bootstrap)
    assert capsys.readouterr().out == READ_PRINTED


def test_the_reader_with_a_file(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    kafka.create_topic("kept", partitions=1)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send("kept", b"value").result(30)
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={kafka.bootstrap}\nlinger.ms=5\n")
    names: dict[str, Any] = {"spark": spark}
    example = OF_FILE.replace("/etc/kafka/client.properties", str(file))
    run(example.replace('"events"', '"kept"'), names)
    assert [bytes(row.value) for row in names["events"].collect()] == [b"value"]
    assert kafka.bootstrap not in names["events"]._jdf.queryExecution().toString()
    writer = names["events"].write.format("kafka_fast").option("propertiesFile", str(file))
    writer.option("topic", "kept").mode("append").save()
    assert [record.value for record in kafka.records("kept")] == [b"value", b"value"]


def test_the_writer(spark: SparkSession, kafka: EmbeddedKafka) -> None:
    kafka.create_topic("written", partitions=1)
    run(WRITE.replace('"events"', '"written"'), {}, kafka.bootstrap)
    rows = {record.key: record.value for record in kafka.records("written")}
    assert rows == {b"%d" % number: b'{"id":%d}' % number for number in range(1000)}


def test_the_streams_that_write(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    for topic in ("lines", "upper-lines", "counts"):
        kafka.create_topic(topic, partitions=1)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send_many("lines", ["one", "two"], keys=["a", "a"]).result(30)
    names: dict[str, Any] = {"spark": spark, "path": str(tmp_path / "upper")}
    run(WRITE_STREAM, names, kafka.bootstrap)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert [record.value for record in kafka.records("upper-lines")] == [b"ONE", b"TWO"]
    names["path"] = str(tmp_path / "counts")
    run(CHANGES, names, kafka.bootstrap)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert [(record.key, record.value) for record in kafka.records("counts")] == [(b"a", b"2")]


def test_the_readme(
    spark: SparkSession, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    readme = blocks("README.md")
    (number,) = [number for number, block in enumerate(readme) if "write_df" in block.text]
    kafka.create_topic("numbers", partitions=1)
    exec(readme[number].text.replace("localhost:9092", kafka.bootstrap), {})
    compare(readme[number], readme[number + 1].text, capsys.readouterr().out)
    assert len(kafka.records("numbers")) == 1000


@pytest.mark.parametrize("works", [True, False])
def test_the_stream_and_its_end(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path, works: bool
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines").write_text("one\ntwo\nthree")
    servers = kafka.bootstrap if works else "127.0.0.1:1"
    names: dict[str, Any] = {
        "config": {"bootstrap.servers": servers, "max.block.ms": 10_000 if works else 300},
        "df": spark.readStream.text(str(tmp_path / "in")),
        "path": str(tmp_path / "checkpoint"),
    }
    exec("from kafka_fast.spark import write_df", names)
    run(STREAM.replace('topic="events"', 'topic="text-lines"'), names)
    if works:
        names["query"].processAllAvailable()
        names["query"].stop()
        records = [record for number in range(6) for record in kafka.records("text-lines", number)]
        assert sorted(record.value or b"" for record in records) == [b"one", b"three", b"two"]
    else:
        with pytest.raises(KafkaTimeoutError, match="no metadata of topic 'text-lines'") as raised:
            run(END_OF_STREAM, names)
        # Spark's own error has the sentence in its first line, too.
        assert isinstance(raised.value.__context__, StreamingQueryException)
        first, *_ = str(raised.value.__context__).splitlines()
        assert f"KafkaTimeoutError: {raised.value}" in first
