"""One range of offsets, and what happens when its records are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from kafka_fast.errors import KafkaTimeoutError, PositionOutOfRangeError, UnknownTopicOrPartition
from kafka_fast.spark.errors import DataLossError
from kafka_fast.spark.source import reading
from kafka_fast.spark.source.planning.ranges import OffsetRange
from kafka_fast.spark.source.reading import records_of
from kafka_fast.types import OffsetAndMetadata, PartitionInfo, TopicPartition
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
        self.ids = ["new"]
        """Of the topic: what is known, and then what brokers say."""

    @property
    def log(self) -> range | Exception:
        return self.logs[0]

    def assign_ranges(self, ranges: Mapping[TopicPartition, range]) -> None:
        self.wanted = ranges[A]

    def partitions_for(self, topics: list[str], *, refresh: bool = False) -> list[PartitionInfo]:
        assert topics == ["t"]
        if refresh and len(self.ids) > 1:
            del self.ids[0]
        return [PartitionInfo("t", 0, 1, 0, (1,), (1,), (), self.ids[0])]

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
                raise PositionOutOfRangeError("gone", topic="t", partition=0, offset=at)
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


def read_of(topic_id: str | None, consumer: FakeConsumer, **given: str) -> list[int]:
    span = OffsetRange(A, 0, 20, topic_id)
    return [step.until for step in records_of(span, options(**given), consumer)]


def test_a_consumer_that_is_kept_hears_of_a_topic_that_was_created_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: its first task with the new topic failed, or read nothing and said so."""
    monkeypatch.setattr(reading, "ASK_AGAIN", 0.0)
    consumer = FakeConsumer(range(100))
    consumer.ids = ["old", "old", "new", "never asked for"]
    assert read_of("new", consumer) == [10, 20]
    assert consumer.ids[0] == "new"


def test_a_topic_that_was_created_again_since_the_planning_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "ASK_AGAIN", 0.0)
    monkeypatch.setattr(reading, "GETS_ROUND", 0.0)
    with pytest.raises(DataLossError, match="its id was old and is new now"):
        read_of("old", FakeConsumer(range(100)), failOnDataLoss="false")


def test_brokers_without_ids_tell_no_topics_apart() -> None:
    consumer = FakeConsumer(range(100))
    assert read_of(None, consumer) == [10, 20]
    consumer.ids = []
    assert read_of(None, consumer) == [10, 20]
