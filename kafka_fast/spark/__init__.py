"""Write RDDs and DataFrames into Kafka from PySpark's Python workers, and read topics.

    from kafka_fast.spark import write_df

    summary = write_df(df, {"bootstrap.servers": "broker:9092"}, topic="events")

    driver    write_rdd, write_df ──► check options, run the action, sum up its rows
                  │   an entry that holds plain data only
    worker        ▼
              entry ──► task ──► records (RDD) as columns, or Arrow batches
                  │      │
                  │      ├──► producers    one for each process and configuration
                  │      └──► ledger       the task's own futures, one report row per partition
                  ▼
              task_errors                  an error as text ──► driver: job_errors raises it

`spark.read.format("kafka_fast")` and `spark.readStream` are in `source`.

Importing this package imports neither pyspark nor pyarrow.
"""

from __future__ import annotations

from kafka_fast.spark.data_source import register
from kafka_fast.spark.dataframe import write_df
from kafka_fast.spark.errors import DataLossError, KafkaDeliveryError, SparkSetupError
from kafka_fast.spark.job_errors import kafka_error
from kafka_fast.spark.partitioning import kafka_partition
from kafka_fast.spark.rdd import write_partition, write_rdd
from kafka_fast.spark.report import ReportRow, Summary

__all__ = [
    "DataLossError",
    "KafkaDeliveryError",
    "ReportRow",
    "SparkSetupError",
    "Summary",
    "kafka_error",
    "kafka_partition",
    "register",
    "write_df",
    "write_partition",
    "write_rdd",
]
