"""EndTxn: commit or abort. The answer comes with the decision, the markers follow."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, InvalidProducerEpoch, ProducerFenced
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_EPOCH_FROM_VERSION = 5  # since then it is of version 2 of transactions (KIP-890)
_FENCED_FROM_VERSION = 2  # older clients do not know PRODUCER_FENCED


@answers(EndTxnRequest)
def answer(request: ReceivedRequest) -> EndTxnResponse:
    """Take the decision; in version 2 the answer brings the producer's next epoch."""
    body: EndTxnRequest = request.body
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return EndTxnResponse(error_code=planned.code)
    bumps = request.version >= _EPOCH_FROM_VERSION
    try:
        request.check_transactional_id(Operation.WRITE, body.transactional_id)
        transaction = request.transactions.end_transaction(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            request.now,
            commit=body.committed,
            version=2 if bumps else 0,
        )
    except ProducerFenced as error:
        old = request.version < _FENCED_FROM_VERSION
        return EndTxnResponse(error_code=InvalidProducerEpoch.code if old else error.code)
    except BrokerError as error:
        return EndTxnResponse(error_code=error.code)
    if planned is not None:
        return EndTxnResponse(error_code=planned.code)
    if not bumps:
        return EndTxnResponse()
    producer_id, epoch = transaction.next_identity
    return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)
