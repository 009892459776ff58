"""Read a range of the log once, without a group, up to its exact end.

    read_range("events", start, end, by="timestamp", bootstrap_servers=…)
        │  names ─► partitions; timestamps ─► offsets; ends not given ─► the ends as of now
        ▼
    RangeConsumer: all partitions at once, each with a reader that stops at its end

A partition is done when its *position* has reached its end. The offsets of records do not show
this: a range may end in a gap that compaction left, in a transaction marker or in aborted records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from kafka_fast.config import check_mapping, conceal, find_key
from kafka_fast.consumer.bounds import Bound, Topics, bounds_of, kind_of, partitions_named
from kafka_fast.consumer.client import Consumer
from kafka_fast.control.troubles import Reason
from kafka_fast.dataplane.fetch._consumer_records import ConsumerRecords
from kafka_fast.errors import KafkaTimeoutError, PositionError, UsageError
from kafka_fast.record._arrow_export import ArrowSteps, arrow_steps
from kafka_fast.record._slices import RecordSlice
from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafka_fast.config.properties import ConsumerProperties

OWN_DEFAULTS: Mapping[str, object] = {
    "auto.offset.reset": "none",  # deleted records are an error, and not skipped in silence
    "allow.auto.create.topics": False,  # a misspelt name creates no topic
}

MAX_RECORDS = 50_000
"""Most records in one step."""

WAIT = 0.05
"""Seconds between two looks at the positions: batches without records move them, too."""


class RangeConsumer(Consumer):
    """A consumer whose partitions have ends: for this module, and for tasks of Spark."""

    @property
    def api_timeout(self) -> float:
        """Seconds that a call may take by default."""
        return self._settings.default_api_timeout

    def assign_ranges(self, ranges: Mapping[TopicPartition, range]) -> None:
        """Read each partition from the first offset of its range to the last."""
        with self._turn:
            self._reading.ends.update({it: span.stop for it, span in ranges.items()})
            self._reading.assign(ranges)
            for partition, span in ranges.items():
                self._reading.seek(partition, span.start)

    def read(self, timeout: float, max_records: int) -> Iterator[ConsumerRecords]:
        """Yield the records of the assigned ranges, until all are at their ends.

        Args:
            timeout: Seconds without any progress after which this raises KafkaTimeoutError.
            max_records: Most records in one step.
        """
        moved, before = time.monotonic(), self.state()
        while self.drop_finished():
            records = self.poll(WAIT, max_records)
            if records:
                moved = time.monotonic()
                yield records
                continue
            now = self.state()
            if now != before:
                moved, before = time.monotonic(), now
            elif time.monotonic() - moved >= timeout:
                raise self.late(f"nothing arrived for {timeout:g} s")

    def drop_finished(self) -> int:
        """Stop fetching partitions that are at their ends; return how many are left."""
        with self._turn:
            at = self._reading.intake.positions()
            left = [
                it
                for it in self._reading.intake.partitions
                if it not in at or at[it].offset < self._reading.ends[it]
            ]
            if len(left) < len(self._reading.intake.partitions):
                self._reading.assign(left)
            return len(left)

    def late(self, what: str) -> KafkaTimeoutError:
        """Return a timeout error that names the unread partitions, and why they are not read."""
        with self._turn:
            partitions = self._reading.intake.partitions
            why = self._core.control.silence(partitions, self._core.now())
            unread = Reason(f"unread: {why.text}", why.cause)
            return self._core.waits.late(what, None, unread)

    def first_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offset of the first record that is not older than a time; -1 if none is.

        Args:
            times: Unix ms, checked before: small numbers are taken for ms, too.
        """
        with self._turn:
            found = self._run(self._core.queries.offsets(times, self._deadline(None)))
            return {partition: found[partition].offset for partition in times}

    def state(self) -> dict[TopicPartition, int]:
        """Return the position of each partition that has one."""
        with self._turn:
            return {it: at.offset for it, at in self._reading.intake.positions().items()}


