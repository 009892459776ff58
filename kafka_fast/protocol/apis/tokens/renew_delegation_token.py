"""RenewDelegationToken (39): let a token expire later (KIP-48).

Version 2 is flexible.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, bytes_, int16, int32, int64


class RenewDelegationTokenRequest(Request, api_key=39, versions="1-2", flexible="2+"):
    """The token's HMAC, and for how long; -1 is the broker's default."""

    hmac: bytes = bytes_("0+")
    renew_period_ms: int = int64("0+")


class RenewDelegationTokenResponse(Response, api_key=39, versions="1-2", flexible="2+"):
    """When the token expires now."""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
