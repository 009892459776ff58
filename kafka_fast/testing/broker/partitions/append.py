"""Append one produced batch to a partition, by the rules and in the order of Kafka's leader.

First what the Produce version allows, then size, CRC, header, records, and last the producer's
sequence; the first rule that is broken gives the error code of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_fast.errors import (
    BrokerError,
    CorruptBatchError,
    CorruptMessage,
    ErrorCode,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTxnState,
    MessageTooLarge,
    NotEnoughReplicas,
    UnknownServerError,
    UnsupportedCompressionType,
    UsageError,
)
from kafka_fast.record import Codec, RecordBatch, TimestampType, read_batches, stamp_batch
from kafka_fast.record.types import NO_PRODUCER_ID, NO_TIMESTAMP
from kafka_fast.testing.broker.partitions._spans import timestamp_range
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, TopicConfig
from kafka_fast.testing.broker.partitions.log import StoredBatch
from kafka_fast.testing.broker.partitions.producers import WrittenBatch, last_sequence

MAGIC = 2
CODEC_BITS = 0x07  # of the attributes
_CODECS = frozenset(Codec)
ZSTD_FROM_VERSION = 7  # of Produce


class RefusedRecordsError(BrokerError):
    """A batch is refused for some of its records.

    Args:
        code: of the answer.
        records: what is wrong, by index of the record.
    """

    def __init__(self, code: int, records: dict[int, str]) -> None:
        super().__init__(f"{len(records)} records of the batch are wrong")
        self.code = code
        self.records = records


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch stands in the log."""

    base_offset: int
    log_append_time: int
    """Unix ms, or NO_TIMESTAMP where the producer's timestamps stay."""


def the_one_batch(records: bytes | bytearray | memoryview | None, version: int) -> RecordBatch:
    """Return the one batch that a Produce request may carry for a partition.

    Raises:
        CorruptMessage: no batch can be made out.
        InvalidRecord: not exactly one, or not in format v2.
        UnsupportedCompressionType: the codec is younger than the request's version.
    """
    try:
        batches = list(read_batches(records or b""))
    except CorruptBatchError as error:
        raise CorruptMessage(str(error)) from error
    if not batches:
        raise InvalidRecord("a Produce request needs a record batch for each partition")
    if batches[0].magic != MAGIC:
        raise InvalidRecord(f"message format v{batches[0].magic} is read, but no longer written")
    if batches[0].attributes & CODEC_BITS == Codec.ZSTD and version < ZSTD_FROM_VERSION:
        raise UnsupportedCompressionType(f"zstd in Produce version {version}")
    if len(batches) > 1:
        raise InvalidRecord(f"{len(batches)} batches for one partition, only one is allowed")
    return batches[0]


def append_batch(
    partition: Partition,
    config: TopicConfig,
    batch: RecordBatch,
    acks: int,
    unix_ms: int,
    *,
    may_begin: bool = False,
) -> Appended:
    """Check the batch and append it; return the former place of one that was appended before.

    Args:
        partition: led by the broker that calls.
        config: of its topic.
        batch: what `the_one_batch` returned.
        acks: of the request: -1 needs `min.insync.replicas`.
        unix_ms: wall clock, for LogAppendTime and for the limits of timestamps.
        may_begin: the coordinator knows that a transaction begins here.

    Raises:
        BrokerError: the answer that the client gets for this partition.
    """
    if acks == -1 and len(partition.isr) < config.min_insync_replicas:
        raise NotEnoughReplicas(
            f"{len(partition.isr)} replicas of {partition.topic}-{partition.index} are in sync, "
            f"{config.min_insync_replicas} are needed"
        )
    _check_envelope(batch, config)
    latest = _check_records(batch, config, unix_ms)
    append_time = unix_ms if config.log_append_time else NO_TIMESTAMP
    idempotent = batch.producer_id > NO_PRODUCER_ID
    if idempotent:
        repeated = partition.producers.find_repeated(
            batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.record_count
        )
        if repeated is not None:  # told by a time of append, whatever the topic's timestamps are
            return Appended(repeated.base_offset, repeated.max_timestamp)
        _check_transaction(partition, batch, may_begin)
    stored = _stamped(partition, batch, latest, append_time)
    if batch.is_transactional:
        partition.log.transactions.note(batch, stored.base_offset)
    partition.log.append(stored)
    if idempotent:
        written = WrittenBatch(
            batch.base_sequence,
            last_sequence(batch.base_sequence, batch.record_count),
            stored.base_offset,
            stored.last_offset,
            stored.max_timestamp,
        )
        partition.producers.add_batch(batch.producer_id, batch.producer_epoch, written)
    return Appended(stored.base_offset, append_time)


