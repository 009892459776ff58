"""Write an RDD into Kafka: a function for `mapPartitions`, and a job that runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafka_fast.spark.entry import worker_entry
from kafka_fast.spark.job_errors import typed_errors
from kafka_fast.spark.options import CHUNK_RECORDS, JobConfiguration, OnError, task_options
from kafka_fast.spark.report import ReportRow, Summary, summarize

if TYPE_CHECKING:
    from pyspark import RDD


def write_partition(
    config: JobConfiguration,
    topic: str | None = None,
    *,
    on_error: OnError = "raise",
    chunk_records: int = CHUNK_RECORDS,
) -> Callable[[Iterable[Any]], Iterator[ReportRow]]:
    """Return a function for `rdd.mapPartitions` that writes a partition's records.

    A record is bytes or str (a value), a tuple (key, value, headers, topic, partition, timestamp)
    of which all but key and value may be left out from the end, or a dict or Row with these names.
    A timestamp is a datetime or Unix time in ms. The function yields one ReportRow for each Kafka
    partition, after the last record is acknowledged.

    Every action on the resulting RDD writes again; `write_rdd` runs exactly one.

    Examples:
        >>> write = write_partition({"bootstrap.servers": "broker:9092"}, "events")
        >>> rows = sc.parallelize([b"1", (b"key", b"2")]).mapPartitions(write).collect()

    Args:
        config: a producer's properties, plain values only; see the configuration page. Or a
            function that returns them, on the executor: for secrets, and for values that are
            objects.
        topic: topic of all records; None: each record names its topic.
        on_error: "raise" fails the task with KafkaDeliveryError, so that Spark runs it again;
            "report" leaves the failures to the rows' `errors` and `first_error`.
        chunk_records: most records that are handed to the producer at once.

    Raises:
        ConfigError: a property is unknown, out of range, or no plain value.
        TypeError: the configuration is no mapping.
        UsageError: another argument is not valid.
    """
    call = "rdd.mapPartitions(write_partition({config}, {topic}))"
    try:
        options = task_options(
            config, topic, call=call, on_error=on_error, chunk_records=chunk_records
        )
    finally:
        del config  # a traceback that has this frame shows no secret
    return worker_entry("write_records", options.shipped())


def write_rdd(
    rdd: RDD[Any],
    config: JobConfiguration,
    topic: str | None = None,
    *,
    on_error: OnError = "raise",
    chunk_records: int = CHUNK_RECORDS,
) -> Summary:
    """Write the records of an RDD in one Spark job, and return a summary.

    Delivery is at least once: a task that Spark runs again writes again. Records and the other
    arguments are as for `write_partition`.

    Raises:
        ConfigError, TypeError, UsageError: As for `write_partition`.
        KafkaDeliveryError: records of a task were not delivered, not even by its last attempt.
        KafkaError: a task could not write at all. The `__cause__` of both is Spark's own error.
        SparkSetupError: the Python of a worker is missing, lacks a package, or has another version.
    """
    if not hasattr(rdd, "mapPartitions"):
        is_df = hasattr(rdd, "mapInArrow")
        right = "write_df(df, config, topic)" if is_df else "write_rdd(rdd, config, topic)"
        raise TypeError(f"write_rdd takes an RDD, not {type(rdd).__name__}: {right}")
    try:
        options = task_options(config, topic, on_error=on_error, chunk_records=chunk_records)
    finally:
        del config  # a traceback that has this frame shows no secret
    write = worker_entry("write_records", options.shipped())
    started = time.monotonic()
    with typed_errors():
        rows = rdd.mapPartitions(write).collect()
    return summarize(rows, time.monotonic() - started)
