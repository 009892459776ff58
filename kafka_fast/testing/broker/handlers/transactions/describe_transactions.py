"""DescribeTransactions: what the coordinator knows of transactional ids."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, InvalidRequest, TransactionalIdNotFound
from kafka_fast.protocol.apis.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.transaction import Transaction


@answers(DescribeTransactionsRequest)
def answer(request: ReceivedRequest) -> DescribeTransactionsResponse:
    """Describe each transactional id, with those of its topics that the user may see."""
    body: DescribeTransactionsRequest = request.body
    return DescribeTransactionsResponse(
        transaction_states=[_describe(request, one) for one in body.transactional_ids]
    )


def _describe(request: ReceivedRequest, transactional_id: str) -> TransactionState:
    try:
        planned = request.planned_error()
        if planned is not None:
            return TransactionState(transactional_id=transactional_id, error_code=planned.code)
        request.check_transactional_id(Operation.DESCRIBE, transactional_id)
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        transaction = request.transactions.find(transactional_id, request.now)
        if transaction is None:
            raise TransactionalIdNotFound(f"nothing is known of {transactional_id!r}")
    except BrokerError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.value,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=_topics(request, transaction),
    )


def _topics(request: ReceivedRequest, transaction: Transaction) -> list[TopicData]:
    partitions: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        if request.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            partitions.setdefault(topic, []).append(index)
    return [TopicData(topic=topic, partitions=indexes) for topic, indexes in partitions.items()]
