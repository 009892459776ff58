"""What writing from PySpark costs, JVM and Python workers together, against the null broker.

    python bench/spark/spark_write.py [--records 3000000] [--rounds 3] [--json]

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
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

from bench.spark.spark_local import PARTITIONS, TASKS, made_in_jvm, measured, session, show  # isort: skip
from pyspark.sql import DataFrame, SparkSession

from kafka_fast.spark import write_df, write_rdd
from tests.support.null_broker import NullBroker

TOPIC = "spark"

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
    options = parser.parse_args()
    with NullBroker(partitions=PARTITIONS) as broker, session() as spark:
        config: dict[str, object] = {"bootstrap.servers": broker.bootstrap}
        jobs = all_jobs(spark, config, options.records)
        for run in jobs.values():
            run()
        show(rounds_of(spark, jobs, options.records, options.rounds), as_json=options.json)


def rounds_of(
    spark: SparkSession, jobs: dict[Row, Callable[[], object]], records: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """Yield what each job costs, one after the other, in so many rounds."""
    for _ in range(rounds):
        for (scenario, contender), run in jobs.items():
            results = measured(spark, run, records)
            yield {"scenario": scenario, "contender": contender, "records": records, **results}


def all_jobs(
    spark: SparkSession, config: dict[str, object], records: int
) -> dict[Row, Callable[[], object]]:
    """Return the jobs; each runs one action over so many records."""
    rows = made_in_jvm(spark, records)
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
            sum(values.mapPartitions(lambda partition: [sum(1 for _ in partition)]).collect()),
            records,
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

    counts = rows.mapInArrow(write, "records bigint").collect()
    checked(sum(row.records for row in counts), expected)


if __name__ == "__main__":
    main()
