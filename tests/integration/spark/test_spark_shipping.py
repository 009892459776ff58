"""docs/spark.md as written: its job in a cluster whose workers have a packed environment only."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.spark.spark_cluster import (
    ROOT,
    environment,
    numbers_aside,
    read_all,
    run,
    spark_home,
    standalone,
    wheel_of_checkout,
)

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs/spark.md").read_text(encoding="utf-8")
PACK, SUBMIT = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
JOB = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
PRINTED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Follow the page's recipe up to the archive; return the directory in which that was."""
    folder = tmp_path_factory.mktemp("packed")
    if request.config.getoption("--long"):
        wheel = max((ROOT / "wheelhouse").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    else:
        wheel = wheel_of_checkout(folder)
    (folder / "wheelhouse").mkdir()
    shutil.copy(wheel, folder / "wheelhouse")
    run(PACK, folder, environment(folder), timeout=300)
    assert (folder / "environment.tar.gz").exists()
    return folder


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, partitions=6) as broker:
        yield broker


def write_job(packed: Path, bootstrap: str, job: str = JOB) -> None:
    assert "broker1:9092,broker2:9092" in JOB
    (packed / "job.py").write_text(job.replace("broker1:9092,broker2:9092", bootstrap))


def test_the_recipe_on_a_local_cluster(packed: Path, tmp_path: Path, kafka: EmbeddedKafka) -> None:
    home = spark_home(tmp_path, {"spark.master": "local-cluster[2,1,1024]"})
    write_job(packed, kafka.bootstrap)
    out = run(SUBMIT, packed, environment(home), timeout=240)
    assert numbers_aside(out) == numbers_aside(PRINTED)
    assert out.startswith("Wrote 1,000 records")
    records = [record for number in range(6) for record in kafka.records("events", number)]
    assert sorted(int(record.key or b"") for record in records) == list(range(1000))
    # Each executor has unpacked the archive and ran that Python, which alone has kafka_fast.
    assert len(list(home.glob("work/app-*/*/environment/bin/python"))) == 2


# ---- make test-long ----

LOST_EXECUTOR = """
import os, signal
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
from kafka_fast.spark import write_rdd

def records(task, _):
    for number in range(20_000):
        if (task, number, TaskContext.get().attemptNumber()) == (1, 10_000, 0):
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
            executor = int(daemon.rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
        yield b"%d-%d" % (task, number)

context = SparkSession.builder.getOrCreate().sparkContext
rdd = context.parallelize(range(4), 4).mapPartitionsWithIndex(records)
summary = write_rdd(rdd, {"bootstrap.servers": "broker1:9092,broker2:9092"}, topic="survivors")
print(summary.records, max(row.attempt for row in summary.rows))
"""


@pytest.mark.long
def test_the_recipe_on_a_standalone_master_with_two_workers(
    packed: Path, tmp_path: Path, real_kafka: RealKafka
) -> None:
    for topic in ("events", "survivors"):
        real_kafka.create_topic(topic, partitions=6)
    home = spark_home(tmp_path, {"spark.executor.memory": "512m", "spark.cores.max": "2"})
    with standalone(tmp_path, home, workers=2) as master:
        with (home / "conf" / "spark-defaults.conf").open("a") as defaults:
            defaults.write(f"spark.master {master}\n")
        write_job(packed, real_kafka.bootstrap)
        out = run(SUBMIT, packed, environment(home), timeout=300)
        assert numbers_aside(out) == numbers_aside(PRINTED)
        keys = [key for _, key, _ in read_all(real_kafka.bootstrap, "events")]
        assert sorted(map(int, keys)) == list(range(1000))
        assert len(list(tmp_path.glob("worker-*/app-*/*/environment/bin/python"))) == 2

        write_job(packed, real_kafka.bootstrap, LOST_EXECUTOR)
        out = run(SUBMIT, packed, environment(home), timeout=300)
        assert out == "80000 1\n"
        values = {value for _, _, value in read_all(real_kafka.bootstrap, "survivors")}
        assert values == {b"%d-%d" % (task, i) for task in range(4) for i in range(20_000)}
