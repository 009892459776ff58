"""The small vocabulary of record batches: codecs, kinds of timestamp, control records."""

from __future__ import annotations

import enum
from typing import NamedTuple

#: "No producer": what a batch without idempotence carries as producer id, epoch and sequence.
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

#: A leader epoch that nobody knows: what producers write.
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
    """What a control batch says about its producer's transaction."""

    ABORT = 0
    COMMIT = 1


class ControlRecord(NamedTuple):
    """The one record of a control batch, the end of a transaction.

    Attributes:
        type: a ControlType; a plain int for kinds of control record that are not about
            transactions.
        version: schema version of the record's value.
        coordinator_epoch: epoch of the transaction coordinator that wrote it, or -1 if the record
            is of another kind.
    """

    type: int
    version: int
    coordinator_epoch: int
