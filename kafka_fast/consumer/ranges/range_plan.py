"""What the arguments of `read_range` mean: which offsets to read, and with which properties.

    names ─► partitions;  timestamps ─► offsets;  ends not given ─► the ends as of now

Thread: the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from kafka_fast.config import check_mapping, conceal, own_key
from kafka_fast.consumer.arguments import most_records
from kafka_fast.consumer.calls import ConsumerCalls
from kafka_fast.consumer.ranges.bounds import (
    Bound,
    Topics,
    bounds_of,
    check_order,
    kind_of,
    partitions_named,
    point_of,
    time_meant,
)
from kafka_fast.control.consumer.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafka_fast.errors import PositionError, UsageError
from kafka_fast.logs import ClientLog, count_of
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.times import iso_time
from kafka_fast.types import TopicPartition

MAX_RECORDS = 50_000
"""Most records that a range hands over at a time."""

OWN_DEFAULTS: Mapping[str, object] = {
    "auto.offset.reset": "none",  # deleted records are an error, and not skipped in silence
    "allow.auto.create.topics": False,  # a misspelt name creates no topic
}

_CLOCKS_APART_MS = 60_000
"""How far the clocks of two machines are apart at most, if they are well."""

Offsets = dict[TopicPartition, int]


class RangePlan:
    """The arguments of one `read_range`."""

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
            mapping, keywords = conceal(config or {}, "consumer"), conceal(properties, "consumer")
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        self._by = kind_of(by, start, end)
        self.max_records = most_records(max_records)
        """Most records at a time."""
        self._bounds = start, end
        self._is_offset_said = by is not None
        self._named = partitions_named(topics)
        self._check_points(start, end)
        names = {key.name for name in (*mapping, *keywords) if (key := own_key(name))}
        if "group.id" in names:
            raise UsageError("a range is read without a group: leave group.id out")
        own = {name: value for name, value in OWN_DEFAULTS.items() if name not in names}
        self.config: dict[str, Any] = {**mapping, **own}
        """The consumer's properties as a mapping, with the defaults of `OWN_DEFAULTS`."""
        self.keywords: dict[str, Any] = keywords
        """The consumer's properties as keywords."""

    def _check_points(self, start: Bound, end: Bound) -> None:
        """Refuse points for all partitions that are wrong, or in the wrong order.

        Those by partition are checked by `find`, which knows the partitions.
        """
        low, high = (
            None if bound is None or isinstance(bound, Mapping) else point_of(bound, self._by)
            for bound in (start, end)
        )
        check_order(low, high, self._by)

    def find(self, calls: ConsumerCalls) -> Steps[dict[TopicPartition, range]]:
        """Return the offsets to read, by partition.

        Args:
            calls: of the consumer that will read.

        Raises:
            PositionError: an offset to start from is not, or no longer, in the log.
            BrokerError: there is no such topic, or it may not be read.
            KafkaTimeoutError: the brokers did not describe the partitions in time.
        """
        partitions = yield from self._partitions(calls)
        lows, highs = (bounds_of(bound, partitions, self._by) for bound in self._bounds)
        for partition in partitions:
            bounds = lows.get(partition), highs.get(partition)
            check_order(*bounds, self._by, f"the range of {partition}")
        first = yield from calls.offsets_at(partitions, EARLIEST_TIMESTAMP, None)
        ends = yield from calls.offsets_at(partitions, LATEST_TIMESTAMP, None)
        if self._by != "timestamp":
            _warn_of_times(calls.log, highs, ends, self._meant)
            return _by_offset(partitions, first, ends, lows, highs, self._meant)
        _warn_of_future(calls.log, lows)
        starts = yield from offsets_by_time(calls, lows)
        stops = yield from offsets_by_time(calls, highs)
        return _by_time(partitions, first, ends, starts, stops)

    def _meant(self, offset: int) -> str:
        """Return the end of a message about an offset that no log has, if it may be a time."""
        return "" if self._is_offset_said else time_meant(offset)

    def _partitions(self, calls: ConsumerCalls) -> Steps[list[TopicPartition]]:
        """Return the named partitions, and all partitions of named topics, without duplicates."""
        partitions: dict[TopicPartition, None] = {}
        for item in self._named:
            if isinstance(item, str):
                infos = yield from calls.partitions_for(item, None, refresh=False)
                partitions.update(
                    dict.fromkeys(TopicPartition(item, info.partition) for info in infos)
                )
            else:
                partitions[item] = None
        return list(partitions)


def offsets_by_time(calls: ConsumerCalls, times: Mapping[TopicPartition, int]) -> Steps[Offsets]:
    """Return the offset of the first record that is not older than a time; -1 if none is.

    Args:
        calls: of the consumer that asks.
        times: Unix ms, checked before: small numbers are taken for ms, too.
    """
    if not times:
        return {}
    offsets = yield from calls.offsets_by_time(times, None)
    return {partition: offsets[partition].offset for partition in times}


def _by_offset(
    partitions: list[TopicPartition],
    first: Offsets,
    ends: Offsets,
    lows: Mapping[TopicPartition, int],
    highs: Mapping[TopicPartition, int],
    meant: Callable[[int], str],
) -> dict[TopicPartition, range]:
    """Return ranges by offset.

    A start before the log is an error unless the range is empty. A start behind the log's end is
    one always: the offset was counted in another log, or is no offset.
    """
    ranges = {}
    for partition in partitions:
        start, end = lows.get(partition, first[partition]), ends[partition]
        stop = min(highs.get(partition, end), end)
        if start < min(first[partition], stop):
            raise _misplaced(
                f"{partition} begins at offset {first[partition]}: {start} is not there any more",
                partition,
                start,
            )
        ranges[partition] = range(start, max(start, stop))
    beyond = [partition for partition in partitions if ranges[partition].start > ends[partition]]
    if beyond:
        partition, start = beyond[0], ranges[beyond[0]].start
        others = f", nor in {count_of(len(beyond) - 1, 'other partition')}" if beyond[1:] else ""
        raise _misplaced(
            f"{partition} ends at offset {ends[partition]}: {start} is not there (yet){others}"
            f"{meant(start)}",
            partition,
            start,
        )
    return ranges


def _misplaced(text: str, partition: TopicPartition, offset: int) -> PositionError:
    return PositionError(text, topic=partition.topic, partition=partition.partition, offset=offset)


def _warn_of_times(
    log: ClientLog, highs: Offsets, ends: Offsets, meant: Callable[[int], str]
) -> None:
    """Log that the end of a range is beyond all logs, and looks like a time."""
    beyond = [at for partition, at in highs.items() if at > ends[partition]]
    text = meant(beyond[0]) if beyond and len(beyond) == len(highs) else ""
    if text:
        log.warning("the range ends at offset %d, beyond the log%s", beyond[0], text)


def _warn_of_future(log: ClientLog, starts: Offsets) -> None:
    """Log that a range begins in the future, so that it is most likely empty."""
    if starts and min(starts.values()) > time.time() * 1000 + _CLOCKS_APART_MS:
        at = iso_time(min(starts.values()))
        log.warning("the range begins in the future, at %s: no record is that young (yet)", at)


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
