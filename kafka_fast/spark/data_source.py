"""What `pyspark_kafka_fast.DefaultSource` does: from options and a schema to a reader or writer."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from kafka_fast.errors import UsageError
from kafka_fast.spark.errors import SparkSetupError
from kafka_fast.spark.job_errors import NO_DATA_SOURCES, typed_errors
from kafka_fast.spark.sink.micro_batch import WriteName
from kafka_fast.spark.sink.options import SinkOptions, sink_options
from kafka_fast.spark.source.options import source_options
from kafka_fast.spark.source.planning.bounds import bounds_of_batch, start_of_stream
from kafka_fast.spark.source.planning.initial_offsets import check_location
from kafka_fast.spark.source.schema import check_columns as check_schema
from kafka_fast.spark.source.schema import ddl
from kafka_fast.spark.table_columns import OPTION, check_columns, columns_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


def register(spark: SparkSession) -> None:
    """Make `format("kafka_fast")` known to a session that did not find it by itself.

    Spark finds the format by itself if the Python that it runs beside the driver has kafka_fast. It
    does not if kafka_fast comes in an archive of the job. A session that knows the format keeps it.

    Args:
        spark: a session of PySpark 4.0 or later.

    Raises:
        SparkSetupError: that Python, which PYSPARK_PYTHON names, cannot import kafka_fast, so that
            the format would fail; or this PySpark has no data sources in Python.
    """
    if not hasattr(spark, "dataSource"):
        raise SparkSetupError(NO_DATA_SOURCES)
    from pyspark.errors import AnalysisException

    from pyspark_kafka_fast import DefaultSource

    try:
        spark.dataSource.register(DefaultSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # PySpark 4.0 refuses a second one
            raise
    # kafka_fast itself, where it can be imported, refuses to read without options.
    with suppress(UsageError), typed_errors():
        spark.read.format("kafka_fast").load()


def schema(options: Mapping[str, str]) -> str:
    """Return the columns of the source.

    Raises:
        UsageError, ConfigError: An option is wrong.
    """
    settings = source_options(options)
    check_location(settings)
    return ddl(headers=settings.headers)


def batch_reader(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Return the reader of a batch.

    Raises:
        UsageError, ConfigError: An option is wrong, or the schema has a column that is not there.
    """
    from kafka_fast.spark.source.batch import BatchReader

    settings = source_options(options)
    return BatchReader(settings, bounds_of_batch(lower(options)), columns_of(schema))


def stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """Return the reader of a stream.

    Raises:
        UsageError, ConfigError: An option is wrong, or the schema has a column that is not there.
    """
    from kafka_fast.spark.source.stream import StreamReader

    settings = source_options(options)
    check_location(settings)
    return StreamReader(settings, start_of_stream(lower(options)), columns_of(schema))


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceWriter:
    """Return the writer of a batch.

    Raises:
        UsageError, ConfigError: An option is wrong, or a column; or a topic is to be overwritten.
    """
    from kafka_fast.spark.sink.writers import BatchWriter

    if overwrite:
        raise UsageError(
            'Save mode Overwrite not allowed for Kafka, which only appends: write .mode("append")'
        )
    settings = sink_options(options, stream=False)
    job = WriteName(settings.job_id or str(uuid.uuid4()), "0")
    return BatchWriter(settings, columns_to_write(schema, settings), job)


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamWriter:
    """Return the writer of a stream. Output mode complete appends the whole result each time.

    Raises:
        UsageError, ConfigError: An option is wrong, or a column.
    """
    from kafka_fast.spark.sink.writers import StreamWriter

    settings = sink_options(options, stream=True)
    return StreamWriter(settings, columns_to_write(schema, settings))


def columns_to_write(schema: StructType, options: SinkOptions) -> dict[str, int]:
    """Return the position of each column to write, once the columns are checked."""
    return check_columns(columns_in(schema), options.topic, OPTION)


def lower(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with names in lower case."""
    return {name.lower(): text for name, text in options.items()}


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the names of a schema's columns, once they are checked."""
    return check_schema(columns_in(schema))
