"""AddOffsetsToTxn: a group whose offsets a transaction is about to commit."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, InvalidProducerEpoch, ProducerFenced
from kafka_fast.protocol.apis.transactions.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC
from kafka_fast.testing.broker.partitions.coordinating import partition_for
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_FENCED_FROM_VERSION = 2  # older clients do not know PRODUCER_FENCED


@answers(AddOffsetsToTxnRequest)
def answer(request: ReceivedRequest) -> AddOffsetsToTxnResponse:
    """Add the group's partition of the offsets topic; it need not exist yet."""
    body: AddOffsetsToTxnRequest = request.body
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return AddOffsetsToTxnResponse(error_code=planned.code)
    index = partition_for(body.group_id, request.state.settings.groups.offsets_partitions)
    try:
        request.check_transactional_id(Operation.WRITE, body.transactional_id)
        request.check_group(Operation.READ, body.group_id)
        request.transactions.add_partitions(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            [(OFFSETS_TOPIC, index)],
            request.now,
        )
    except ProducerFenced as error:
        old = request.version < _FENCED_FROM_VERSION
        return AddOffsetsToTxnResponse(error_code=InvalidProducerEpoch.code if old else error.code)
    except BrokerError as error:
        return AddOffsetsToTxnResponse(error_code=error.code)
    return AddOffsetsToTxnResponse(error_code=0 if planned is None else planned.code)
