"""SaslHandshake of a client that has authenticated, or need not; dialogue.py answers the others."""

from __future__ import annotations

from kafka_fast.errors import IllegalSaslState
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.request import Request


@answers(SaslHandshakeRequest)
def answer(request: Request) -> SaslHandshakeResponse:
    """Refuse."""
    planned = request.planned_error()
    code = IllegalSaslState.code if planned is None else planned.code
    return SaslHandshakeResponse(error_code=code, mechanisms=[])
