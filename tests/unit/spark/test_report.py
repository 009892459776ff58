"""A summary, as a tuple and as a sentence."""

from __future__ import annotations

import pytest

from kafka_fast.spark import ReportRow, Summary
from kafka_fast.spark.report import summarize


def row(
    task: int,
    topic: str | None = "events",
    partition: int = 0,
    records: int = 10,
    size: int = 100,
    errors: int = 0,
    first_error: str | None = None,
) -> ReportRow:
    return ReportRow(task, 0, topic, partition, records, size, 0, 9, errors, first_error, 0.5)


def test_rows_are_added_up_in_their_order() -> None:
    rows = [row(1), row(0, partition=1, errors=2, first_error="why"), row(0)]
    summary = summarize(rows, 2.0)
    assert summary == Summary(30, 300, 2, "why", 2.0, (rows[2], rows[1], rows[0]))
    assert summary.records_per_s == 15.0
    assert repr(summary) == (
        "Summary(records=30, bytes=300, errors=2, first_error='why', seconds=2.0, "
        f"rows={summary.rows!r})"
    )


MANY = [row(task, partition=task % 4, records=250_000, size=15_000_000) for task in range(8)]
ONE = row(0, records=1, size=1000, errors=1, first_error="earlier")
FAILED = row(0, partition=-1, records=0, size=0, errors=1233, first_error="A\n refusal (10): big.")


@pytest.mark.parametrize(
    ("rows", "seconds", "what", "how"),
    [
        (MANY, 12.34, "2,000,000 records (120.0 MB) to 4 partitions of topic events in 12.3 s", ""),
        (
            [row(0, size=999)],
            0.83,
            "10 records (999 B) to 1 partition of topic events in 830 ms",
            "",
        ),
        (
            [ONE, FAILED],
            1.0,
            "1 record (1.0 kB) to 1 partition of topic events in 1.0 s",
            "1,234 records failed, the first: A refusal (10): big.",
        ),
        (
            [ONE._replace(records=0, bytes=0)],
            1.0,
            "0 records in 1.0 s",
            "1 record failed, the first: earlier.",
        ),
        ([], 0.02, "0 records in 20 ms", ""),
        (
            [row(0, topic="b"), row(0, topic="a"), row(1, topic="a")],
            2.0,
            "30 records (300 B) to 2 partitions of topics a and b in 2.0 s",
            "",
        ),
        (
            [row(0, topic=f"t{number}", size=4 * 10**12) for number in range(12)],
            5000.0,
            "120 records (48.0 TB) to 12 partitions of 12 topics in 5,000.0 s",
            "",
        ),
    ],
)
def test_a_summary_is_a_sentence(
    rows: list[ReportRow], seconds: float, what: str, how: str
) -> None:
    sentence = f"Wrote {what.replace(')', ' uncompressed)', 1)}; {how or 'none failed.'}"
    assert str(summarize(rows, seconds)) == sentence
