"""ListTransactions: the transactional ids that a broker coordinates, filtered."""

from __future__ import annotations

import re

from kafka_fast.errors import InvalidRegularExpression
from kafka_fast.protocol.apis.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.transaction import State, Transaction

_STATES = frozenset(state.value for state in State)


@answers(ListTransactionsRequest)
def answer(request: ReceivedRequest) -> ListTransactionsResponse:
    """List what passes all filters; the pattern has to fit the whole transactional id.

    Kafka reads the pattern with RE2/J; Python's `re` differs in what tests hardly write.
    """
    body: ListTransactionsRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return ListTransactionsResponse(error_code=planned.code)
    try:
        pattern = re.compile(body.transactional_id_pattern or "")
    except re.error:
        return ListTransactionsResponse(error_code=InvalidRegularExpression.code)
    return ListTransactionsResponse(
        unknown_state_filters=[one for one in body.state_filters if one not in _STATES],
        transaction_states=[
            TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.value,
            )
            for one in request.transactions.transactions(request.now)
            if _passes(request, one)
            and (not pattern.pattern or pattern.fullmatch(one.transactional_id))
        ],
    )


def _passes(request: ReceivedRequest, transaction: Transaction) -> bool:
    body: ListTransactionsRequest = request.body
    if body.producer_id_filters and transaction.producer_id not in body.producer_id_filters:
        return False
    if body.state_filters and transaction.state.value not in body.state_filters:
        return False
    age_ms = request.state.unix_ms(request.now) - transaction.started_ms
    if body.duration_filter >= 0 and age_ms <= body.duration_filter:
        return False
    return request.allows(
        Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
    )
