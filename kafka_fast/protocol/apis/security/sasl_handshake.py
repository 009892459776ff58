"""SaslHandshake (17): choose a SASL mechanism. Never flexible.

After version 1 the tokens travel in SaslAuthenticate; after version 0 as bare frames.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api_key=17, versions="0-1"):
    """The mechanism that the client chose."""

    mechanism: str = string("0+")


class SaslHandshakeResponse(Response, api_key=17, versions="0-1"):
    """The mechanisms that the broker offers."""

    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")
