"""A task that reads: one range of offsets becomes Arrow record batches.

    range ─► consumer of the worker ─► records up to the exact end ─► batches of the wanted columns

The range may hold fewer records than offsets: compaction, transaction markers and aborted records
leave gaps. It ends where the consumer's position has reached its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from kafka_fast.errors import PositionError, UnknownTopicOrPartition
from kafka_fast.spark.source.consumers import CONSUMERS
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.planning import data_loss
from kafka_fast.spark.source.planning.ranges import OffsetRange
from kafka_fast.spark.task_errors import carried

MAX_RECORDS = 50_000
"""Most records that are taken from the consumer at a time."""

GETS_ROUND = 3.0
"""Seconds within which each broker has heard of a topic that was created again."""

ASK_AGAIN = 0.1
"""Seconds between two requests about such a topic."""


def read_range(
    wanted: OffsetRange, options: SourceOptions, columns: tuple[str, ...]
) -> Iterator[Any]:
    """Yield the records of a range as `pyarrow.RecordBatch`.

    Args:
        wanted: the offsets.
        options: the query's.
        columns: names of the columns, in the order that Spark expects.

    Raises:
        TaskError: in place of a KafkaError, in the form that the driver reads.
    """
    yield from carried(_batches(wanted, options, columns))


def _batches(
    offset_range: OffsetRange, options: SourceOptions, columns: tuple[str, ...]
) -> Iterator[Any]:
    with CONSUMERS.lease(options.config) as consumer:
        for records in records_of(offset_range, options, consumer):
            yield from to_batches(records, columns)


def records_of(wanted: OffsetRange, options: SourceOptions, consumer: Any) -> Iterator[Any]:
    """Yield the records of a range in steps, exactly up to its end.

    Args:
        wanted: the offsets.
        options: the query's.
        consumer: a `RangeConsumer`.

    Raises:
        DataLossError: the topic was deleted and created again since the range was planned. Or
            records of the range are gone, unless the query goes on without them.
        KafkaTimeoutError: there was no progress for kafkaConsumer.pollTimeoutMs.
        KafkaError: as in `Consumer.poll`.
    """
    partition, at, until, _ = wanted
    while at < until:
        left = range(at, until)
        try:
            _check_topic(consumer, wanted)
            consumer.assign_ranges({partition: left})
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


def _check_topic(consumer: Any, offset_range: OffsetRange) -> None:
    """Have the consumer know the topic to which the offsets belong.

    A consumer that is kept from task to task may have metadata of a topic that has been deleted
    since, and brokers hear of the new topic one after the other. A topic that was created again
    since the planning must not be read by these offsets.
    """
    if offset_range.topic_id is None:
        return
    topic = offset_range.partition.topic
    deadline = time.monotonic() + GETS_ROUND
    known = consumer.partitions_for([topic])[0].topic_id
    while known not in (None, offset_range.topic_id):
        if time.monotonic() >= deadline:
            raise data_loss.of_another_topic(topic, offset_range.topic_id, known)
        known = consumer.partitions_for([topic], refresh=True)[0].topic_id
        if known != offset_range.topic_id:
            time.sleep(ASK_AGAIN)


def _first_after(consumer: Any, offset_range: OffsetRange, at: int) -> int:
    """Return where to go on when the record at an offset is gone; the range's end: nowhere."""
    try:
        first: int = consumer.beginning_offsets([offset_range.partition])[offset_range.partition]
    except UnknownTopicOrPartition:
        return offset_range.until
    return min(first, offset_range.until) if first > at else offset_range.until


def to_batches(records: Any, columns: tuple[str, ...]) -> Iterator[Any]:
    """Yield records as Arrow record batches with these columns, in Spark's types."""
    import pyarrow as pa

    yield from pa.RecordBatchReader.from_stream(records.arrow(layout="spark", columns=columns))
