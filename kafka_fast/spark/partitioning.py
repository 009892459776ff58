"""Bring the rows of a Kafka partition into one Spark task before they are written.

A task that owns its partitions makes full batches, and keeps the order of the rows of a key. It
costs a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_fast.errors import UsageError
from kafka_fast.producer.partitions import check_partition_count
from kafka_fast.spark.entry import worker_entry
from kafka_fast.spark.options import TaskOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def kafka_partition(key: Column | str, partitions: int) -> Column:
    """Return a column with the Kafka partition that each key goes to, as in every Java producer.

    Null where the key is null: without a key, the producer chooses. This works on Spark Connect, if
    the package is installed on the server.

    Examples:
        >>> df.repartition(12, kafka_partition("key", 12))

    Args:
        key: a string or binary column, or its name.
        partitions: how many partitions the topic has.

    Raises:
        UsageError: a topic cannot have so many partitions.
    """
    from pyspark.sql import functions

    check_partition_count(partitions)
    column = functions.col(key) if isinstance(key, str) else key
    kinds: Any = functions
    if hasattr(functions, "arrow_udf"):
        import pyarrow as pa

        make, task, kind = kinds.arrow_udf, "partitions_of_keys", pa.Array
    else:  # before PySpark 4.1 only pandas brings columns to a function
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]  # its stubs are optional

        make, task, kind = kinds.pandas_udf, "partitions_of_series", pd.Series
    choose = worker_entry(task, (partitions,))
    hint = Iterator[kind]  # type: ignore[valid-type]  # it is read at run time only
    # PySpark reads from the hints what the function takes.
    choose.__annotations__ = {"records": hint, "return": hint}
    chosen: Column = make(choose, "int")(column)
    return chosen


def repartitioned(df: DataFrame, options: TaskOptions) -> DataFrame:
    """Return the rows in as many Spark partitions as the topic has, each with its own keys.

    Rows without a key stay together as they are in `df`.

    Args:
        df: rows with the columns to write; `key`, if there are keys.
        options: those of the write; they name the topic.

    Raises:
        UsageError: the rows have no keys, or more than one topic.
        KafkaError: the topic cannot be used.
    """
    from pyspark.sql import functions

    if options.topic is None:
        raise UsageError(
            "partition_by='kafka' needs one topic for all rows: give it as an argument, or "
            "repartition by kafka_partition(key, partitions) before"
        )
    if "key" not in df.columns:
        raise UsageError("partition_by='kafka' needs a column 'key'")
    count = partition_count(df, options)
    chosen = [kafka_partition("key", count), functions.spark_partition_id()]
    if "partition" in df.columns:
        chosen.insert(0, df["partition"])
    number = functions.coalesce(*chosen)
    if hasattr(df, "repartitionById"):
        return df.repartitionById(count, number)
    return df.repartition(count, number)  # before PySpark 4.1: a task may own several, or none


def partition_count(df: DataFrame, options: TaskOptions) -> int:
    """Return how many partitions the topic has.

    A task asks: the driver need not reach the brokers, nor have the configuration's secrets.
    """
    ask = worker_entry("count_partitions", options.shipped())
    row = df.sparkSession.range(1, numPartitions=1).mapInArrow(ask, "partitions int").first()
    assert row is not None
    count: int = row[0]
    return count
