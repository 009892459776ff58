"""The writers that PySpark calls: made by the planner, pickled to the workers.

`write` runs in a worker. `commit` and `abort` run in a planner: of a batch on a copy of the pickled
writer, of a stream on a writer that is made anew. So a stream writer keeps nothing between them,
and what a commit needs to know is in the tasks' messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import (  # noqa: TID253  PySpark alone imports this module
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from kafka_fast.spark.report import ReportRow
from kafka_fast.spark.sink.micro_batch import WriteName
from kafka_fast.spark.sink.options import SinkOptions
from kafka_fast.spark.sink.outcome import log_abort, log_commit
from kafka_fast.spark.sink.writing import write_task

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # before PySpark 4.1, which gives Arrow to writers of this class only
    STREAM_BASES: tuple[type, ...] = (DataSourceStreamWriter, DataSourceArrowWriter)
else:
    STREAM_BASES = (DataSourceStreamArrowWriter,)


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """What a task that has ended tells the planner."""

    rows: tuple[ReportRow, ...]


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of one job.

    Args:
        options: the query's.
        columns: position of each column to write.
        job: the job's name.
    """

    def __init__(self, options: SinkOptions, columns: Mapping[str, int], job: WriteName) -> None:
        self._options = options
        self._columns = columns
        self._job = job

    def write(self, iterator: Iterable[Any]) -> WriterCommitMessage:
        """Write a task's rows. In a worker."""
        return TaskReport(write_task(iterator, self._options, self._columns, self._job))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what the tasks of the job have written."""
        log_commit(f"job {self._job.query}", _reports(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log that the job has failed, and what its tasks had written."""
        log_abort(f"job {self._job.query}", [_rows(message) for message in messages])


class StreamWriter(*STREAM_BASES):  # type: ignore[misc]
    """Writes the rows of micro-batches.

    Args:
        options: the query's.
        columns: position of each column to write.
    """

    def __init__(self, options: SinkOptions, columns: Mapping[str, int]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterable[Any]) -> WriterCommitMessage:
        """Write a task's rows. In a worker."""
        return TaskReport(write_task(iterator, self._options, self._columns, None))

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803  Spark's name, which the other base does not have
    ) -> None:
        """Log what the tasks of a micro-batch have written."""
        log_commit(f"micro-batch {batchId}", _reports(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803
    ) -> None:
        """Log that a micro-batch has failed or was stopped, and what its tasks had written."""
        log_abort(f"micro-batch {batchId}", [_rows(message) for message in messages])


def _rows(message: WriterCommitMessage | None) -> tuple[ReportRow, ...] | None:
    return message.rows if isinstance(message, TaskReport) else None


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[tuple[ReportRow, ...]]:
    return [_rows(message) or () for message in messages]
