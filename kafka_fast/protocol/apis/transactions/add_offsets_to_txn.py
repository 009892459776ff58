"""AddOffsetsToTxn (25): register a group's offsets with a transaction.

Version 4 adds the error TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api_key=25, versions="0-4", flexible="3+"):
    """The group whose offsets the transaction will commit."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


class AddOffsetsToTxnResponse(Response, api_key=25, versions="0-4", flexible="3+"):
    """Whether the group was added."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
