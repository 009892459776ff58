"""The types of record batches: codecs, kinds of timestamp, control records."""

from __future__ import annotations

import enum
from typing import NamedTuple

#: Producer id, epoch and sequence of a batch without idempotence.
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

#: An unknown leader epoch; producers write this.
NO_LEADER_EPOCH = -1

#: The timestamp of records in message format v0, which has none.
NO_TIMESTAMP = -1


class Codec(enum.IntEnum):
    """Compression of a batch's records: the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(enum.IntEnum):
    """Who gave the records their timestamps."""

    CREATE_TIME = 0  #: the producer
    LOG_APPEND_TIME = 1  #: the broker: one timestamp for the whole batch


class ControlType(enum.IntEnum):
    """How a control batch ends its producer's transaction."""

    ABORT = 0
    COMMIT = 1


class ControlRecord(NamedTuple):
    """The only record of a control batch: the end of a transaction."""

    type: int
    """A ControlType; a plain int if the control record is not about transactions."""
    version: int
    """Schema version of the record's value."""
    coordinator_epoch: int
    """Epoch of the transaction coordinator that wrote the record; -1 if the record is not about
    transactions.
    """
