"""One range of offsets, and what happens when its records are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from kafka_fast.errors import KafkaTimeoutError, OffsetOutOfRangeError, UnknownTopicOrPartition
from kafka_fast.spark.errors import DataLossError
from kafka_fast.spark.source.ranges import OffsetRange
from kafka_fast.spark.source.reading import records_of
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.spark.source.fakes import A, options


class Step(NamedTuple):
    """Records up to an offset."""

    until: int

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {A: OffsetAndMetadata(self.until)}


class FakeConsumer:
    """Reads steps of ten offsets; `log` is what there is, or an error."""

    def __init__(self, *logs: range | Exception) -> None:
        self.logs = list(logs)
        self.wanted = range(0)
        self.timeout = 0.0

    @property
    def log(self) -> range | Exception:
        return self.logs[0]

    def assign_ranges(self, ranges: Mapping[TopicPartition, range]) -> None:
        self.wanted = ranges[A]

    def assign(self, partitions: list[Any]) -> None:
        assert partitions == []

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if isinstance(self.log, Exception):
            raise self.log
        return {A: self.log.start}

    def read(self, timeout: float, max_records: int) -> Iterator[Step]:
        self.timeout = timeout
        for at in range(self.wanted.start, self.wanted.stop, 10):
            if isinstance(self.log, Exception):
                raise self.log
            if at not in self.log:
                raise OffsetOutOfRangeError("gone", topic="t", partition=0, offset=at)
            yield Step(min(at + 10, self.wanted.stop))
            if len(self.logs) > 1:
                del self.logs[0]


def read(consumer: FakeConsumer, wanted: range, **given: str) -> list[int]:
    span = OffsetRange(A, wanted.start, wanted.stop)
    return [step.until for step in records_of(span, options(**given), consumer)]


def test_all_of_it() -> None:
    consumer = FakeConsumer(range(100))
    assert read(consumer, range(5, 28)) == [15, 25, 28]
    assert consumer.timeout == 120.0
    assert read(consumer, range(5, 5)) == []


def test_records_that_are_gone_fail_the_task() -> None:
    with pytest.raises(DataLossError, match=r"in offset \[5, 28\) for topic partition t-0: gone"):
        read(FakeConsumer(range(20, 100)), range(5, 28))


def test_or_what_is_left_is_read() -> None:
    lenient = {"failOnDataLoss": "false"}
    assert read(FakeConsumer(range(20, 100)), range(5, 28), **lenient) == [28]
    assert read(FakeConsumer(range(50, 100)), range(5, 28), **lenient) == []
    assert read(FakeConsumer(range(3)), range(5, 28), **lenient) == []  # a log that was cut off
    under_way = FakeConsumer(range(100), range(22, 100))
    assert read(under_way, range(40), **lenient) == [10, 32, 40]


def test_a_topic_that_is_gone() -> None:
    gone = UnknownTopicOrPartition("gone")
    with pytest.raises(DataLossError):
        read(FakeConsumer(gone), range(5, 28))
    assert read(FakeConsumer(range(100), gone), range(5, 28), failOnDataLoss="false") == [15]


def test_other_errors_pass() -> None:
    with pytest.raises(KafkaTimeoutError):
        read(FakeConsumer(KafkaTimeoutError("late")), range(5), failOnDataLoss="false")
