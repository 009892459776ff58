"""What the arguments of `read_range` mean: which offsets to read, and with which properties.

    names ─► partitions;  timestamps ─► offsets;  ends not given ─► the ends as of now

Thread: the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from kafka_fast.config import check_mapping, conceal, find_key
from kafka_fast.consumer.bounds import Bound, Topics, bounds_of, kind_of, partitions_named
from kafka_fast.consumer.calls import ConsumerCalls
from kafka_fast.control.consumer.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafka_fast.errors import PositionError, UsageError
from kafka_fast.net.steps import Steps
from kafka_fast.types import TopicPartition

MAX_RECORDS = 50_000
"""Most records that a range hands over at a time."""

OWN_DEFAULTS: Mapping[str, object] = {
    "auto.offset.reset": "none",  # deleted records are an error, and not skipped in silence
    "allow.auto.create.topics": False,  # a misspelt name creates no topic
}

Offsets = dict[TopicPartition, int]


class RangePlan:
    """The arguments of one `read_range`.

    Attributes:
        config: the consumer's properties as a mapping, with the defaults of `OWN_DEFAULTS`.
        keywords: the consumer's properties as keywords.
        max_records: most records at a time.
    """

    def __init__(
        self,
        topics: Topics,
        start: Bound,
        end: Bound,
        *,
        by: Literal["offset", "timestamp"] | None,
        max_records: int,
        config: Mapping[str, object] | None,
        properties: Mapping[str, Any],
    ) -> None:
        """Check the arguments, which are those of `read_range`.

        Raises:
            UsageError: they contradict each other, or the configuration names a group.
        """
        try:
            check_mapping(
                config,
                "config of read_range",
                "read_range('topic', bootstrap_servers='localhost:9092')",
            )
            given, keywords = conceal(config or {}, "consumer"), conceal(properties, "consumer")
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        self._by = kind_of(by, start, end)
        if max_records < 1:
            raise UsageError(f"max_records must be at least 1, not {max_records}")
        self.max_records = max_records
        self._bounds = start, end
        self._named = partitions_named(topics)
        names = {find_key(name, "consumer").name for name in (*given, *keywords)}
        if "group.id" in names:
            raise UsageError("a range is read without a group: leave group.id out")
        own = {name: value for name, value in OWN_DEFAULTS.items() if name not in names}
        self.config: dict[str, Any] = {**given, **own}
        self.keywords: dict[str, Any] = keywords

    def find(self, calls: ConsumerCalls) -> Steps[dict[TopicPartition, range]]:
        """Return the offsets to read, by partition.

        Args:
            calls: of the consumer that will read.

        Raises:
            PositionError: An offset to start from is not, or no longer, in the log.
            BrokerError: There is no such topic, or it may not be read.
            KafkaTimeoutError: The brokers did not describe the partitions in time.
        """
        partitions = yield from self._partitions(calls)
        lows, highs = (bounds_of(given, partitions, self._by) for given in self._bounds)
        first = yield from calls.offsets_at(partitions, EARLIEST_TIMESTAMP, None)
        ends = yield from calls.offsets_at(partitions, LATEST_TIMESTAMP, None)
        if self._by != "timestamp":
            return _by_offset(partitions, first, ends, lows, highs)
        starts = yield from offsets_by_time(calls, lows)
        stops = yield from offsets_by_time(calls, highs)
        return _by_time(partitions, first, ends, starts, stops)

    def _partitions(self, calls: ConsumerCalls) -> Steps[list[TopicPartition]]:
        """Return the named partitions, and all partitions of named topics, without duplicates."""
        found: dict[TopicPartition, None] = {}
        for it in self._named:
            if isinstance(it, str):
                infos = yield from calls.partitions_for(it, None, refresh=False)
                found.update(dict.fromkeys(TopicPartition(it, info.partition) for info in infos))
            else:
                found[it] = None
        return list(found)


def offsets_by_time(calls: ConsumerCalls, times: Mapping[TopicPartition, int]) -> Steps[Offsets]:
    """Return the offset of the first record that is not older than a time; -1 if none is.

    Args:
        calls: of the consumer that asks.
        times: Unix ms, checked before: small numbers are taken for ms, too.
    """
    if not times:
        return {}
    found = yield from calls.offsets_by_time(times, None)
    return {partition: found[partition].offset for partition in times}


def _by_offset(
    partitions: list[TopicPartition],
    first: Offsets,
    ends: Offsets,
    lows: Mapping[TopicPartition, int],
    highs: Mapping[TopicPartition, int],
) -> dict[TopicPartition, range]:
    """Return ranges by offset; a start before the log is an error unless the range is empty."""
    ranges = {}
    for partition in partitions:
        start = lows.get(partition, first[partition])
        stop = min(highs.get(partition, ends[partition]), ends[partition])
        if start < min(first[partition], stop):
            raise PositionError(
                f"{partition} begins at offset {first[partition]}: {start} is not there any more",
                topic=partition.topic,
                partition=partition.partition,
                offset=start,
            )
        ranges[partition] = range(start, max(start, stop))
    return ranges


def _by_time(
    partitions: list[TopicPartition],
    first: Offsets,
    ends: Offsets,
    starts: Offsets,
    stops: Offsets,
) -> dict[TopicPartition, range]:
    """Return ranges by time; a bound for which no record is young enough is the log's end."""
    ranges = {}
    for partition in partitions:
        end = ends[partition]
        start = starts.get(partition, first[partition])
        stop = stops.get(partition, end)
        start = end if start < 0 else start
        stop = end if stop < 0 else min(stop, end)
        ranges[partition] = range(start, max(start, stop))
    return ranges
