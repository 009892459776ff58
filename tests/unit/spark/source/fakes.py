"""Brokers and a clock that do what a test tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.spark.source.options import SourceOptions, source_options
from kafka_fast.types import OffsetAndMetadata, PartitionInfo, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def options(**given: str) -> SourceOptions:
    texts = {"kafka.bootstrap.servers": "a:9092", "subscribe": "t", **given}
    return source_options(texts)


class FakeClient:
    """Logs by partition, as ranges; `answers` are ends to tell before the true ones."""

    def __init__(self, logs: Mapping[TopicPartition, range]) -> None:
        self.logs = dict(logs)
        self.times: dict[TopicPartition, list[int]] = {}  # of the records from offset 0 on
        self.answers: list[dict[TopicPartition, int]] = []
        self.commits: list[dict[TopicPartition, OffsetAndMetadata]] = []
        self.group: dict[TopicPartition, OffsetAndMetadata] = {}
        self.asked: list[list[str]] = []  # the topics of each request
        self.ids: dict[str, str] = {}
        self.failure: Exception | None = None

    def topics(self, *, internal: bool = False) -> set[str]:
        return {partition.topic for partition in self.logs}

    def partitions_for(
        self, topics: Iterable[str], *, refresh: bool = False
    ) -> list[PartitionInfo]:
        assert refresh, "what is known may be old"
        names = set(topics)
        self.asked.append(sorted(names))
        if missing := names - self.topics():
            raise UnknownTopicOrPartition(f"there is no topic {min(missing)!r}")
        return [
            PartitionInfo(
                partition.topic,
                partition.partition,
                1,
                0,
                (1,),
                (1,),
                (),
                self.ids.get(partition.topic),
            )
            for partition in self.logs
            if partition.topic in names
        ]

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.logs[partition].start for partition in partitions}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        named = list(partitions)
        return (
            self.answers.pop(0)
            if self.answers
            else {partition: self.logs[partition].stop for partition in named}
        )

    def first_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            partition: next(
                (i for i, timestamp in enumerate(self.times[partition]) if timestamp >= at), -1
            )
            for partition, at in times.items()
        }

    def committed(self, partitions: Any = None) -> dict[TopicPartition, OffsetAndMetadata]:
        return dict(self.group)

    def commit(self, upto: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self.failure is not None:
            raise self.failure
        self.commits.append(upto)
        self.group.update(upto)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
