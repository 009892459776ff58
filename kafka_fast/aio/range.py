"""`aio.read_range`: read a range of the log once, in an event loop, up to its exact end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from kafka_fast.aio.consumer import Consumer
from kafka_fast.consumer.ranges.bounds import Bound, Topics
from kafka_fast.consumer.ranges.range_plan import MAX_RECORDS, RangePlan
from kafka_fast.consumer.ranges.range_reading import (
    RangeHolder,
    RangeReading,
    RangeRecords,
    describe,
)
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records.frames import package_for
from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from typing_extensions import Unpack

    from kafka_fast.config.properties import ConsumerProperties


class AsyncRangeConsumer(RangeReading, Consumer):
    """`RangeConsumer` for asyncio: reads ranges of offsets to their ends, without a group."""

    async def find_ranges(self, plan: RangePlan) -> dict[TopicPartition, range]:
        """Return the offsets that are to be read, by partition."""
        return await self._driver.run(plan.find(self._calls))

    async def next_records(self, records: RangeRecords) -> ConsumerRecords | None:
        """Return the next records; None: all partitions are at their ends."""
        return await self._driver.run(records.next_records())


class RecordRange(RangeHolder):
    """The records of a range, in steps; iterate over it once. For one task at a time.

    It closes its consumer at the end of the iteration, on an error, at the end of an `async with`
    block, and when it is dropped.
    """

    _consumer: AsyncRangeConsumer

    def __init__(self, plan: RangePlan) -> None:
        """Start the consumer; nothing is asked of a broker before the first step.

        Args:
            plan: what to read.
        """
        self._plan = plan
        self._consumer = AsyncRangeConsumer(plan.config, **plan.keywords)
        self._ranges: dict[TopicPartition, range] | None = None
        self._records: RangeRecords | None = None
        self._is_over = False

    async def ranges(self) -> dict[TopicPartition, range]:
        """Return the offsets to read, by partition; empty ranges are included.

        Raises:
            PositionError: an offset to start from is not, or no longer, in the log.
            BrokerError: there is no such topic, or it may not be read.
            KafkaTimeoutError: the brokers did not describe the partitions in time.
        """
        if self._ranges is None:
            try:
                ranges = await self._consumer.find_ranges(self._plan)
            except Exception:
                await self._end()
                raise
            self._consumer.assign_ranges(
                {partition: span for partition, span in ranges.items() if span}
            )
            self._records = RangeRecords(
                self._consumer,
                self._consumer.poll,
                self._consumer.api_timeout,
                self._plan.max_records,
            )
            self._ranges = ranges
        return self._ranges

    def __aiter__(self) -> AsyncIterator[ConsumerRecords]:
        """Return the steps that are left."""
        return self

    async def __anext__(self) -> ConsumerRecords:
        """Return the next records: in order within a partition, while partitions take turns.

        In an event loop, a cancelled step loses no record: they come with the next one.

        Raises:
            PositionError: records of the range were deleted, or truncated, before they were read.
            KafkaTimeoutError: there was no progress for default.api.timeout.ms.
            KafkaError: as in `Consumer.poll`.
        """
        if self._is_over:
            raise StopAsyncIteration
        await self.ranges()
        assert self._records is not None
        try:
            records = await self._consumer.next_records(self._records)
        except Exception:
            await self._end()
            raise
        if records is None:
            await self._end()
            raise StopAsyncIteration
        return records

    async def _end(self) -> None:
        self._is_over = True
        await self.close()

    async def tables(
        self,
        *,
        layout: Literal["kafka", "spark"] = "kafka",
        views: bool = False,
        headers: bool | None = None,
        columns: Sequence[str] | None = None,
        text: bool = False,
    ) -> AsyncIterator[pa.Table]:
        """Return the remaining records as Arrow, one `pyarrow.Table` for each step.

        The arguments are those of `ConsumerRecords.to_arrow`.
        """
        async for records in self:
            yield records.to_arrow(
                layout=layout, views=views, headers=headers, columns=columns, text=text
            )

    async def to_arrow(
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
        package_for("to_arrow()", "pyarrow")
        records = await self._all()
        return records.to_arrow(
            layout=layout, views=views, headers=headers, columns=columns, text=text
        )

    async def to_pandas(
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
        package_for("to_pandas()", "pandas")
        package_for("to_pandas()", "pyarrow")
        records = await self._all()
        return records.to_pandas(layout=layout, headers=headers, columns=columns, text=text)

    async def to_polars(
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
        package_for("to_polars()", "polars")
        records = await self._all()
        return records.to_polars(
            layout=layout, views=views, headers=headers, columns=columns, text=text
        )

    async def _all(self) -> ConsumerRecords:
        """Return all remaining records, whose fetched bytes stay in memory."""
        return ConsumerRecords([part async for records in self for part in records.parts()])

    async def close(self) -> None:
        """Stop reading at any point; a second call does nothing."""
        await self._consumer.close()

    async def __aenter__(self) -> RecordRange:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        if self._ranges is None:
            return "RecordRange(not begun)"
        return describe(self._ranges)


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
    beyond the log, reading ends at the log's end at the time of the first step (its last stable
    offset with isolation.level=read_committed). No group is joined. All partitions are read at
    once.

    In an event loop, this call waits for nothing. The first step of the iteration looks up
    partitions and offsets, and raises what goes wrong there.

    Examples:
        >>> async for records in read_range("events", bootstrap_servers="localhost:9092"):
        ...     print(records.values())

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
    return RecordRange(plan)
