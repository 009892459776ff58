"""AddPartitionsToTxn: partitions that a transaction is about to write.

Clients add those of one transaction, up to version 3. Later versions carry several transactions,
and may only ask whether partitions are added: brokers speak them among themselves.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    InvalidProducerEpoch,
    OperationNotAttempted,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest, Waiting
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.transaction import TopicPartition
from kafka_fast.testing.broker.transactions.verification import verify_partitions

_SEVERAL_FROM_VERSION = 4
_FENCED_FROM_VERSION = 2  # older clients do not know PRODUCER_FENCED

Codes = Callable[[TopicPartition], int]


@answers(AddPartitionsToTxnRequest)
def answer(request: ReceivedRequest) -> AddPartitionsToTxnResponse | Waiting:
    """Add partitions to each transaction, all of them or none.

    A request without a transaction is never answered: Kafka answers with the last of them.
    """
    body: AddPartitionsToTxnRequest = request.body
    if request.version < _SEVERAL_FROM_VERSION:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=body.v3_and_below_transactional_id,
            producer_id=body.v3_and_below_producer_id,
            producer_epoch=body.v3_and_below_producer_epoch,
            topics=body.v3_and_below_topics,
        )
        codes = _add(request, transaction)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(transaction.topics, codes)
        )
    if not request.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ClusterAuthorizationFailed.code)
    if not body.transactions:
        return Waiting(None, lambda now, last_chance: None)
    results = [
        AddPartitionsToTxnResult(
            transactional_id=one.transactional_id,
            topic_results=_results(one.topics, _add(request, one)),
        )
        for one in body.transactions
    ]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _add(request: ReceivedRequest, transaction: AddPartitionsToTxnTransaction) -> Codes:
    """Add the partitions of one transaction, or check them; return the error code of each."""
    planned = request.planned_error()
    if planned is not None and not planned.applied:
        return _always(planned.code)
    of_client = request.version < _SEVERAL_FROM_VERSION
    transactional_id = transaction.transactional_id
    if of_client and not request.allows(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        return _always(TransactionalIdAuthorizationFailed.code)
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    missing = {one: _problem_of(request, one, of_client) for one in partitions}
    if any(missing.values()):
        return lambda one: missing[one] or OperationNotAttempted.code
    try:
        if not of_client:
            request.transactions.check_coordinates(transactional_id, request.now)
            verdicts = verify_partitions(
                request.state,
                transactional_id,
                transaction.producer_id,
                transaction.producer_epoch,
                partitions,
                request.now,
                add=not transaction.verify_only,
            )
            return lambda one: _code_of(verdicts[one])
        request.transactions.add_partitions(
            transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
            request.now,
        )
    except ProducerFenced as error:
        old = request.version < _FENCED_FROM_VERSION
        return _always(InvalidProducerEpoch.code if old else error.code)
    except BrokerError as error:
        return _always(error.code)
    return _always(0 if planned is None else planned.code)


def _problem_of(request: ReceivedRequest, partition: TopicPartition, of_client: bool) -> int:
    """Return the error code of a partition that cannot be added, 0: it can."""
    topic = request.state.topics.get(partition[0])
    is_internal = topic is not None and topic.is_internal
    if of_client and (
        is_internal or not request.allows(Operation.WRITE, ResourceType.TOPIC, partition[0])
    ):
        return TopicAuthorizationFailed.code
    if topic is None or not 0 <= partition[1] < len(topic.partitions):
        return UnknownTopicOrPartition.code
    return 0


def _results(
    topics: list[AddPartitionsToTxnTopic], codes: Codes
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes((topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _always(code: int) -> Codes:
    return lambda _: code


def _code_of(error: BrokerError | None) -> int:
    return 0 if error is None else error.code
