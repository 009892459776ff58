"""ExpireDelegationToken (40): let a token expire at another time (KIP-48).

Version 2 is flexible.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(Request, api_key=40, versions="1-2", flexible="2+"):
    """The token's HMAC, and in how many milliseconds; below zero means at once."""

    hmac: bytes = bytes_("0+")
    expiry_time_period_ms: int = int64("0+")


class ExpireDelegationTokenResponse(Response, api_key=40, versions="1-2", flexible="2+"):
    """When the token expires now."""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