def _check_transaction(partition: Partition, batch: RecordBatch, may_begin: bool) -> None:
    """Check the producer's epoch and sequence, and whether it has a transaction open here."""
    producers, producer_id = partition.producers, batch.producer_id
    is_open = partition.log.transactions.is_open(producer_id)
    producers.check_epoch(producer_id, batch.producer_epoch)
    goes_on = is_open and producers.epoch(producer_id) == batch.producer_epoch
    if batch.is_transactional and not (goes_on or may_begin):
        raise InvalidTxnState("Record was not part of an ongoing transaction")
    producers.check(producer_id, batch.producer_epoch, batch.base_sequence)
    if is_open and not batch.is_transactional:
        raise InvalidTxnState(f"producer {producer_id} has a transaction open here")


def _check_envelope(batch: RecordBatch, config: TopicConfig) -> None:
    """Check what the header says and that nothing changed on the way."""
    if batch.base_offset != 0:
        raise InvalidRecord(f"the base offset is {batch.base_offset}, a producer writes 0")
    if batch.size > config.max_message_bytes:
        raise MessageTooLarge(f"{batch.size} bytes, max.message.bytes={config.max_message_bytes}")
    try:
        batch.check_crc()
    except CorruptBatchError as error:
        raise CorruptMessage(str(error)) from error
    if batch.attributes & CODEC_BITS not in _CODECS:  # Kafka did not expect that
        raise UnknownServerError(f"codec {batch.attributes & CODEC_BITS}")
    count = batch.last_offset - batch.base_offset + 1
    if batch.record_count <= 0 or count != batch.record_count:
        raise InvalidRecord(f"{batch.record_count} records in {count} offsets")
    if batch.is_control:
        raise InvalidRecord("clients do not write control batches")
    if batch.producer_id > NO_PRODUCER_ID and batch.base_sequence < 0:
        raise InvalidRecord(f"sequence {batch.base_sequence} of producer {batch.producer_id}")


def _check_records(batch: RecordBatch, config: TopicConfig, unix_ms: int) -> int:
    """Check the records and their timestamps; return the latest timestamp."""
    try:
        records = batch.records(check_crc=False)
    except CorruptBatchError as error:
        if error.__cause__ is not None:  # what cannot be decompressed, Kafka did not expect
            raise UnknownServerError(str(error)) from error
        raise InvalidRecord(str(error)) from error
    except UsageError as error:  # a codec whose library is not installed
        raise UnsupportedCompressionType(str(error)) from error
    keyless: dict[int, str] = {}
    if config.is_compacted:
        keyless = {
            index: "a compacted topic takes no record without a key"
            for index, record in enumerate(records)
            if record.key is None
        }
    low, high = timestamp_range(records)
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        raise InvalidTimestamp("only a broker may stamp records with the time of the append")
    if not config.log_append_time:
        first = unix_ms - config.timestamp_before_max_ms
        last = unix_ms + config.timestamp_after_max_ms
        if (low != NO_TIMESTAMP and low < first) or high > last:
            times = enumerate(record.timestamp_ms for record in records)
            wrong = {
                index: f"timestamp {time} is not between {first} and {last}"
                for index, time in times
                if time != NO_TIMESTAMP and not first <= time <= last
            }
            raise RefusedRecordsError(ErrorCode.INVALID_TIMESTAMP, wrong | keyless)
    if keyless:
        raise RefusedRecordsError(ErrorCode.INVALID_RECORD, keyless)
    return high


def _stamped(
    partition: Partition, batch: RecordBatch, max_timestamp: int, append_time: int
) -> StoredBatch:
    data = bytearray(batch.data)
    base_offset = partition.log.end_offset
    by_broker = append_time != NO_TIMESTAMP
    stamp_batch(
        data,
        base_offset=base_offset,
        leader_epoch=partition.leader_epoch,
        log_append_time_ms=append_time if by_broker else None,
    )
    latest = append_time if by_broker else max_timestamp
    return StoredBatch(base_offset, base_offset + batch.record_count - 1, latest, data)
