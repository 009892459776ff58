"""InitProducerId: an id for an idempotent producer, the next epoch for a transactional one."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidRequest,
    ProducerFenced,
)
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_NONE = -1
_FENCED_FROM_VERSION = 4  # older clients do not know PRODUCER_FENCED


@answers(InitProducerIdRequest)
def answer(request: ReceivedRequest) -> InitProducerIdResponse:
    """Return an id and an epoch; as in Kafka an idempotent producer's old id is not kept."""
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return _refused(planned.code)
    try:
        response = _init(request)
    except ProducerFenced as error:
        old = request.version < _FENCED_FROM_VERSION
        return _refused(InvalidProducerEpoch.code if old else error.code)
    except BrokerError as error:
        return _refused(error.code)
    return response if planned is None else _refused(planned.code)


def _init(request: ReceivedRequest) -> InitProducerIdResponse:
    body: InitProducerIdRequest = request.body
    _check_rights(request, body.transactional_id)
    if (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
        raise InvalidRequest("a producer id without an epoch, or the reverse")
    if body.transactional_id is None:
        return InitProducerIdResponse(
            error_code=0,
            producer_id=request.state.new_producer_id(),
            producer_epoch=request.state.settings.first_epoch,
        )
    expected = None if body.producer_id == _NONE else (body.producer_id, body.producer_epoch)
    transaction = request.transactions.renew(
        body.transactional_id, body.transaction_timeout_ms, expected, request.now
    )
    if transaction is None:
        raise ConcurrentTransactions("the open transaction is aborted first")
    return InitProducerIdResponse(
        error_code=0,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
    )


def _check_rights(request: ReceivedRequest, transactional_id: str | None) -> None:
    """Refuse a user without the right; any right to write is enough for idempotence (KIP-679)."""
    if transactional_id is not None:
        request.check_transactional_id(Operation.WRITE, transactional_id)
    elif not request.allows(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ) and not request.allows_some(Operation.WRITE, ResourceType.TOPIC):
        raise ClusterAuthorizationFailed("Cluster authorization failed.")


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)
