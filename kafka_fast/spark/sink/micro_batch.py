"""Which write a task belongs to, as PySpark lets the task know.

PySpark tells a stream writer the number of its micro-batch at `commit` only, and the query's id
nowhere. But Spark sets both as local properties of the job, for its own use, and a task can read
them (PySpark 4.0 to 4.3).
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_fast.spark.errors import SparkSetupError

QUERY = "sql.streaming.queryId"
BATCH = "streaming.sql.batchId"


class WriteName(NamedTuple):
    """Names one write of the sink: a micro-batch of a stream, or a batch job."""

    query: str
    """The stream's id, which is kept in its checkpoint; or the id of the job."""
    batch: str
    """Number of the micro-batch; "0" for a job."""


def micro_batch() -> WriteName:
    """Return the micro-batch that the task of this process writes.

    Raises:
        SparkSetupError: this Spark does not tell it.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    query, batch = (
        (None, None)
        if context is None
        else (context.getLocalProperty(QUERY), context.getLocalProperty(BATCH))
    )
    if query is None or batch is None:
        raise SparkSetupError(
            f"dedupeHeaders needs the local properties {QUERY} and {BATCH}, which this Spark does "
            "not set: write without dedupeHeaders"
        )
    return WriteName(query, batch)
