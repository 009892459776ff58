"""The stream reader that PySpark calls.

One object lives in a process on the driver's machine as long as the query runs: all methods but
`read` are called there. Copies of it, pickled, `read` in the workers. PySpark 4.0 and 4.1 call
`latestOffset()` without arguments, 4.2 and later with both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (  # noqa: TID253  PySpark alone imports this module
    DataSourceStreamReader,
    InputPartition,
)

from kafka_fast.spark.source.consumers import new_consumer
from kafka_fast.spark.source.offsets import from_plain, to_plain
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.planning.bounds import Bound
from kafka_fast.spark.source.planning.initial_offsets import store_of
from kafka_fast.spark.source.planning.offset_reader import OffsetReader
from kafka_fast.spark.source.planning.stream_driver import StreamDriver
from kafka_fast.spark.source.reading import read_range
from kafka_fast.spark.task_errors import carrying

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before PySpark 4.2
    BASES: tuple[type, ...] = (DataSourceStreamReader,)
    ENDS_FIRST = True
else:
    BASES = (DataSourceStreamReader, SupportsTriggerAvailableNow)
    ENDS_FIRST = False


class StreamReader(*BASES):  # type: ignore[misc]
    """Reads micro-batches.

    Args:
        options: the query's.
        start: where a new stream begins.
        columns: names of the columns to read.
    """

    def __init__(self, options: SourceOptions, start: Bound, columns: tuple[str, ...]) -> None:
        self._options = options
        self._start = start
        self._columns = columns
        self._consumer: Any = None
        self._made: StreamDriver | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what belongs to the driver's process."""
        return {**self.__dict__, "_consumer": None, "_made": None}

    @property
    def _driver(self) -> StreamDriver:
        """The driver's side, which connects to the brokers when it is first used."""
        if self._made is None:
            options = self._options
            group = {} if options.group is None else {"group.id": options.group}
            self._consumer = new_consumer(options.config, **group, **{"enable.auto.commit": False})
            self._made = StreamDriver(
                OffsetReader(self._consumer, options),
                options,
                self._start,
                store=store_of(options, self._consumer),
                group=self._consumer if options.group is not None else None,
                ends_first=ENDS_FIRST,
            )
        return self._made

    @carrying
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a new query begins."""
        return to_plain(self._driver.initial())

    @carrying
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return where the next micro-batch ends."""
        unlimited = limit is not None and isinstance(limit, ReadAllAvailable)
        known = None if start is None else from_plain(start)
        return to_plain(self._driver.latest(known, unlimited=unlimited))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return that there is a limit: `latestOffset` knows which. Once needs this distinction."""
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.min_offsets is not None:
            return ReadMinRows(options.min_offsets)
        return ReadAllAvailable()

    @carrying
    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the ends of the logs, for progress reports."""
        newest = self._driver.newest
        return None if newest is None else to_plain(newest)

    @carrying
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read no more than what is there now."""
        self._driver.read_available_now()

    @carrying
    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        """Return a range of offsets for each task."""
        ranges = self._driver.ranges(from_plain(start), from_plain(end))
        return [InputPartition(offset_range) for offset_range in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a range. In a worker."""
        return read_range(partition.value, self._options, self._columns)

    @carrying
    def commit(self, end: Any) -> None:
        """Commit `end` to the group of the query, if there is one."""
        self._driver.commit(from_plain(end))

    def stop(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            self._consumer.close(0)
