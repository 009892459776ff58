"""Offsets of partitions, as an admin client looks them up."""

from __future__ import annotations

import enum

from kafka_fast.values import Value


class OffsetSpec(enum.IntEnum):
    """Which offset of a partition; the numbers are Kafka's."""

    LATEST = -1
    """The one behind the last record that a consumer may read."""
    EARLIEST = -2
    """The first of the log."""
    MAX_TIMESTAMP = -3
    """That of the record with the highest timestamp. Needs Kafka 3.0."""
    EARLIEST_LOCAL = -4
    """The first on the leader's own disk: older records are in remote storage. Needs Kafka 3.4."""
    LATEST_TIERED = -5
    """The last in remote storage. Needs Kafka 3.9."""
    EARLIEST_PENDING_UPLOAD = -6
    """The first that is not in remote storage yet. Needs Kafka 4.2."""


class IsolationLevel(enum.IntEnum):
    """Which records a consumer may read; the numbers are Kafka's."""

    READ_UNCOMMITTED = 0
    """All of them, up to the high watermark."""
    READ_COMMITTED = 1
    """Those before the last stable offset, where the first open transaction begins."""


class ListedOffset(Value):
    """An offset of a partition."""

    offset: int
    """-1: there is no such record, such as one at or after a time."""
    timestamp_ms: int | None = None
    """The record's timestamp in Unix ms; None: it was not looked up by its time."""
    leader_epoch: int | None = None
    """The record's leader epoch; None: the broker does not say."""


class ShareGroupOffset(Value):
    """Where a share group goes on to read in a partition."""

    offset: int
    """Records before this offset are not delivered any more."""
    leader_epoch: int | None = None
    """The leader epoch that belongs to it; None: not told."""
    lag: int | None = None
    """How many records are still to be delivered; None: the broker does not know, or is older than
    that (KIP-1226).
    """
