"""The batch reader that PySpark calls: plans in the planner's process, reads in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (  # noqa: TID253  PySpark alone imports this module
    DataSourceReader,
    InputPartition,
)

from kafka_fast.spark.source.consumers import new_consumer
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.planning.bounds import Bounds
from kafka_fast.spark.source.planning.offset_reader import OffsetReader
from kafka_fast.spark.source.planning.ranges import split
from kafka_fast.spark.source.reading import read_range
from kafka_fast.spark.task_errors import carrying


class BatchReader(DataSourceReader):
    """Reads what is between two points of the logs. Pickled: it holds plain data only.

    Args:
        options: the query's.
        bounds: where it begins and ends.
        columns: names of the columns to read.
    """

    def __init__(self, options: SourceOptions, bounds: Bounds, columns: tuple[str, ...]) -> None:
        self._options = options
        self._bounds = bounds
        self._columns = columns

    @carrying
    def partitions(self) -> list[InputPartition]:
        """Return a range of offsets for each task."""
        options = self._options
        consumer = new_consumer(options.config)
        with consumer:
            ranges = OffsetReader(consumer, options).ranges(self._bounds)
        split_up = split(ranges, options.min_partitions, options.max_records_per_partition)
        return [InputPartition(offset_range) for offset_range in split_up]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        """Yield the records of a range.

        Of a query without any range Spark makes a task without one: PySpark 4.0 for None, later
        ones for a partition whose value is None.
        """
        if partition is None or partition.value is None:
            return iter(())
        return read_range(partition.value, self._options, self._columns)
