"""What a task knows of its micro-batch."""

from __future__ import annotations

import pytest

from kafka_fast.spark import SparkSetupError
from kafka_fast.spark.sink.micro_batch import BATCH, QUERY, WriteName, micro_batch
from tests.unit.spark.sink.tasks import in_task


def test_spark_tells_query_and_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    in_task(monkeypatch, {QUERY: "q", BATCH: "7"})
    assert micro_batch() == WriteName("q", "7")


@pytest.mark.parametrize("properties", [None, {}, {QUERY: "q"}, {BATCH: "7"}])
def test_a_spark_that_does_not_tell(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str] | None
) -> None:
    in_task(monkeypatch, properties)
    with pytest.raises(SparkSetupError, match="write without dedupeHeaders"):
        micro_batch()
