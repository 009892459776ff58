"""What the log says about a write."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.spark.report import ReportRow
from kafka_fast.spark.sink.outcome import log_abort, log_commit


def row(task: int, partition: int, records: int, first: int) -> ReportRow:
    last = first + records - 1
    return ReportRow(task, 0, "t", partition, records, 10 * records, first, last, 0, None, 0.5)


def test_a_commit_is_summed_up_by_partition(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kafka_fast"):
        log_commit("micro-batch 7", [[row(0, 1, 5, 10), row(0, 0, 2, 0)], [row(1, 1, 5, 20)], []])
    assert [record.getMessage() for record in caplog.records] == [
        (
            "micro-batch 7: Wrote 12 records (120 B uncompressed) to 2 partitions of topic t in "
            "500 ms; none failed."
        ),
        "micro-batch 7: 2 records in t-0, offsets 0 to 1",
        "micro-batch 7: 10 records in t-1, offsets 10 to 24",
    ]


def test_an_abort_says_what_stays(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        log_abort("job 1", [[row(0, 0, 5, 0)], None, [], None])
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(
        "job 1 failed: 2 of its 4 tasks had ended, and Kafka keeps their 5 records."
    )
