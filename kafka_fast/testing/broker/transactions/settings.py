"""What is fixed for all transactions of a cluster: Kafka's broker settings, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass

TRANSACTIONS_TOPIC = "__transaction_state"
FEATURE = "transaction.version"
NEWEST_VERSION = 2


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The settings that Kafka calls transaction.*."""

    version: int = NEWEST_VERSION
    """The feature `transaction.version` when the cluster starts, 0 to 2 (KIP-890)."""
    partitions: int = 50
    """Of the topic whose leaders are the coordinators."""
    max_timeout_ms: int = 900_000
    """The longest transaction.timeout.ms of a producer."""
    abort_interval_ms: int = 10_000
    """Time between two searches for transactions that have timed out."""
    verification: bool = True
    """Leaders ask the coordinator whether a transaction has begun on their partition."""
