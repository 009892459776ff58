"""InitProducerId (22): producer id and epoch for idempotence and transactions.

What the versions changed:
    3: bump the epoch of a known id (KIP-360). 5: TRANSACTION_ABORTABLE (KIP-890). 6, not stable:
    two-phase commit (KIP-939).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, bool_, int16, int32, int64, string


class InitProducerIdRequest(Request, api_key=22, versions="0-6", flexible="2+", unstable=True):
    """A transactional id, or null for idempotence alone."""

    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = bool_("6+")
    keep_prepared_txn: bool = bool_("6+")


class InitProducerIdResponse(Response, api_key=22, versions="0-6", flexible="2+"):
    """The producer id and its epoch."""

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
