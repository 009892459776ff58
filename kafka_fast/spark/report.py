"""What a task reports, what a job comes to, and the error that makes Spark try a task again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka_fast.errors import DeliveryError

UNKNOWN_PARTITION = -1


class KafkaDeliveryError(DeliveryError):
    """A task's records were not, or perhaps not, delivered; Spark runs the task again.

    Attributes:
        count: Number of those records.
        first: The error of the first of them.
        samples: A few errors, for the log.
        outcome: What is known of them; of several, the least certain one.
    """


class ReportRow(NamedTuple):
    """What one attempt of one task wrote into one partition of a topic."""

    task: int
    """Number of the Spark partition."""
    attempt: int
    """Number of the attempt; 0 is the first."""
    topic: str | None
    """None for failed records of several topics, if nobody knows which."""
    partition: int
    """Number of the Kafka partition; -1 for failed records that never had one."""
    records: int
    """Delivered records."""
    bytes: int
    """Their size in record batches before compression."""
    base_offset: int
    """Offset of the first of them; -1 if the broker did not say."""
    last_offset: int
    """Offset of the last of them. Records of other tasks may lie in between."""
    errors: int
    """Records that were not, or perhaps not, delivered."""
    first_error: str | None
    seconds: float
    """Duration of the attempt."""


#: The same as columns of a DataFrame.
REPORT_SCHEMA = (
    "task int, attempt int, topic string, partition int, records bigint, bytes bigint, "
    "base_offset bigint, last_offset bigint, errors bigint, first_error string, seconds double"
)


class Summary(NamedTuple):
    """What a write comes to."""

    records: int
    bytes: int
    errors: int
    first_error: str | None
    seconds: float
    """From the start of the Spark job to its end."""
    rows: tuple[ReportRow, ...]
    """One for each task and Kafka partition, in that order."""

    @property
    def records_per_s(self) -> float:
        """Delivered records per second of the whole job."""
        return self.records / self.seconds if self.seconds > 0 else 0.0


def summarize(rows: Iterable[ReportRow], seconds: float) -> Summary:
    """Return the summary of a job's report rows."""
    ordered = tuple(sorted(rows, key=lambda row: (row.task, row.topic or "", row.partition)))
    return Summary(
        records=sum(row.records for row in ordered),
        bytes=sum(row.bytes for row in ordered),
        errors=sum(row.errors for row in ordered),
        first_error=next((row.first_error for row in ordered if row.errors), None),
        seconds=seconds,
        rows=ordered,
    )
