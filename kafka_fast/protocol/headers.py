"""Request and response headers, which stand before every body.

`frame.py` chooses the version. The client id keeps its two-byte length in the flexible version,
too. So an old broker can read the header of an ApiVersions request whose version it does not know.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Message, int16, int32, string


class RequestHeader(Message, versions="1-2", flexible="2+"):
    """API and version of the body, and a number that the response repeats."""

    request_api_key: int = int16("0+")
    request_api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """The correlation id of the request that this response answers."""

    correlation_id: int = int32("0+")
