"""What a query's driver asks the brokers: which partitions there are, and where their logs end.

Thread: one, that of the planner or of the stream's process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from kafka_fast.errors import UnknownTopicOrPartition, UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.source.offsets import EARLIEST, LATEST, Offsets, describe
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.planning import data_loss
from kafka_fast.spark.source.planning.bounds import (
    Bound,
    Bounds,
    Edge,
    GlobalTimestamp,
    SpecificOffsets,
    Timestamps,
    check_resolved,
)
from kafka_fast.spark.source.planning.ranges import OffsetRange
from kafka_fast.types import PartitionInfo, TopicPartition

logger = get_logger(__name__)


class OffsetClient(Protocol):
    """The part of a consumer that is used here."""

    def topics(self, *, internal: bool = False) -> set[str]:
        """Return the names of all topics, the internal ones on request."""

    def partitions_for(
        self, topics: Iterable[str], *, refresh: bool = False
    ) -> list[PartitionInfo]:
        """Return the partitions of topics; `refresh` asks a broker even if they are known."""

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets."""

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the ends, as the isolation level sees them."""

    def first_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the first offsets that are not older than Unix times in ms; -1: none is."""


class OffsetReader:
    """The brokers, as a query sees them.

    Args:
        client: asks the brokers.
        options: the query's.
        sleep: waits some seconds.
    """

    def __init__(
        self,
        client: OffsetClient,
        options: SourceOptions,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._options = options
        self._sleep = sleep
        self._ids: dict[str, str] = {}  # of topics, as they were seen last

    def partitions(self, known: Collection[TopicPartition] = ()) -> list[TopicPartition]:
        """Return the partitions that the query reads, as there are now: it asks each time.

        Args:
            known: partitions from which the query reads on. The others may be new.

        Raises:
            BrokerError: there is no such topic, and no known one either; or it may not be read.
            DataLossError: a topic of known partitions was deleted and created again.
        """
        subscription = self._options.subscription
        topics = subscription.topics_of(self._client.topics() if subscription.pattern else ())
        under_way = {partition.topic for partition in known}
        infos = self._infos(topics, under_way | self._ids.keys())
        self._check_ids(infos, under_way)
        existing = (TopicPartition(info.topic, info.partition) for info in infos)
        return sorted(filter(subscription.wants, existing))

    def _infos(self, topics: list[str], before: Collection[str]) -> list[PartitionInfo]:
        """Ask for topics; those that were there before may be gone, and are then left out."""
        try:
            return self._client.partitions_for(topics, refresh=True)
        except UnknownTopicOrPartition:
            there = self._client.topics(internal=True)
            gone = [topic for topic in topics if topic not in there]
            if not gone or not all(topic in before for topic in gone):
                raise
            return self._client.partitions_for(
                [topic for topic in topics if topic in there], refresh=True
            )

    def _check_ids(self, infos: list[PartitionInfo], under_way: Collection[str]) -> None:
        """Note the ids of topics, and refuse a topic whose offsets are those of another one."""
        ids = {info.topic: info.topic_id for info in infos if info.topic_id is not None}
        for topic in sorted(ids):
            before = self._ids.get(topic, ids[topic])
            if before != ids[topic] and topic in under_way:
                raise data_loss.of_another_topic(topic, before, ids[topic])
        self._ids.update(ids)

    def named(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Return ranges with the ids of their topics, as they were seen last."""
        return [
            offset_range._replace(topic_id=self._ids.get(offset_range.partition.topic))
            for offset_range in ranges
        ]

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where the logs begin."""
        return self._client.beginning_offsets(list(partitions))

    def latest(self, known: Mapping[TopicPartition, int] | None = None) -> Offsets:
        """Return where the logs of all partitions end now.

        Args:
            known: offsets that were there before. A broker that has just become the leader may
                answer with a smaller one for a moment; so it is asked again.
        """
        return self._ends(self.partitions(known or ()), known)

    def _ends(
        self, partitions: list[TopicPartition], known: Mapping[TopicPartition, int] | None = None
    ) -> Offsets:
        for attempt in range(1, max(self._options.attempts, 1) + 1):
            ends = self._client.end_offsets(partitions)
            behind = {tp: at for tp, at in ends.items() if known and known.get(tp, at) > at}
            if not behind or attempt == self._options.attempts:
                break
            logger.warning("ends of logs lie before what is known: %s", describe(behind))
            self._sleep(self._options.attempt_interval)
        return ends

    def resolve(self, bound: Bound, *, is_start: bool) -> Offsets:
        """Return the offsets that a bound means, for all partitions.

        Raises:
            UsageError: the bound names other partitions than there are, or no record is young
                enough to begin with; in the words of Spark's source.
        """
        return self._resolve(bound, self.partitions(), is_start=is_start)

    def _resolve(
        self, bound: Bound, partitions: list[TopicPartition], *, is_start: bool
    ) -> Offsets:
        named = _at_once(bound, partitions)
        if named is None:
            times = _times(bound, partitions, is_start=is_start)
            offsets = self._client.first_offsets(times)
            named = {
                partition: at
                if at >= 0
                else _none(bound, partition, times[partition], is_start=is_start)
                for partition, at in offsets.items()
            }
        first = self._client.beginning_offsets(
            [partition for partition, at in named.items() if at == EARLIEST]
        )
        end = self._client.end_offsets(
            [partition for partition, at in named.items() if at == LATEST]
        )
        return {**named, **first, **end}

    def ranges(self, bounds: Bounds) -> list[OffsetRange]:
        """Return the range of each partition of a batch.

        Raises:
            UsageError: the batch would end before it begins; or as in `resolve`.
            DataLossError: it would end behind the end of a log.
        """
        partitions = self.partitions()  # once: a topic may grow meanwhile
        start = self._resolve(bounds.start, partitions, is_start=True)
        end = self._resolve(bounds.end, partitions, is_start=False)
        check_resolved(start, end)
        if isinstance(bounds.end, SpecificOffsets):
            end = self._within_logs(end)
        return self.named(
            OffsetRange(partition, at, end[partition]) for partition, at in sorted(start.items())
        )

    def _within_logs(self, offsets: Offsets) -> Offsets:
        """Return ends that the logs have: a task would wait for the records behind them."""
        latest = self._ends(list(offsets))
        for partition, at in sorted(offsets.items()):
            if at > latest[partition]:
                data_loss.report(
                    f"endingOffsets of {partition} is {at}, but its log ends at "
                    f"{latest[partition]}.",
                    fail=self._options.fail_on_data_loss,
                )
        return {tp: min(at, latest[tp]) for tp, at in offsets.items()}


def _at_once(bound: Bound, partitions: list[TopicPartition]) -> Offsets | None:
    """Return the offsets of a bound, some as EARLIEST or LATEST; None: they go by time."""
    if isinstance(bound, Edge):
        return dict.fromkeys(partitions, EARLIEST if bound is Edge.EARLIEST else LATEST)
    if isinstance(bound, SpecificOffsets):
        if bound.offsets.keys() != set(partitions):
            raise UsageError(
                "Partitions specified for Kafka start offsets don't match what are assigned. Maybe "
                "topic partitions are created or deleted while the query is running. Use -1 for "
                f"latest, -2 for earliest. Specified: {describe(bound.offsets)} Assigned: "
                f"{describe(partitions)}"
            )
        return dict(bound.offsets)
    return None


def _times(bound: Bound, partitions: list[TopicPartition], *, is_start: bool) -> Offsets:
    if isinstance(bound, GlobalTimestamp):
        return dict.fromkeys(partitions, bound.time)
    assert isinstance(bound, Timestamps)
    if bound.times.keys() != set(partitions):
        raise UsageError(
            f"Partitions specified for Kafka timestamp based {'start' if is_start else 'end'} "
            "offsets don't match what are assigned. Maybe topic partitions are created or deleted "
            "while the query is running, or you didn't specify all the partitions. Specified: "
            f"{describe(bound.times)} Assigned: {describe(partitions)}"
        )
    return bound.times


def _none(bound: Bound, partition: TopicPartition, at: int, *, is_start: bool) -> int:
    """Return what stands for a partition without a record that is young enough."""
    strict = isinstance(bound, (Timestamps, GlobalTimestamp)) and not bound.latest_if_none
    if is_start and strict:
        raise UsageError(
            f"No offset matched from request of topic-partition {partition} and timestamp {at}."
        )
    return LATEST
