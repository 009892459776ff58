"""InitProducerId: a new id for an idempotent producer. Transactions are not here."""

from __future__ import annotations

from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
)
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_NONE = -1


@answers(InitProducerIdRequest)
def answer(request: ReceivedRequest) -> InitProducerIdResponse:
    """Return a fresh id and its first epoch; as in Kafka a producer's old id is not kept."""
    body: InitProducerIdRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return _refused(planned.code)
    refused = _unauthorized(request, body.transactional_id)
    if refused is not None:
        return _refused(refused)
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


def _unauthorized(request: ReceivedRequest, transactional_id: str | None) -> int | None:
    """Return the error for a user without the right; any right to write is enough (KIP-679)."""
    if transactional_id is not None:
        if request.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return None
        return TransactionalIdAuthorizationFailed.code
    if request.allows(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ) or request.allows_some(Operation.WRITE, ResourceType.TOPIC):
        return None
    return ClusterAuthorizationFailed.code


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)
