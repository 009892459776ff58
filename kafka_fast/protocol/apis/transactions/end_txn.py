"""EndTxn (26): commit or abort.

Version 5 answers with the epoch of the next transaction (KIP-890).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, bool_, int16, int32, int64, string


class EndTxnRequest(Request, api_key=26, versions="0-5", flexible="3+"):
    """`committed` is true to commit, false to abort."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = bool_("0+")


class EndTxnResponse(Response, api_key=26, versions="0-5", flexible="3+"):
    """Whether the decision was taken."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
