"""Spark Connect: the server runs the tasks, and `foreachBatch`, in Pythons of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafka_fast.testing import EmbeddedKafka
from tests.integration.spark.spark_cluster import ROOT, environment, run

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]

JOB = """
import sys
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from kafka_fast.errors import ConfigError, KafkaTimeoutError, UsageError
from kafka_fast.spark import KafkaDeliveryError, kafka_error, write_df

spark = SparkSession.builder.remote("local[2]").getOrCreate()
config = {"bootstrap.servers": sys.argv[1]}
nobody = {"bootstrap.servers": "127.0.0.1:1", "max.block.ms": 300}
df = spark.range(5_000).selectExpr("cast(id as string) key", "concat('v', id) value")
print(write_df(df, config, "batch").records)

def first_line(expected, write, *arguments):
    try:
        write(*arguments)
    except expected as error:
        print(type(error).__name__, str(error).splitlines()[0], sep=": ")

first_line(UsageError, write_df, spark.range(5), config, "batch")
first_line(KafkaTimeoutError, write_df, df, nobody, "batch")
large = spark.sql("select repeat('x', 2000000) value")
first_line(KafkaDeliveryError, write_df, large, config, "batch")

def stream(config, name):
    def write(batch, _):
        write_df(batch, config, "stream")

    lines = spark.readStream.text(sys.argv[2])
    writer = lines.writeStream.foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", sys.argv[2] + name).start().awaitTermination()

stream(config, ".works")
try:
    stream(nobody, ".fails")
except StreamingQueryException as error:
    assert "KafkaTimeoutError: no metadata of topic 'stream'" in str(error).splitlines()[0]
    print(repr(kafka_error(error)))
spark.stop()
"""


def test_frames_streams_and_errors(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines").write_text("one\ntwo")
    (tmp_path / "job.py").write_text(JOB)
    variables = {
        **environment(tmp_path),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    del variables["SPARK_HOME"]
    with EmbeddedKafka(brokers=2, partitions=3) as kafka:
        script = f"{sys.executable} job.py {kafka.bootstrap} {tmp_path}/in"
        out = run(script, tmp_path, variables, timeout=300).splitlines()
        assert out[0] == "5000"
        assert out[1] == "UsageError: Required attribute 'value' not found; the columns are: id."
        assert out[2].startswith("KafkaTimeoutError: no metadata of topic 'batch' after max.block")
        assert out[3].startswith("KafkaDeliveryError: 1 of 1 records were not delivered (not sent)")
        assert out[4].startswith("KafkaTimeoutError(\"no metadata of topic 'stream' after max.bl")
        assert len(out) == 5
        for topic, count in (("batch", 5_000), ("stream", 2)):
            assert sum(len(kafka.records(topic, number)) for number in range(3)) == count
