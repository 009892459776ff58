"""What the log says about a write that Spark has ended, in the planner's process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_fast.logs import count_of, get_logger
from kafka_fast.spark.report import ReportRow, summarize

logger = get_logger(__name__)


def log_commit(what: str, reports: Iterable[Sequence[ReportRow]]) -> None:
    """Log the sum of a write, and one line for each partition of each topic.

    Args:
        what: name of the write, such as "micro-batch 7".
        reports: the report rows of each task.
    """
    rows = [row for report in reports for row in report]
    longest = max((row.seconds for row in rows), default=0.0)
    logger.info("%s: %s", what, summarize(rows, longest))
    for (topic, partition), (records, first, last) in sorted(_partitions(rows).items()):
        where = f"{topic}-{partition}, offsets {first} to {last}"
        logger.info("%s: %s in %s", what, count_of(records, "record"), where)


def log_abort(what: str, reports: Iterable[Sequence[ReportRow] | None]) -> None:
    """Log that a write failed, and what of it is in Kafka all the same.

    Args:
        what: name of the write.
        reports: the report rows of each task; None for a task that did not end.
    """
    task_reports = list(reports)
    written = sum(row.records for report in task_reports if report for row in report)
    ended = sum(report is not None for report in task_reports)
    logger.warning(
        "%s failed: %d of its %s had ended, and Kafka keeps their %s. Tasks that are run again "
        "write theirs again",
        what,
        ended,
        count_of(len(task_reports), "task"),
        count_of(written, "record"),
    )


def _partitions(rows: Iterable[ReportRow]) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Return records, first offset and last offset by topic and partition."""
    by_partition: dict[tuple[str, int], tuple[int, int, int]] = {}
    for row in rows:
        if not row.records:
            continue
        where = (row.topic or "", row.partition)
        records, first, last = by_partition.get(where, (0, row.base_offset, row.last_offset))
        by_partition[where] = (
            records + row.records,
            min(first, row.base_offset),
            max(last, row.last_offset),
        )
    return by_partition
