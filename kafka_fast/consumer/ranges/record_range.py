"""Read a range of the log once, without a group, up to its exact end.

    read_range("events", start, end, by="timestamp", bootstrap_servers=…)
     │  names ─► partitions; timestamps ─► offsets; ends not given ─► the ends as of now
     ▼
    RangeConsumer: all partitions at once, each with a reader that stops at its end

Thread: the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from kafka_fast.consumer.client import Consumer
from kafka_fast.consumer.ranges.bounds import Bound, Topics
from kafka_fast.consumer.ranges.range_plan import MAX_RECORDS, RangePlan, offsets_by_time
from kafka_fast.consumer.ranges.range_reading import (
    RangeHolder,
    RangeReading,
    RangeRecords,
    describe,
)
from kafka_fast.errors import UsageError
from kafka_fast.record._arrow_export import ArrowSteps, arrow_steps
from kafka_fast.record._slices import RecordSlice
from kafka_fast.records import frames
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from typing_extensions import Unpack

    from kafka_fast.config.properties import ConsumerProperties


class RangeConsumer(RangeReading, Consumer):
    """A consumer that reads ranges: for this module, and for tasks of Spark."""

    def find_ranges(self, plan: RangePlan) -> dict[TopicPartition, range]:
        """Return the offsets that are to be read, by partition."""
        return self._core.driver.run(plan.find(self._calls))

    def first_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offset of the first record that is not older than a time; -1 if none is.

        Args:
            times: Unix ms, checked before: small numbers are taken for ms, too.
        """
        return self._core.driver.run(offsets_by_time(self._calls, times))

    def read(self, timeout: float, max_records: int) -> Iterator[ConsumerRecords]:
        """Yield the records of the assigned ranges, until all are at their ends.

        Args:
            timeout: seconds without any progress after which this raises KafkaTimeoutError.
            max_records: most records at a time.
        """
        records = RangeRecords(self, self.poll, timeout, max_records)
        while (some := self._core.driver.run(records.next_records())) is not None:
            yield some