class RecordRange:
    """The records of a range, in steps; iterate over it once. For one thread at a time.

    A RecordRange is an Arrow stream as well: `pl.DataFrame(read_range(...))`, `pyarrow.table(...)`
    and DuckDB take its remaining records, step by step. It closes its consumer at the end of the
    iteration, on an error, and at the end of a `with` block.

    Attributes:
        ranges: the offsets to read, by partition; empty ranges are included.
    """

    ranges: dict[TopicPartition, range]

    def __init__(
        self,
        consumer: RangeConsumer,
        ranges: dict[TopicPartition, range],
        *,
        timeout: float,
        max_records: int,
    ) -> None:
        """Begin to fetch.

        Args:
            consumer: reads the records; this object closes it.
            ranges: the offsets to read, by partition.
            timeout: seconds without any progress after which the iteration raises.
            max_records: most records in one step.
        """
        self.ranges = ranges
        self._consumer = consumer
        self._timeout = timeout
        self._max_records = max_records
        self._left = {it: span for it, span in ranges.items() if span}
        consumer.assign_ranges(self._left)
        self._steps = self._read()

    def __iter__(self) -> Iterator[ConsumerRecords]:
        """Return the steps that are left."""
        return self

    def __next__(self) -> ConsumerRecords:
        """Return the next records: in order within a partition, while partitions take turns.

        Raises:
            PositionError: records of the range were deleted, or truncated, before they were read.
            KafkaTimeoutError: there was no progress for default.api.timeout.ms.
            KafkaError: as in `Consumer.poll`.
        """
        return next(self._steps)

    def _read(self) -> Iterator[ConsumerRecords]:
        with self._consumer:
            yield from self._consumer.read(self._timeout, self._max_records)

    def tables(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        """Return the remaining records as Arrow, one `pyarrow.Table` for each step.

        The arguments are those of `ConsumerRecords.to_arrow`.
        """
        for records in self:
            yield records.to_arrow(layout=layout, views=views, headers=headers, columns=columns)

    def to_arrow(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """Return all remaining records as one `pyarrow.Table`.

        A range without records is a table without rows. The arguments are those of
        `ConsumerRecords.to_arrow`.

        Raises:
            UsageError: pyarrow is not installed.
            KafkaError: As in iteration.
        """
        try:
            import pyarrow as pa
        except ImportError:
            raise UsageError("to_arrow() needs pyarrow: pip install 'kafka-fast[arrow]'") from None
        failures: list[BaseException] = []
        try:
            return pa.table(self._arrow(failures, layout, views, headers, columns))
        except Exception:
            if failures:  # pyarrow passes on the error's text only
                raise failures[0] from None
            raise

    def arrow(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
    ) -> ArrowSteps:
        """Return the remaining records as a lazy table, for any library that takes an Arrow stream.

        The receiving library reads the table's chunks when it needs them, in any thread. An error
        reaches that library as text. The arguments are those of `ConsumerRecords.arrow`.
        """
        return self._arrow([], layout, views, headers, columns)

    def _arrow(
        self,
        failures: list[BaseException],
        layout: Literal["kafka", "spark"],
        views: bool,
        headers: bool | None,
        columns: Sequence[str] | None,
    ) -> ArrowSteps:
        """Return a lazy table that adds an exception of its reading to `failures`."""

        def next_slices() -> list[RecordSlice] | None:
            try:
                return next(self._steps).parts()
            except StopIteration:
                return None
            except BaseException as error:
                failures.append(error)
                raise

        topics = dict.fromkeys(partition.topic for partition in self.ranges)
        return arrow_steps(
            next_slices, topics, layout=layout, views=views, headers=headers, columns=columns
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the remaining records as an Arrow stream of the layout "kafka"."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the Arrow schema of the layout "kafka"."""
        return self.arrow().__arrow_c_schema__()

    def close(self) -> None:
        """Stop reading at any point; a second call does nothing."""
        self._consumer.close()

    def __enter__(self) -> RecordRange:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        records = sum(map(len, self.ranges.values()))
        return f"RecordRange({len(self.ranges)} partitions, {records} offsets)"


def read_range(
    topics: Topics,
    start: Bound = None,
    end: Bound = None,
    *,
    by: Literal["offset", "timestamp"] | None = None,
    max_records: int = MAX_RECORDS,
    config: Mapping[str, object] | None = None,
    **properties: Unpack[ConsumerProperties],
) -> RecordRange:
    """Read the records between two points of the log, once, and end there.

    This never waits for records that are not written yet. If no end is given, or if the end lies
    beyond the log, reading ends at the log's end at the time of the call (its last stable offset
    with isolation.level=read_committed). No group is joined. All partitions are read at once.

    Example:
        >>> for records in read_range("events", bootstrap_servers="localhost:9092"):
        ...     print(records.values())
        >>> noon = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
        >>> hour = read_range("events", noon, noon + timedelta(hours=1), config=config)
        >>> frame = polars.DataFrame(hour)

    Args:
        topics: A topic, a TopicPartition, or several of either.
        start: The first offset, or the first time (a datetime with a time zone, or Unix ms with
            `by="timestamp"`), for all partitions or by partition. With a single topic, the keys may
            be partition numbers. A partition without a start is read from the log's beginning.
        end: The first offset or time that is not read any more, given as `start` is; None: the
            log's end.
        by: Whether start and end are offsets or times; None: times if they are datetimes, else
            offsets. By time, a partition's range begins at its first record that is not older than
            `start`, and ends before its first record that is not older than `end`.
        max_records: Most records in one step.
        config: The consumer's properties. By default `auto.offset.reset` is `none` and
            `allow.auto.create.topics` is false.
        **properties: The consumer's properties as keywords.

    Raises:
        PositionError: An offset to start from is not, or no longer, in the log.
        UsageError: The arguments contradict each other, or the configuration names a group.
        BrokerError: There is no such topic, or it may not be read.
        KafkaTimeoutError: The brokers did not describe the partitions in time.
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
    by = kind_of(by, start, end)
    if max_records < 1:
        raise UsageError(f"max_records must be at least 1, not {max_records}")
    named = partitions_named(topics)
    consumer = _consumer(given, keywords)
    try:
        partitions = _partitions(consumer, named)
        lows, highs = (bounds_of(given, partitions, by) for given in (start, end))
        find = _by_time if by == "timestamp" else _by_offset
        return RecordRange(
            consumer,
            find(consumer, partitions, lows, highs),
            timeout=consumer.api_timeout,
            max_records=max_records,
        )
    except BaseException:
        consumer.close(0)
        raise


def _consumer(given: dict[str, object], keywords: dict[str, Any]) -> RangeConsumer:
    """Make the consumer, with the defaults of `OWN_DEFAULTS`."""
    names = {find_key(name, "consumer").name for name in (*given, *keywords)}
    if "group.id" in names:
        raise UsageError("a range is read without a group: leave group.id out")
    own = {name: value for name, value in OWN_DEFAULTS.items() if name not in names}
    return RangeConsumer({**given, **own}, **keywords)


def _partitions(consumer: Consumer, named: list[str | TopicPartition]) -> list[TopicPartition]:
    """Return the named partitions, and all partitions of named topics, without duplicates."""
    found: dict[TopicPartition, None] = {}
    for it in named:
        if isinstance(it, str):
            infos = consumer.partitions_for(it)
            found.update(dict.fromkeys(TopicPartition(it, info.partition) for info in infos))
        else:
            found[it] = None
    return list(found)


def _by_offset(
    consumer: Consumer,
    partitions: list[TopicPartition],
    lows: Mapping[TopicPartition, int],
    highs: Mapping[TopicPartition, int],
) -> dict[TopicPartition, range]:
    """Return ranges by offset; a start before the log is an error unless the range is empty."""
    first, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
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
    consumer: RangeConsumer,
    partitions: list[TopicPartition],
    lows: Mapping[TopicPartition, int],
    highs: Mapping[TopicPartition, int],
) -> dict[TopicPartition, range]:
    """Return ranges by time; a bound for which no record is young enough is the log's end."""
    first, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    starts = consumer.first_offsets(lows) if lows else {}
    stops = consumer.first_offsets(highs) if highs else {}
    ranges = {}
    for partition in partitions:
        end = ends[partition]
        start = starts.get(partition, first[partition])
        stop = stops.get(partition, end)
        start = end if start < 0 else start
        stop = end if stop < 0 else min(stop, end)
        ranges[partition] = range(start, max(start, stop))
    return ranges
