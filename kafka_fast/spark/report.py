"""The report of a task, and the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

UNKNOWN_PARTITION = -1


class ReportRow(NamedTuple):
    """The records that one attempt of one task wrote into one partition of a topic."""

    task: int
    """Number of the Spark partition."""
    attempt: int
    """Number of the attempt; 0 is the first."""
    topic: str | None
    """None for failed records whose topic is not known."""
    partition: int
    """Number of the Kafka partition; -1 for failed records that never had one."""
    records: int
    """Number of delivered records."""
    bytes: int
    """The records' size in record batches, before compression."""
    base_offset: int
    """Offset of the first record; -1 if the broker did not say."""
    last_offset: int
    """Offset of the last record. Records of other tasks may lie between the two."""
    errors: int
    """Number of records that were not, or perhaps not, delivered."""
    first_error: str | None
    seconds: float
    """Duration of the attempt."""


#: The fields of ReportRow as columns of a DataFrame.
REPORT_SCHEMA = (
    "task int, attempt int, topic string, partition int, records bigint, bytes bigint, "
    "base_offset bigint, last_offset bigint, errors bigint, first_error string, seconds double"
)


class Summary(NamedTuple):
    """The result of a write; `str` of it is a sentence."""

    records: int
    bytes: int
    errors: int
    first_error: str | None
    seconds: float
    """From the start of the Spark job to its end."""
    rows: tuple[ReportRow, ...]
    """One row for each task and Kafka partition, in that order."""

    @property
    def records_per_s(self) -> float:
        """Delivered records per second of the whole job."""
        return self.records / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        """Return records, bytes, partitions, topics, time and failures as a sentence."""
        filled = {(row.topic, row.partition) for row in self.rows if row.records}
        where = f" to {_count(len(filled), 'partition')} of {_topics(filled)}" if filled else ""
        size = f" ({_size(self.bytes)} uncompressed)" if self.records else ""
        said = f"Wrote {_count(self.records, 'record')}{size}{where} in {_duration(self.seconds)}; "
        if not self.errors:
            return said + "none failed."
        first = " ".join((self.first_error or "").split()).rstrip(".")
        return f"{said}{_count(self.errors, 'record')} failed, the first: {first}."


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


TOPICS_NAMED = 3
"""Most topics that a sentence names; otherwise it says how many there are."""


def _topics(filled: set[tuple[str | None, int]]) -> str:
    names = sorted({topic or "" for topic, _ in filled})
    if len(names) > TOPICS_NAMED:
        return f"{len(names):,} topics"
    if len(names) == 1:
        return f"topic {names[0]}"
    return f"topics {', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    scaled, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if scaled < 1000:
            break
        scaled, unit = scaled / 1000, larger
    return f"{size} B" if unit == "B" else f"{scaled:,.1f} {unit}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
