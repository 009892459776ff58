"""A task of the sink, with a producer that keeps what it is given."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.sink.micro_batch import BATCH, QUERY, WriteName
from kafka_fast.spark.sink.options import sink_options
from kafka_fast.spark.sink.writing import write_task
from kafka_fast.spark.task_errors import TaskError, read_task_error
from kafka_fast.spark.worker import task
from kafka_fast.spark.worker.producers import ProducerCache
from tests.unit.spark.fakes import FakeFuture, FakeProducer
from tests.unit.spark.sink.tasks import in_task

pa = pytest.importorskip("pyarrow")


class TableProducer(FakeProducer):
    """Keeps record batches as well."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.tables: list[tuple[str, Any, dict[str, Any]]] = []

    def send_table(self, topic: str, batch: Any, **columns: Any) -> FakeFuture:
        self.tables.append((topic, batch, columns))
        return self.outcome(topic, batch.num_rows)


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> TableProducer:
    """The one producer of this process, which runs task 3 of micro-batch 7."""
    made = TableProducer()
    cache = ProducerCache(lambda config: made)
    monkeypatch.setattr(cache.idle, "_arm", lambda: None)  # no timer is left to other tests
    monkeypatch.setattr(task, "PRODUCERS", cache)
    in_task(monkeypatch, {QUERY: "q", BATCH: "7"}, task=3)
    return made


def options(**given: str) -> Any:
    return sink_options({"kafka.bootstrap.servers": "nowhere:1", **given}, stream=False)


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def test_the_columns_are_sent_and_reported(producer: TableProducer) -> None:
    batches = [batch(other=[1, 2], VALUE=["a", "b"]), batch(other=[3], VALUE=["c"])]
    (row,) = write_task(batches, options(topic="t"), {"value": 1}, None)
    assert [(topic, sent.to_pydict()) for topic, sent, _ in producer.tables] == [
        ("t", {"value": ["a", "b"]}),
        ("t", {"value": ["c"]}),
    ]
    assert (row.task, row.topic, row.records, row.errors) == (3, "t", 3, 0)


@pytest.mark.parametrize(
    ("job", "query", "number"), [(None, b"q", b"7"), (WriteName("job", "0"), b"job", b"0")]
)
def test_headers_name_the_micro_batch_or_the_job(
    producer: TableProducer, job: WriteName | None, query: bytes, number: bytes
) -> None:
    settings = options(topic="t", dedupeHeaders="true")
    write_task([batch(value=["a"])], settings, {"value": 0}, job)
    ((_, sent, columns),) = producer.tables
    (headers,) = sent.column("headers").to_pylist()
    assert [header["value"] for header in headers] == [query, number, b"3", b"0"]
    assert columns["headers"] == "headers"


def test_an_error_is_in_the_form_that_the_driver_reads(producer: TableProducer) -> None:
    rows = batch(value=["a", "b"], topic=["t", None])
    with pytest.raises(TaskError) as raised:
        write_task([rows], options(), {"value": 0, "topic": 1}, None)
    error = read_task_error(str(raised.value))
    assert isinstance(error, UsageError)
    assert str(error).startswith("null topic present in the data. Use the topic option")
    assert producer.tables == []
    assert producer.closed == [0.0]
