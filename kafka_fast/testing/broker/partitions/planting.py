"""Does to a log what no Produce request can: transactions, gaps, empty batches, ruins, losses.

For tests of readers. What is planted is served as it is; transactions are followed by what their
batches say, so an aborted one appears in the answers to read_committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kafka_fast.errors import CorruptBatchError
from kafka_fast.record import (
    ControlType,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
    build_control_batch,
    read_batches,
    stamp_batch,
)
from kafka_fast.record.types import NO_PRODUCER_ID
from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.partitions.log import PartitionLog, StoredBatch
from kafka_fast.testing.broker.partitions.producers import (
    ProducerStates,
    WrittenBatch,
    last_sequence,
)
from kafka_fast.testing.broker.partitions.transactions import Transactions

MAGIC = 2


def plant_batches(partition: Partition, data: bytes, at: int | None = None) -> int:
    """Append whole batches in format v2, as a replica would: their offsets are assigned, no rules.

    Args:
        partition: whose log it is.
        data: one or more batches; an empty one takes the offsets that its header spans.
        at: offset of the first one, at the end of the log or beyond it; None: at the end.

    Returns:
        The offset of the first one.

    Raises:
        ValueError: not whole batches in format v2, or `at` is before the end of the log.
    """
    try:
        batches = read_batches(data)
    except CorruptBatchError as error:
        raise ValueError(f"whole record batches can be planted as such: {error}") from error
    if not batches or batches.partial or any(batch.magic != MAGIC for batch in batches):
        raise ValueError("whole record batches in format v2 can be planted as such")
    log = partition.log
    if at is not None and at < log.end_offset:
        raise ValueError(f"offset {at} is before the end of the log, {log.end_offset}")
    first = log.end_offset if at is None else at
    base_offset = first
    for batch in batches:
        stored = _stored(batch, base_offset, partition.leader_epoch)
        log.transactions.note(batch, base_offset)
        _remember_producer(partition, batch, stored)
        log.append(stored)
        base_offset = log.end_offset
    return first


def plant_bytes(partition: Partition, data: bytes, count: int = 1) -> int:
    """Append bytes of any kind, served as they are to who reads one of the next `count` offsets.

    Returns:
        The offset of the first one.
    """
    if count < 1:
        raise ValueError(f"{count} offsets")
    log = partition.log
    first = log.end_offset
    log.append(StoredBatch(first, first + count - 1, -1, data))
    return first


def plant_transaction(
    partition: Partition, producer_id: int, values: Iterable[bytes], commit: bool | None
) -> int:
    """Append a transaction of one batch and, unless it stays open, the marker that ends it.

    Args:
        partition: whose log it is.
        producer_id: of the producer, which has epoch 0.
        values: of its records, which have no keys and timestamp 0.
        commit: how it ends, None: not yet.

    Returns:
        The offset of the first record.
    """
    sequence = partition.producers.next_sequence(producer_id)
    builder = RecordBatchBuilder(
        producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )
    for value in values:
        builder.append(None, value, 0)
    first = plant_batches(partition, builder.build())
    if commit is not None:
        end_transaction(partition, producer_id, commit=commit)
    return first


def end_transaction(partition: Partition, producer_id: int, *, commit: bool) -> int:
    """Append the marker that ends the open transaction of a producer; return its offset."""
    if not partition.log.transactions.is_open(producer_id):
        raise ValueError(f"producer {producer_id} has no open transaction here")
    marker = build_control_batch(
        ControlType.COMMIT if commit else ControlType.ABORT,
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp_ms=0,
    )
    return plant_batches(partition, marker)


def truncate(partition: Partition, offset: int) -> None:
    """Cut a log as an unclean election does: the new leader had only what is before `offset`."""
    log = partition.log
    log.truncate(offset)
    log.transactions = Transactions()
    partition.producers = ProducerStates()
    for stored in log:
        for batch in _readable(stored):
            log.transactions.note(batch, batch.base_offset)
            _remember_producer(partition, batch, stored)


def compact(partition: Partition, offsets: Collection[int], *, keep_empty: bool = False) -> None:
    """Take records out of a log as compaction does; other records keep their offsets.

    Args:
        partition: whose log it is.
        offsets: of the records to remove, control records included.
        keep_empty: keep the header of a batch that loses all its records, as Kafka does for the
            last batch of a producer; False: the batch goes, also at the end of the log.
    """
    removed = frozenset(offsets)
    partition.log.replace(_remaining(partition.log, removed, keep_empty))


def _remaining(
    log: PartitionLog, removed: frozenset[int], keep_empty: bool
) -> Iterator[StoredBatch]:
    for stored in log:
        if removed.isdisjoint(range(stored.base_offset, stored.last_offset + 1)):
            yield stored
            continue
        batch = next(iter(_readable(stored)), None)
        if batch is None:
            yield stored
            continue
        records = [one for one in batch.records() if one.offset not in removed]
        if not (records or keep_empty):
            continue
        builder = RecordBatchBuilder(
            codec=batch.codec,
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            log_append_time_ms=(
                batch.max_timestamp
                if batch.timestamp_type == TimestampType.LOG_APPEND_TIME
                else None
            ),
        )
        for one in records:
            builder.append(
                one.key,
                one.value,
                one.timestamp_ms,
                one.headers,
                offset_delta=one.offset - batch.base_offset,
            )
        data = builder.build(last_offset_delta=batch.last_offset - batch.base_offset)
        yield StoredBatch(stored.base_offset, stored.last_offset, stored.max_timestamp, data)


def _readable(stored: StoredBatch) -> Iterable[RecordBatch]:
    """Return the batches in a piece of the log, none if it was planted as mere bytes."""
    try:
        return read_batches(stored.data)
    except CorruptBatchError:
        return ()


def _stored(batch: RecordBatch, base_offset: int, leader_epoch: int) -> StoredBatch:
    data = bytearray(batch.data)
    stamp_batch(data, base_offset=base_offset, leader_epoch=leader_epoch)
    last_offset = base_offset + batch.last_offset - batch.base_offset
    return StoredBatch(base_offset, last_offset, batch.max_timestamp, data)


def _remember_producer(partition: Partition, batch: RecordBatch, stored: StoredBatch) -> None:
    """Let a later Produce request go on with the sequence, or the epoch, that was planted."""
    if batch.is_control and batch.record_count:
        control = batch.control_record()
        if control.type in (ControlType.ABORT, ControlType.COMMIT):
            partition.producers.add_marker(
                batch.producer_id,
                batch.producer_epoch,
                control.coordinator_epoch,
                stored.max_timestamp,
            )
    if batch.producer_id == NO_PRODUCER_ID or batch.base_sequence < 0 or not batch.record_count:
        return
    written = WrittenBatch(
        batch.base_sequence,
        last_sequence(batch.base_sequence, batch.record_count),
        stored.base_offset,
        stored.last_offset,
        stored.max_timestamp,
    )
    partition.producers.add_batch(batch.producer_id, batch.producer_epoch, written)
