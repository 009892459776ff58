"""Transactions: as their coordinators know them, and as they stand in the logs of partitions."""

from __future__ import annotations

import enum

from kafka_fast.types import TopicPartition
from kafka_fast.values import Value


class TransactionState(str, enum.Enum):
    """What a transaction's coordinator does with it."""

    EMPTY = "Empty"
    """The transactional id has no transaction yet."""
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    """It is committed; not all partitions have the marker yet."""
    PREPARE_ABORT = "PrepareAbort"
    """It is aborted; not all partitions have the marker yet."""
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The coordinator is about to forget the transactional id."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """It is about to be aborted for a new producer, or because it has timed out."""
    UNKNOWN = "Unknown"
    """A state that this version has no name for."""

    @classmethod
    def _missing_(cls, value: object) -> TransactionState:
        return cls.UNKNOWN


class TransactionListing(Value):
    """A transactional id in the list of all of them."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionDescription(Value):
    """A transactional id with its transaction."""

    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    """After how many milliseconds the coordinator aborts the transaction."""
    start_ms: int | None
    """When the transaction began, as Unix time in ms; None: there is none."""
    partitions: frozenset[TopicPartition]
    """To which it writes; while it ends, those that have no marker yet."""


class ProducerState(Value):
    """A producer with a producer id, as a partition's log knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    """Sequence number of its last record; -1: it has written none, only its coordinator has."""
    last_timestamp_ms: int
    """The timestamp of its last batch, as Unix time in ms; -1 as above."""
    coordinator_epoch: int | None
    """The epoch of the coordinator that wrote the last marker; None: there was no marker yet."""
    transaction_start_offset: int | None
    """Offset of the first record of its open transaction; None: it has none."""


class ProducerIdAndEpoch(Value):
    """Who the next producer of a transactional id would have to outrank."""

    producer_id: int
    epoch: int


class HangingTransaction(Value):
    """A transaction that is open in a partition's log, and that no coordinator will end."""

    partition: TopicPartition
    producer: ProducerState
    """Who has begun it: `abort_transaction` takes ids and epochs from here."""
