"""What writing from PySpark costs, JVM and Python workers together, against the null broker.

    python bench/spark_write.py [--records 3000000] [--rounds 3] [--json]

Spark runs as local[2]; a row is an 8-byte key and a 100-byte value. Each job runs once to warm up;
then all take turns, and the table has the medians. CPU is user and system time of the JVM and of
all processes below it, so of the Python workers too; the driver's Python only waits.

The rows of a DataFrame are made in the JVM; those of an RDD in Python. A job that only counts says
what Spark itself takes for making the rows and bringing them to the code that would write them:
this is what every writer in Python pays first. `--json` prints one line for each job and round, as
compare.py reads them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from measure import TICKS
from pyspark.sql import DataFrame, SparkSession

from kafka_fast.spark import write_df, write_rdd
from kafka_fast.testing.null_broker import NullBroker

TASKS = 4
PARTITIONS = 16
TOPIC = "spark"
VALUE_SIZE = 100

# The rows of the tables: what is written, and by whom.
DATAFRAME = "DataFrame"
RDD = "RDD of bytes"
OURS = "kafka_fast"
CONFLUENT = "confluent"
COUNTING = "counting only"
JVM_ONLY = "noop sink"

Row = tuple[str, str]  # scenario and contender


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one line for each run")
    wanted = parser.parse_args()
    with NullBroker(partitions=PARTITIONS) as broker, session() as spark:
        config: dict[str, object] = {"bootstrap.servers": broker.bootstrap}
        jobs = all_jobs(spark, config, wanted.records)
        for run in jobs.values():
            run()
        rounds = [
            {row: cpu_and_wall(spark, run) for row, run in jobs.items()}
            for _ in range(wanted.rounds)
        ]
    if wanted.json:
        print_lines(rounds, wanted.records)
    else:
        print_table(rounds, wanted.records)


def print_lines(rounds: list[dict[Row, tuple[float, float]]], records: int) -> None:
    """Print each run as one JSON line."""
    for results in rounds:
        for (scenario, contender), (cpu, wall) in results.items():
            line = {
                "scenario": scenario,
                "contender": contender,
                "records": records,
                "tree_cpu_per_million": cpu * 1e6 / records,
                "records_per_s": records / wall,
            }
            print(json.dumps(line))


def print_table(rounds: list[dict[Row, tuple[float, float]]], records: int) -> None:
    """Print the medians of all rounds."""
    print("| rows | who | CPU s per million | wall s per million |\n|---|---|---|---|")
    for row in rounds[0]:
        cpu, wall = (
            statistics.median(results[row][i] for results in rounds) * 1e6 / records
            for i in range(2)
        )
        print(f"| {row[0]} | {row[1]} | {cpu:.3f} | {wall:.3f} |")


def session() -> SparkSession:
    """Start Spark on two cores."""
    builder = SparkSession.builder.master("local[2]").appName("kafka_fast bench")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.ansi.enabled", "false")  # ANSI casts no number to binary
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()


def all_jobs(
    spark: SparkSession, config: dict[str, object], records: int
) -> dict[Row, Callable[[], object]]:
    """Return the jobs; each runs one action over so many records."""
    rows = spark.sql(
        f"""
        select cast(id as binary) key, cast(repeat('v', {VALUE_SIZE}) as binary) value
        from range(0, {records}, 1, {TASKS})
        """
    )
    values = spark.sparkContext.parallelize(range(TASKS), TASKS).mapPartitions(
        made_in_python(records // TASKS)
    )
    return {
        (DATAFRAME, JVM_ONLY): lambda: rows.write.format("noop").mode("append").save(),
        (DATAFRAME, COUNTING): lambda: checked(
            sum(row.records for row in rows.mapInArrow(counting, "records bigint").collect()),
            records,
        ),
        (DATAFRAME, OURS): lambda: checked(write_df(rows, config, TOPIC).records, records),
        (DATAFRAME, CONFLUENT): lambda: with_confluent(rows, config, records),
        (RDD, COUNTING): lambda: checked(
            sum(values.mapPartitions(lambda it: [sum(1 for _ in it)]).collect()), records
        ),
        (RDD, OURS): lambda: checked(write_rdd(values, config, TOPIC).records, records),
    }


def checked(records: int, expected: int) -> None:
    """Refuse a job that did not write everything."""
    if records != expected:
        raise RuntimeError(f"{records} records instead of {expected}")


def made_in_python(count: int) -> Callable[[Any], Iterator[bytes]]:
    """Return a function that makes so many values in a worker."""

    def make(_: Any) -> Iterator[bytes]:
        distinct = [b"%0100d" % i for i in range(1000)]
        return islice(cycle(distinct), count)

    return make


def counting(batches: Iterator[Any]) -> Iterator[Any]:
    """Count rows and forget them."""
    import pyarrow as pa

    count = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"records": [count]})


def with_confluent(rows: DataFrame, config: dict[str, object], expected: int) -> None:
    """Write with confluent-kafka as one does: columns as lists, `produce` in a loop, flush."""
    properties = {**config, "enable.idempotence": True, "linger.ms": 5}

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        import confluent_kafka
        import pyarrow as pa

        # One producer for each worker process, as kafka_fast.spark keeps it.
        kept = vars(confluent_kafka)
        if "kept_by_bench" not in kept:
            kept["kept_by_bench"] = confluent_kafka.Producer(properties)
        producer = kept["kept_by_bench"]
        count = 0
        for batch in batches:
            keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            for key, value in zip(keys, values, strict=True):
                while True:
                    try:
                        producer.produce(TOPIC, value, key)
                        break
                    except BufferError:
                        producer.poll(0.1)
            count += len(values)
        left = producer.flush()
        yield pa.RecordBatch.from_pydict({"records": [count - left]})

    found = rows.mapInArrow(write, "records bigint").collect()
    checked(sum(row.records for row in found), expected)


def cpu_and_wall(spark: SparkSession, run: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of the JVM and its workers, and the seconds, that a job takes."""
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.proc.pid
    cpu, started = tree_cpu(jvm), time.perf_counter()
    run()
    return tree_cpu(jvm) - cpu, time.perf_counter() - started


def tree_cpu(root: int) -> float:
    """Return the CPU seconds of a process, its descendants, and those of them that have ended."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="ascii").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(fields[1])
        # utime, stime, and the same of children that were waited for.
        spent[int(path.parent.name)] = sum(map(int, fields[11:15]))
    tree = {root}
    while grown := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= grown
    return sum(spent.get(pid, 0) for pid in tree) / TICKS


if __name__ == "__main__":
    main()
