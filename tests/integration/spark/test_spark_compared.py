"""`format("kafka_fast")` beside Spark's own connector: rows, tasks, offsets, mistakes, checkpoints.

One Spark with the connector's jars, in a process of its own, runs each query with both formats.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.consuming import write_transactions
from tests.integration.producing import new_topic
from tests.integration.spark.spark_cluster import ROOT
from tests.support.jars import spark_connector
from tests.waiting import killed

pytest.importorskip("pyspark", minversion="4.2")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.broker,
    pytest.mark.long,
    pytest.mark.timeout(900),
]

FORMATS = ("kafka", "kafka_fast")

JOB = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from kafka_fast import Producer

wanted = json.loads(sys.argv[1])
folder = Path(wanted["folder"])
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", wanted["jars"])
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
found = {}

def source(reader, name, options):
    return reader.format(name).options(**{**wanted["base"], **options}).load()

def plain(df):
    rows = df.orderBy("topic", "partition", "offset").collect()
    return [[str(it) for it in row] for row in rows]

def batch(name, options):
    df = source(spark.read, name, options)
    return {
        "rows": plain(df),
        "tasks": df.rdd.getNumPartitions(),
        "schema": json.loads(df.schema.json()),
    }

def stream(name, options, checkpoint):
    batches = {}

    def note(df, number):
        batches[str(number)] = plain(df)

    writer = source(spark.readStream, name, options).writeStream.foreachBatch(note)
    writer = writer.option("checkpointLocation", str(folder / checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return batches

def offsets(checkpoint):
    logs = sorted((folder / checkpoint / "offsets").glob("[0-9]*"), key=lambda it: int(it.name))
    return [json.loads(log.read_text().splitlines()[-1]) for log in logs]

def mistake(is_stream, name, options):
    try:
        if is_stream:
            stream(name, options, f"mistake-{name}-{len(found)}")
        else:
            source(spark.read, name, options).collect()
    except Exception as error:
        return str(error)
    return "no error"

def write(topic, numbers):
    with Producer(bootstrap_servers=wanted["base"]["kafka.bootstrap.servers"]) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % 3).result(60)

for key, options in wanted["batches"].items():
    found[key] = [batch(name, options) for name in ("kafka", "kafka_fast")]
for key, options in wanted["streams"].items():
    both = []
    for name in ("kafka", "kafka_fast"):
        rows = stream(name, options, f"{key}-{name}")
        both.append({"rows": rows, "offsets": offsets(f"{key}-{name}")})
    found[key] = both
for key, (is_stream, options) in wanted["mistakes"].items():
    found[key] = [mistake(is_stream, name, options) for name in ("kafka", "kafka_fast")]
moved = []
for at, name in enumerate(["kafka", "kafka_fast", "kafka", "kafka_fast"]):
    write(wanted["moving"], range(30 * at, 30 * at + 30))
    options = {"subscribe": wanted["moving"], "startingOffsets": "earliest"}
    batches = stream(name, {**options, "maxOffsetsPerTrigger": "12"}, "moved")
    rows = [row for part in batches.values() for row in part]
    moved.append(sorted(int(row[1].partition("b'")[2].rstrip("')")) for row in rows))
found["moved"] = moved
found["moved offsets"] = offsets("moved")[-1]
Path(wanted["result"]).write_text(json.dumps(found))
spark.stop()
"""


def mistakes(topic: str) -> dict[str, tuple[bool, dict[str, str], str]]:
    """Return by name: whether it is one of a stream, its options, and a part of both sentences."""
    one = {"subscribe": topic}
    assigned = "don't match what are assigned"
    return {
        "no strategy": (False, {}, "One of the following options must be specified"),
        "two strategies": (
            False,
            {**one, "subscribePattern": topic},
            "Only one of the following options can be specified",
        ),
        "no topics": (False, {"subscribe": ","}, "No topics to subscribe to"),
        "an empty pattern": (False, {"subscribePattern": " "}, "Pattern to subscribe is empty"),
        "a batch from latest": (
            False,
            {**one, "startingOffsets": "latest"},
            "starting offset can't be latest for batch queries on Kafka",
        ),
        "a batch to earliest": (
            False,
            {**one, "endingOffsets": "earliest"},
            "ending offset can't be earliest for batch queries on Kafka",
        ),
        "an end of a stream": (
            True,
            {**one, "endingOffsets": "latest"},
            "ending offset not valid in streaming queries",
        ),
        "too few partitions": (
            False,
            {**one, "startingOffsets": json.dumps({topic: {"0": 0}})},
            assigned,
        ),
        "no time": (False, {**one, "startingTimestamp": "noon"}, "Expected a single long value"),
        "too late a time": (
            False,
            {**one, "startingTimestamp": "9999999999999"},
            "No offset matched from request of",
        ),
        "a group's reset": (
            False,
            {**one, "kafka.auto.offset.reset": "latest"},
            "auto.offset.reset",
        ),
        "a deserializer": (
            False,
            {**one, "kafka.value.deserializer": "a.B"},
            "value.deserializer",
        ),
        "no more of a partition": (False, {**one, "minPartitions": "0"}, "minPartitions"),
        "too few for a batch": (
            False,
            {**one, "maxRecordsPerPartition": "0"},
            "maxRecordsPerPartition",
        ),
    }


