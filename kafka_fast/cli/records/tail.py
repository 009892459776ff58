"""The last records of partitions: `--tail` and `--tail-together` of `kafka-fast consume`.

The offsets of a log have gaps, such as the ends of transactions and what compaction removes, and
records may be left out by their headers. So a partition is read from further and further back,
until enough records are found or its beginning is reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from kafka_fast import Consumer, TopicPartition, read_range
from kafka_fast.cli.records.partitions import TopicOrPartition, partitions_of
from kafka_fast.cli.records.selection import Select
from kafka_fast.consumer import ConsumerRecord
from kafka_fast.values import Value

_FURTHER = 8
"""How many times as far back the next look goes."""


class _Search(Value, frozen=False):
    """The last records of one partition, as far as they are found."""

    beginning: int
    start: int
    """From here on the log was read."""
    end: int
    records: list[ConsumerRecord]
    """Those that were found."""

    def is_over(self, count: int) -> bool:
        """Return whether there are enough, or no more."""
        return len(self.records) >= count or self.start <= self.beginning


def last_records(
    config: Mapping[str, object],
    sources: Sequence[TopicOrPartition],
    count: int,
    select: Select | None,
) -> list[list[ConsumerRecord]]:
    """Return the last records of each partition that are there now.

    Args:
        config: the consumer's.
        sources: topics and partitions.
        count: most records of a partition.
        select: chooses records; None: all count.
    """
    searches = _searches(config, sources)
    width = count
    while True:
        spans: dict[TopicPartition, tuple[int, int]] = {}
        for partition, search in searches.items():
            if not search.is_over(count):
                start = max(search.beginning, search.end - width)
                spans[partition] = (start, search.start)
                search.start = start
        if not spans:
            return [search.records for search in searches.values()]
        for partition, records in _read(config, spans, count, select).items():
            search = searches[partition]
            search.records = [*records, *search.records][-count:]
        width *= _FURTHER


def last_together(
    of_partitions: Iterable[Sequence[ConsumerRecord]], count: int
) -> list[ConsumerRecord]:
    """Return the last records of all, by their timestamps; the sequence of each partition stays.

    A record that is older than one before it in its partition counts as being as new as that one.
    """
    ranked: list[tuple[int, ConsumerRecord]] = []
    for records in of_partitions:
        newest = -1
        for record in records:
            newest = max(newest, record.timestamp_ms)
            ranked.append((newest, record))
    ranked.sort(key=lambda pair: pair[0])
    return [record for _, record in ranked[-count:]]


def _searches(
    config: Mapping[str, object], sources: Sequence[TopicOrPartition]
) -> dict[TopicPartition, _Search]:
    with Consumer(config) as consumer:
        partitions = partitions_of(consumer, sources)
        beginnings = consumer.beginning_offsets(partitions)
        ends = consumer.end_offsets(partitions)
    return {one: _Search(beginnings[one], ends[one], ends[one], []) for one in partitions}


def _read(
    config: Mapping[str, object],
    spans: Mapping[TopicPartition, tuple[int, int]],
    count: int,
    select: Select | None,
) -> dict[TopicPartition, deque[ConsumerRecord]]:
    """Return the last records between two offsets of each partition."""
    last: dict[TopicPartition, deque[ConsumerRecord]] = {
        partition: deque(maxlen=count) for partition in spans
    }
    starts = {partition: start for partition, (start, _) in spans.items()}
    ends = {partition: end for partition, (_, end) in spans.items()}
    with read_range([*spans], starts, ends, by="offset", config=config) as steps:
        for records in steps:
            for record in records if select is None else select(records):
                last[TopicPartition(record.topic, record.partition)].append(record)
    return last
