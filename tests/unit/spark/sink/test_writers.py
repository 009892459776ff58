"""What writers say of a write that has ended; `write` itself is tested in test_writing.py."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka_fast.spark.report import ReportRow

pytest.importorskip("pyspark", minversion="4.0")
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

from kafka_fast.spark.sink.micro_batch import WriteName
from kafka_fast.spark.sink.options import sink_options
from kafka_fast.spark.sink.writers import BatchWriter, StreamWriter, TaskReport

pytestmark = pytest.mark.spark

ROW = ReportRow(0, 0, "t", 1, 5, 50, 10, 14, 0, None, 0.5)
DONE = TaskReport((ROW,))


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "kafka_fast")
    return caplog


def writer(*, stream: bool) -> Any:
    options = sink_options({"kafka.bootstrap.servers": "nowhere:1", "topic": "t"}, stream=stream)
    if stream:
        return StreamWriter(options, {"value": 0})
    return BatchWriter(options, {"value": 0}, WriteName("j", "0"))


def test_spark_gives_both_of_them_arrow() -> None:
    assert isinstance(writer(stream=False), DataSourceArrowWriter)
    assert isinstance(writer(stream=True), DataSourceStreamWriter)


@pytest.mark.parametrize(("stream", "name"), [(False, "job j"), (True, "micro-batch 7")])
def test_a_commit_is_logged(log: pytest.LogCaptureFixture, stream: bool, name: str) -> None:
    writer(stream=stream).commit([DONE, None], *([7] if stream else []))
    first, second = (record.getMessage() for record in log.records)
    assert first.startswith(
        f"{name}: Wrote 5 records (50 B uncompressed) to 1 partition of topic t"
    )
    assert second == f"{name}: 5 records in t-1, offsets 10 to 14"


@pytest.mark.parametrize(("stream", "name"), [(False, "job j"), (True, "micro-batch 7")])
def test_an_abort_is_logged(log: pytest.LogCaptureFixture, stream: bool, name: str) -> None:
    """Also one behind a commit that has failed: all tasks had ended then."""
    made = writer(stream=stream)
    made.commit([DONE], *([7] if stream else []))
    log.clear()
    for messages in ([DONE, None], [DONE, DONE], []):
        made.abort(messages, *([7] if stream else []))
    said = [record.getMessage() for record in log.records]
    assert [text.startswith(f"{name} failed: ") for text in said] == [True] * 3
    assert "1 of its 2 tasks had ended, and Kafka keeps their 5 records" in said[0]
    assert "2 of its 2 tasks had ended, and Kafka keeps their 10 records" in said[1]
    assert "0 of its 0 tasks" in said[2]