@pytest.fixture(scope="module")
def topics(real_kafka: RealKafka) -> dict[str, str]:
    plain, other, moving = (new_topic(real_kafka, 3) for _ in range(3))
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for topic, count in ((plain, 300), (other, 40)):
            for number in range(count):
                producer.send(
                    topic,
                    b"%d" % number if number % 5 else None,
                    key=b"k" if number % 2 else None,
                    headers=[("h", b"%d" % number), ("none", None)] if number % 3 else None,
                    partition=0 if number % 10 else number // 10 % 3,
                    timestamp_ms=1_700_000_000_000 + number,
                )
    committed = new_topic(real_kafka)
    write_transactions(real_kafka, committed, 6, 3, is_kept=lambda number: number % 2 == 0)
    return {"plain": plain, "other": other, "moving": moving, "committed": committed}


@pytest.fixture(scope="module")
def found(
    real_kafka: RealKafka, topics: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What both formats gave for each query."""
    folder = tmp_path_factory.mktemp("compared")
    plain, other, committed = topics["plain"], topics["other"], topics["committed"]
    one = {"subscribe": plain}
    arguments = {
        "folder": str(folder),
        "result": str(folder / "result.json"),
        "jars": spark_connector(),
        "base": {"kafka.bootstrap.servers": real_kafka.bootstrap},
        "moving": topics["moving"],
        "batches": {
            "all": one,
            "headers": {**one, "includeHeaders": "true"},
            "two topics": {"subscribe": f"{plain},{other}"},
            "pattern": {"subscribePattern": f"^({plain}|{other})"},
            "assign": {"assign": json.dumps({plain: [0, 2], other: [1]})},
            "offsets": {
                **one,
                "startingOffsets": json.dumps({plain: {"0": 3, "1": -2, "2": 2}}),
                "endingOffsets": json.dumps({plain: {"0": 99, "1": 5, "2": -1}}),
            },
            "an empty range": {
                **one,
                "startingOffsets": json.dumps({plain: {"0": 3, "1": 5, "2": 2}}),
                "endingOffsets": json.dumps({plain: {"0": 99, "1": 5, "2": -1}}),
            },
            "times": {
                **one,
                "startingTimestamp": "1700000000100",
                "endingTimestamp": "1700000000250",
            },
            "times of partitions": {
                **one,
                "startingOffsetsByTimestamp": json.dumps(
                    {plain: {"0": 1_700_000_000_100, "1": 1_700_000_000_040, "2": 0}}
                ),
            },
            "more tasks": {**one, "minPartitions": "10"},
            "committed": {"subscribe": committed, "kafka.isolation.level": "read_committed"},
            "uncommitted": {"subscribe": committed, "kafka.isolation.level": "read_uncommitted"},
        },
        "streams": {
            "stream": {**one, "startingOffsets": "earliest"},
            "limited": {
                "subscribe": f"{plain},{other}",
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": "70",
            },
            "committed stream": {
                "subscribe": committed,
                "startingOffsets": "earliest",
                "kafka.isolation.level": "read_committed",
            },
        },
        "mistakes": {
            name: [is_stream, options] for name, (is_stream, options, _) in mistakes(plain).items()
        },
    }
    (folder / "job.py").write_text(JOB)
    with (
        subprocess.Popen(
            [sys.executable, "job.py", json.dumps(arguments)],
            cwd=folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        ) as job,
        killed(job),
    ):
        _, errors = job.communicate(timeout=800)
        assert job.returncode == 0, errors[-5_000:]
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


@pytest.mark.parametrize(
    "query",
    [
        "all",
        "headers",
        "two topics",
        "pattern",
        "assign",
        "offsets",
        "times",
        "times of partitions",
        "more tasks",
        "committed",
        "uncommitted",
    ],
)
def test_batches(found: dict[str, Any], query: str) -> None:
    theirs, ours = found[query]
    assert ours["rows"] == theirs["rows"] != []
    assert ours["tasks"] == theirs["tasks"]
    assert ours["schema"] == theirs["schema"]


def test_an_empty_range_is_a_task_of_theirs_only(found: dict[str, Any]) -> None:
    theirs, ours = found["an empty range"]
    assert ours["rows"] == theirs["rows"] != []
    assert (theirs["tasks"], ours["tasks"]) == (3, 2)


@pytest.mark.parametrize("query", ["stream", "limited", "committed stream"])
def test_streams(found: dict[str, Any], query: str) -> None:
    theirs, ours = found[query]
    assert ours["offsets"] == theirs["offsets"] != []
    assert ours["rows"] == theirs["rows"]


@pytest.mark.parametrize("mistake", mistakes(""))
def test_mistakes(found: dict[str, Any], mistake: str) -> None:
    sentence = mistakes("")[mistake][2]
    theirs, ours = found[mistake]
    assert sentence in ours
    assert sentence.lower() in theirs.lower()  # it has some names of options in lower case


def test_a_checkpoint_goes_on_with_the_other_source(
    found: dict[str, Any], topics: dict[str, str]
) -> None:
    """It goes from kafka to kafka_fast, back, and once more; no record is read twice."""
    assert found["moved"] == [list(range(at, at + 30)) for at in (0, 30, 60, 90)]
    assert found["moved offsets"] == {topics["moving"]: {"0": 40, "1": 40, "2": 40}}