class RecordRange(RangeHolder):
    """The records of a range, in steps; iterate over it once. For one thread at a time.

    It closes its consumer at the end of the iteration, on an error, at the end of a `with` block,
    and when it is dropped.

    A RecordRange is an Arrow stream as well: `pl.DataFrame(read_range(...))`, `pyarrow.table(...)`
    and DuckDB take its remaining records, step by step.
    """

    ranges: dict[TopicPartition, range]
    """The offsets to read, by partition; empty ranges are included."""
    _consumer: RangeConsumer

    def __init__(
        self,
        consumer: RangeConsumer,
        ranges: dict[TopicPartition, range],
        *,
        timeout: float,
        max_records: int,
    ) -> None:
        """Assign the ranges that are not empty, so that the consumer fetches them.

        Args:
            consumer: reads the records; this object closes it.
            ranges: the offsets to read, by partition.
            timeout: seconds without any progress after which the iteration raises.
            max_records: most records at a time.
        """
        self.ranges = ranges
        self._consumer = consumer
        consumer.assign_ranges({partition: span for partition, span in ranges.items() if span})
        self._steps = consumer.read(timeout, max_records)
        self._is_over = False  # the iteration has come to its end

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
        try:
            return next(self._steps)
        except BaseException as error:  # a StopIteration as well
            self._is_over = self._is_over or isinstance(error, StopIteration)
            self._consumer.close()
            raise

    def tables(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
        text: bool = False,
    ) -> Iterator[pa.Table]:
        """Return the remaining records as Arrow, one `pyarrow.Table` for each step.

        The arguments are those of `ConsumerRecords.to_arrow`.
        """
        for records in self:
            yield records.to_arrow(
                layout=layout, views=views, headers=headers, columns=columns, text=text
            )

    def to_arrow(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
        text: bool = False,
    ) -> pa.Table:
        """Return all remaining records as one `pyarrow.Table`.

        A range without records is a table without rows. The arguments are those of
        `ConsumerRecords.to_arrow`.

        Raises:
            UsageError: pyarrow is not installed.
            KafkaError: as in iteration.
        """
        failures: list[BaseException] = []
        return frames.to_arrow(
            lambda: self._arrow(failures, layout, views, headers, columns, text), failures
        )

    def to_pandas(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
        text: bool = False,
    ) -> pd.DataFrame:
        """Return all remaining records as one `pandas.DataFrame`.

        The arguments are those of `ConsumerRecords.to_pandas`.

        Raises:
            UsageError: pandas or pyarrow is not installed.
            KafkaError: as in iteration.
        """
        failures: list[BaseException] = []
        return frames.to_pandas(
            lambda: self._arrow(failures, layout, False, headers, columns, text), failures
        )

    def to_polars(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
        text: bool = False,
    ) -> pl.DataFrame:
        """Return all remaining records as one `polars.DataFrame`.

        The arguments are those of `ConsumerRecords.to_polars`.

        Raises:
            UsageError: polars is not installed.
            KafkaError: as in iteration.
        """
        failures: list[BaseException] = []
        return frames.to_polars(
            lambda: self._arrow(failures, layout, views, headers, columns, text), failures
        )

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        """Return a row object for each record: so pandas.DataFrame(range) gets its columns.

        An array without rows names none, and a frame without columns says nothing of its reason.

        Raises:
            UsageError: the range was read to its end before.
        """
        if self._is_over:
            raise UsageError(
                "this range was read to its end before: call read_range() again, or to_pandas() "
                "for a frame without rows"
            )
        return frames.rows_array(self, dtype)

    def arrow(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
        text: bool = False,
    ) -> ArrowSteps:
        """Return the remaining records as a lazy table, for any library that takes an Arrow stream.

        The receiving library reads the table's chunks when it needs them, in any thread. An error
        reaches that library as text. The arguments are those of `ConsumerRecords.arrow`.
        """
        return self._arrow([], layout, views, headers, columns, text)

    def _arrow(
        self,
        failures: list[BaseException],
        layout: Literal["kafka", "spark"],
        views: bool,
        headers: bool | None,
        columns: Sequence[str] | None,
        text: bool,
    ) -> ArrowSteps:
        """Return a lazy table that adds the exceptions of its streams to `failures`."""

        def next_slices() -> list[RecordSlice] | None:
            records = next(self, None)
            return None if records is None else records.parts()

        topics = dict.fromkeys(partition.topic for partition in self.ranges)
        return arrow_steps(
            next_slices,
            topics,
            layout=layout,
            views=views,
            headers=headers,
            columns=columns,
            text=text,
            failures=failures,
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
        return describe(self.ranges)


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

    Examples:
        >>> for records in read_range("events", bootstrap_servers="localhost:9092"):
        ...     print(records.values())
        >>> noon = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
        >>> hour = read_range("events", noon, noon + timedelta(hours=1), config=config)
        >>> frame = polars.DataFrame(hour)

    Args:
        topics: a topic, a TopicPartition, or several of either.
        start: the first offset, or the first time (a datetime with a time zone, or Unix ms with
            `by="timestamp"`), for all partitions or by partition. With a single topic, the keys may
            be partition numbers. A partition without a start is read from the log's beginning.
        end: the first offset or time that is not read any more, given as `start` is; None: the
            log's end.
        by: whether start and end are offsets or times; None: times if they are datetimes, else
            offsets. By time, a partition's range begins at its first record that is not older than
            `start`, and ends before its first record that is not older than `end`.
        max_records: most records at a time.
        config: the consumer's properties. By default `auto.offset.reset` is `none` and
            `allow.auto.create.topics` is false.
        **properties: the consumer's properties as keywords.

    Raises:
        PositionError: an offset to start from is not, or no longer, in the log.
        UsageError: the arguments contradict each other, or the configuration names a group.
        ConfigError: a property is unknown, out of range or contradicts another.
        BrokerError: there is no such topic, or it may not be read.
        KafkaTimeoutError: the brokers did not describe the partitions in time.
    """
    try:
        plan = RangePlan(
            topics,
            start,
            end,
            by=by,
            max_records=max_records,
            config=config,
            properties=properties,
        )
    finally:
        del config, properties  # a traceback that has this frame shows no secret
    consumer = RangeConsumer(plan.config, **plan.keywords)
    try:
        return RecordRange(
            consumer,
            consumer.find_ranges(plan),
            timeout=consumer.api_timeout,
            max_records=plan.max_records,
        )
    except BaseException:
        consumer.close(0)
        raise
