"""Heartbeat (12): stay a member of a classic group.

Version 3 adds static members (KIP-345).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, int16, int32, string


class HeartbeatRequest(Request, api_key=12, versions="0-4", flexible="4+"):
    """A sign of life; REBALANCE_IN_PROGRESS as answer means: join again."""

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, api_key=12, versions="0-4", flexible="4+"):
    """The error code says whether the generation still stands."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
