"""InitProducerId: a new id for an idempotent producer. Transactions are not here."""

from __future__ import annotations

from kafka_fast.errors import InvalidRequest, UnsupportedVersion
from kafka_fast.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_fast.testing.broker.request import Request

_NONE = -1


def answer(request: Request) -> InitProducerIdResponse:
    """Return a fresh id and its first epoch; as in Kafka a producer's old id is not kept."""
    body: InitProducerIdRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return _refused(planned.code)
    if (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
        return _refused(InvalidRequest.code)
    if body.transactional_id == "":
        return _refused(InvalidRequest.code)
    if body.transactional_id is not None:
        return _refused(UnsupportedVersion.code)
    return InitProducerIdResponse(
        error_code=0,
        producer_id=request.state.new_producer_id(),
        producer_epoch=request.state.settings.first_epoch,
    )


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)
