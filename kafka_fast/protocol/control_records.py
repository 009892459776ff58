"""Control records, which end transactions in the log, and the index of aborted transactions.

The key of a control record is a ControlRecordTypeSchema. If the record ends a transaction, its
value is an EndTxnMarker. On the wire a version stands before each (`encode_versioned`).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Message, int16, int32, int64


class ControlRecordTypeSchema(Message, versions="0"):
    """Key of a control record: 0 abort, 1 commit, 2 and above for KRaft."""

    type: int = int16("0+")


class EndTxnMarker(Message, versions="0"):
    """Value of the control record that ends a transaction."""

    coordinator_epoch: int = int32("0+")


class AbortedTxn(Message, versions="0"):
    """An entry of the index that a broker keeps of aborted transactions."""

    producer_id: int = int64("0+")
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    last_stable_offset: int = int64("0+")
