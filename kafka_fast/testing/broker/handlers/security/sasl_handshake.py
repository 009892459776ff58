"""SaslHandshake of a client that has authenticated, or need not; dialogue.py answers the others."""

from __future__ import annotations

from kafka_fast.errors import IllegalSaslState
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(SaslHandshakeRequest)
def answer(request: ReceivedRequest) -> SaslHandshakeResponse:
    """Refuse."""
    planned = request.planned_error()
    code = IllegalSaslState.code if planned is None else planned.code
    return SaslHandshakeResponse(error_code=code, mechanisms=[])
