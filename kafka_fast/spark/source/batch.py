"""The batch reader that PySpark calls: plans in the planner's process, reads in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (  # noqa: TID253  PySpark alone imports this module
    DataSourceReader,
    InputPartition,
)

from kafka_fast.spark.source import data_loss
from kafka_fast.spark.source.bounds import Bounds, SpecificOffsets, check_resolved
from kafka_fast.spark.source.consumers import new_consumer
from kafka_fast.spark.source.offset_reader import OffsetReader
from kafka_fast.spark.source.offsets import Offsets
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.ranges import OffsetRange, split
from kafka_fast.spark.source.reading import read_range


class BatchReader(DataSourceReader):
    """Reads what is between two points of the logs. Pickled: it holds plain data only.

    Args:
        options: The query's.
        bounds: Where it begins and ends.
        columns: Names of the columns to read.
    """

    def __init__(self, options: SourceOptions, bounds: Bounds, columns: tuple[str, ...]) -> None:
        self._options = options
        self._bounds = bounds
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Return a range of offsets for each task."""
        options = self._options
        consumer = new_consumer(options.config)
        with consumer:
            ranges = ranges_of(OffsetReader(consumer, options), self._bounds, options)
        split_up = split(ranges, options.min_partitions, options.max_records_per_partition)
        return [InputPartition(it) for it in split_up]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a range; of an empty query Spark makes a task without a range."""
        if partition.value is None:
            return iter(())
        return read_range(partition.value, self._options, self._columns)


def ranges_of(reader: OffsetReader, bounds: Bounds, options: SourceOptions) -> list[OffsetRange]:
    """Return the range of each partition.

    Raises:
        UsageError: The batch would end before it begins.
        DataLossError: It would end behind the end of a log.
    """
    start = reader.resolve(bounds.start, is_start=True)
    end = reader.resolve(bounds.end, is_start=False)
    common = start.keys() & end.keys()  # a topic may grow between the two
    start, end = ({it: at for it, at in side.items() if it in common} for side in (start, end))
    check_resolved(start, end)
    if isinstance(bounds.end, SpecificOffsets):
        end = _within(end, reader.latest(), options)
    return [OffsetRange(it, at, end[it]) for it, at in sorted(start.items())]


def _within(wanted: Offsets, latest: Offsets, options: SourceOptions) -> Offsets:
    """Return ends that the logs have: a task would wait for the records behind them."""
    for partition, at in sorted(wanted.items()):
        if at > latest.get(partition, at):
            data_loss.report(
                f"endingOffsets of {partition} is {at}, but its log ends at {latest[partition]}.",
                fail=options.fail_on_data_loss,
            )
    return {it: min(at, latest.get(it, at)) for it, at in wanted.items()}
