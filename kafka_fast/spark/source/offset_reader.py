"""What a query's driver asks the brokers: which partitions there are, and where their logs end.

Thread: one, that of the planner or of the stream's process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kafka_fast.errors import UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.source import data_loss
from kafka_fast.spark.source.bounds import (
    Bound,
    Bounds,
    Edge,
    GlobalTimestamp,
    SpecificOffsets,
    Timestamps,
    check_resolved,
)
from kafka_fast.spark.source.offsets import EARLIEST, LATEST, Offsets, describe
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.ranges import OffsetRange
from kafka_fast.types import PartitionInfo, TopicPartition

logger = get_logger(__name__)


class OffsetClient(Protocol):
    """The part of a consumer that is used here."""

    def topics(self) -> set[str]:
        """Return the names of all topics that are not internal."""

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic."""

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets."""

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the ends, as the isolation level sees them."""

    def first_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the first offsets that are not older than Unix times in ms; -1: none is."""


class OffsetReader:
    """The brokers, as a query sees them.

    Args:
        client: Asks the brokers.
        options: The query's.
        sleep: Waits some seconds.
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

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that the query reads, as there are now.

        Raises:
            BrokerError: There is no such topic, or it may not be read.
        """
        wanted = self._options.subscription
        topics = wanted.topics_of(self._client.topics() if wanted.pattern else ())
        found = [
            TopicPartition(topic, info.partition)
            for topic in topics
            for info in self._client.partitions_for(topic)
        ]
        return sorted(filter(wanted.wants, found))

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where the logs begin."""
        return self._client.beginning_offsets(list(partitions))

    def latest(self, known: Mapping[TopicPartition, int] | None = None) -> Offsets:
        """Return where the logs of all partitions end now.

        Args:
            known: Offsets that were there before. A broker that has just become the leader may
                answer with a smaller one for a moment; so it is asked again.
        """
        partitions = self.partitions()
        for attempt in range(1, max(self._options.attempts, 1) + 1):
            found = self._client.end_offsets(partitions)
            behind = {it: at for it, at in found.items() if known and known.get(it, at) > at}
            if not behind or attempt == self._options.attempts:
                break
            logger.warning("ends of logs lie before what is known: %s", describe(behind))
            self._sleep(self._options.attempt_interval)
        return found

    def resolve(self, bound: Bound, *, is_start: bool) -> Offsets:
        """Return the offsets that a bound means, for all partitions.

        Raises:
            UsageError: The bound names other partitions than there are, or no record is young
                enough to begin with; in the words of Spark's source.
        """
        partitions = self.partitions()
        named = _at_once(bound, partitions)
        if named is None:
            times = _times(bound, partitions, is_start=is_start)
            found = self._client.first_offsets(times)
            named = {
                it: at if at >= 0 else _none(bound, it, times[it], is_start=is_start)
                for it, at in found.items()
            }
        first = self._client.beginning_offsets([it for it, at in named.items() if at == EARLIEST])
        end = self._client.end_offsets([it for it, at in named.items() if at == LATEST])
        return {**named, **first, **end}

    def ranges(self, bounds: Bounds) -> list[OffsetRange]:
        """Return the range of each partition of a batch.

        Raises:
            UsageError: The batch would end before it begins; or as in `resolve`.
            DataLossError: It would end behind the end of a log.
        """
        start = self.resolve(bounds.start, is_start=True)
        end = self.resolve(bounds.end, is_start=False)
        common = start.keys() & end.keys()  # a topic may grow between the two
        start, end = ({it: at for it, at in side.items() if it in common} for side in (start, end))
        check_resolved(start, end)
        if isinstance(bounds.end, SpecificOffsets):
            end = self._within_logs(end)
        return [OffsetRange(it, at, end[it]) for it, at in sorted(start.items())]

    def _within_logs(self, wanted: Offsets) -> Offsets:
        """Return ends that the logs have: a task would wait for the records behind them."""
        latest = self.latest()
        for partition, at in sorted(wanted.items()):
            if at > latest.get(partition, at):
                data_loss.report(
                    f"endingOffsets of {partition} is {at}, but its log ends at "
                    f"{latest[partition]}.",
                    fail=self._options.fail_on_data_loss,
                )
        return {it: min(at, latest.get(it, at)) for it, at in wanted.items()}


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
