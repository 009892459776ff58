"""SaslAuthenticate of a client that has authenticated, or need not; dialogue.py answers others."""

from __future__ import annotations

from kafka_fast.errors import IllegalSaslState
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(SaslAuthenticateRequest)
def answer(request: ReceivedRequest) -> SaslAuthenticateResponse:
    """Refuse."""
    planned = request.planned_error()
    return SaslAuthenticateResponse(
        error_code=IllegalSaslState.code if planned is None else planned.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
