"""SaslAuthenticate (36): one step of the SASL exchange.

Version 1 adds the session's lifetime (KIP-368).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, bytes_, int16, int64, string


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible="2+"):
    """The client's token."""

    auth_bytes: bytes = bytes_("0+")


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible="2+"):
    """The broker's token, or why it refuses."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = bytes_("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
