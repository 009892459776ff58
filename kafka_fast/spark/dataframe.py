"""Write a DataFrame into Kafka over Arrow: no record becomes a Python object.

Columns and refusals are those of Spark's own Kafka sink; a refusal comes before the job runs. This
works on Spark Connect, too, if the package is installed on the server.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from kafka_fast.errors import UsageError
from kafka_fast.spark.entry import worker_entry
from kafka_fast.spark.job_errors import typed_errors
from kafka_fast.spark.options import JobConfiguration, OnError, task_options
from kafka_fast.spark.partitioning import repartitioned
from kafka_fast.spark.report import REPORT_SCHEMA, ReportRow, Summary, summarize
from kafka_fast.spark.table_columns import ARGUMENT, check_columns, columns_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_df(
    df: DataFrame,
    config: JobConfiguration,
    topic: str | None = None,
    *,
    on_error: OnError = "raise",
    partition_by: Literal["kafka"] | None = None,
) -> Summary:
    """Write the rows of a DataFrame in one Spark job, and return a summary.

    Columns: value (string or binary), and if present key (string or binary), headers
    (array<struct<key: string, value: binary>>), topic (string), partition (int) and timestamp
    (timestamp, or double: Unix time in seconds). Other columns are ignored. Delivery is at least
    once: a task that Spark runs again writes again.

    Examples:
        >>> df = spark.sql("select cast(id as string) key, 'hello' value from range(1000)")
        >>> write_df(df, {"bootstrap.servers": "broker:9092"}, topic="events").records
        1000

    Args:
        df: the rows.
        config: a producer's properties, plain values only; see the configuration page. Or a
            function that returns them, on the executor: for secrets, and for values that are
            objects.
        topic: topic of all rows, instead of the column; None: the column names the topics.
        on_error: "raise" fails the task with KafkaDeliveryError, so that Spark runs it again;
            "report" leaves the failures to the summary.
        partition_by: "kafka" brings the rows of each Kafka partition into one task first, by their
            keys. That costs a shuffle, fills record batches and keeps the order of a key's rows.

    Raises:
        ConfigError: a property is unknown, out of range, or no plain value.
        TypeError: an argument has the wrong type, such as a topic in the configuration's place.
        UsageError: a column is missing or has a type that cannot be written.
        KafkaDeliveryError: records of a task were not delivered, not even by its last attempt.
        KafkaError: a task could not write at all. The `__cause__` of both is Spark's own error.
        SparkSetupError: the Python of the driver or of a worker is missing, lacks a package, or has
            another version.
    """
    if not hasattr(df, "mapInArrow"):
        is_rdd = hasattr(df, "mapPartitions")
        right = "write_rdd(rdd, config, topic)" if is_rdd else "write_df(df, config, topic)"
        raise TypeError(f"write_df takes a DataFrame of Spark's, not {type(df).__name__}: {right}")
    try:
        options = task_options(
            config, topic, call="write_df(df, {config}, {topic})", on_error=on_error
        )
    finally:
        del config  # a traceback that has this frame shows no secret
    if df.isStreaming:
        raise UsageError(
            "a streaming DataFrame has no end: write each of its batches, "
            "df.writeStream.foreachBatch(lambda batch, _: write_df(batch, config, topic)).start()"
        )
    names = check_columns(columns_in(df.schema), topic, ARGUMENT)
    if partition_by not in (None, "kafka"):
        raise UsageError(f"partition_by must be 'kafka' or None, not {partition_by!r}")
    write = worker_entry("write_batches", options.shipped())
    started = time.monotonic()
    with typed_errors():
        rows_in = df.select(*names)
        if partition_by == "kafka":
            rows_in = repartitioned(rows_in, options)
        rows = rows_in.mapInArrow(write, REPORT_SCHEMA).collect()
    return summarize([ReportRow(*row) for row in rows], time.monotonic() - started)
