"""A task that writes: the record batches of a Spark partition go to the worker's producer.

The work itself is `task.write_tables`, as for `write_df`. So a task ends after its last record is
acknowledged, and one that fails leaves nothing behind that would be sent later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka_fast.spark.options import CHUNK_RECORDS, TaskOptions
from kafka_fast.spark.report import ReportRow
from kafka_fast.spark.sink.dedupe_headers import with_dedupe_headers
from kafka_fast.spark.sink.micro_batch import WriteName, micro_batch
from kafka_fast.spark.sink.options import SinkOptions
from kafka_fast.spark.table_columns import OPTION, picked
from kafka_fast.spark.task_errors import carried, identity
from kafka_fast.spark.worker.task import write_tables


def write_task(
    batches: Iterable[Any],
    options: SinkOptions,
    columns: Mapping[str, int],
    job: WriteName | None,
) -> tuple[ReportRow, ...]:
    """Write a task's record batches; return its report.

    Args:
        batches: `pyarrow.RecordBatch`, with all columns of the DataFrame.
        options: the query's.
        columns: position of each column to write.
        job: the write that the task belongs to; None: a micro-batch, which the task finds out.

    Raises:
        TaskError: in place of a KafkaError, in the form that the driver reads.
    """
    return tuple(carried(_rows(batches, options, columns, job)))


def _rows(
    batches: Iterable[Any],
    options: SinkOptions,
    columns: Mapping[str, int],
    job: WriteName | None,
) -> Iterator[ReportRow]:
    tables: Iterator[Any] = (picked(batch, columns) for batch in batches)
    if options.dedupe_headers:
        task, _ = identity()
        tables = with_dedupe_headers(tables, job or micro_batch(), task)
    task_options = TaskOptions(options.config, options.topic, "raise", CHUNK_RECORDS)
    yield from write_tables(tables, task_options, OPTION)
