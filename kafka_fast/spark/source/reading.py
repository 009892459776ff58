"""A task that reads: one range of offsets becomes Arrow record batches.

    range ─► consumer of the worker ─► records up to the exact end ─► batches of the wanted columns

The range may hold fewer records than offsets: compaction, transaction markers and aborted records
leave gaps. It ends where the consumer's position has reached its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka_fast.errors import PositionError, UnknownTopicOrPartition
from kafka_fast.spark.source import data_loss
from kafka_fast.spark.source.consumers import CONSUMERS
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.ranges import OffsetRange
from kafka_fast.spark.task_errors import carried

MAX_RECORDS = 50_000
"""Most records that are taken from the consumer at a time."""


def read_range(
    wanted: OffsetRange, options: SourceOptions, columns: tuple[str, ...]
) -> Iterator[Any]:
    """Yield the records of a range as `pyarrow.RecordBatch`.

    Args:
        wanted: The offsets.
        options: The query's.
        columns: Names of the columns, in the order that Spark expects.

    Raises:
        TaskError: In place of a KafkaError, in the form that the driver reads.
    """
    yield from carried(_batches(wanted, options, columns))


def _batches(
    wanted: OffsetRange, options: SourceOptions, columns: tuple[str, ...]
) -> Iterator[Any]:
    with CONSUMERS.lease(options.config) as consumer:
        for records in records_of(wanted, options, consumer):
            yield from to_batches(records, columns)


def records_of(wanted: OffsetRange, options: SourceOptions, consumer: Any) -> Iterator[Any]:
    """Yield the records of a range in steps, exactly up to its end.

    Args:
        wanted: The offsets.
        options: The query's.
        consumer: A `RangeConsumer`.

    Raises:
        DataLossError: Records of the range are gone, unless the query goes on without them.
        KafkaTimeoutError: There was no progress for kafkaConsumer.pollTimeoutMs.
        KafkaError: As in `Consumer.poll`.
    """
    partition, at, until = wanted
    while at < until:
        consumer.assign_ranges({partition: range(at, until)})
        try:
            for records in consumer.read(options.poll_timeout, MAX_RECORDS):
                at = records.next_offsets()[partition].offset
                yield records
        except (PositionError, UnknownTopicOrPartition) as error:
            data_loss.report(
                f"Could not read records in offset [{at}, {until}) for topic partition "
                f"{partition}: {error}.",
                fail=options.fail_on_data_loss,
                cause=error,
            )
            at = _first_after(consumer, wanted, at)
            consumer.assign([])
        else:
            return


def _first_after(consumer: Any, wanted: OffsetRange, at: int) -> int:
    """Return where to go on when the record at an offset is gone; the range's end: nowhere."""
    try:
        first: int = consumer.beginning_offsets([wanted.partition])[wanted.partition]
    except UnknownTopicOrPartition:
        return wanted.until
    return min(first, wanted.until) if first > at else wanted.until


def to_batches(records: Any, columns: tuple[str, ...]) -> Iterator[Any]:
    """Yield records as Arrow record batches with these columns, in Spark's types."""
    import pyarrow as pa

    yield from pa.RecordBatchReader.from_stream(records.arrow(layout="spark", columns=columns))
